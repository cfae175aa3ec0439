#include "tools/grokrun/Predicted.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "tools/cli/Printable.h"

namespace grok::grokrun {
namespace {

using Json = nlohmann::ordered_json;

std::string named(const PredictionKey &key) {
  return key.request ? absl::StrFormat("%d + %d ids of batch %d", key.context,
                                       key.generated, key.batch)
                     : absl::StrFormat("batch %d at context %d", key.batch,
                                       key.context);
}

Json caseJson(const Prediction::Case &c) {
  Json terms = Json::object();
  for (const auto &[name, seconds] : c.terms)
    terms[name] = seconds * 1e6;
  return {{"us", c.seconds * 1e6}, {"terms_us", terms}};
}

} // namespace

Foretold foretold(const Bundle &bundle, const Executor &executor,
                  const PredictionKey &key) {
  const Manifest &manifest = bundle.manifest();
  // What was predicted for a GPU says nothing of the CPU.
  if (executor.onCpu() != (manifest.sm == 0))
    return {std::nullopt, absl::StrCat("on this device: the bundle is for ",
                                       manifest.target.name)};
  if (auto found = findPrediction(manifest.predictionJson, key))
    return {std::move(found), {}};
  std::vector<std::string> others;
  for (const Prediction &one : predictionsOf(manifest.predictionJson))
    if (one.key.request == key.request)
      others.push_back(named(one.key));
  return {std::nullopt,
          absl::StrCat("for ", named(key), "; the bundle has ",
                       others.empty() ? "no such predictions"
                                      : absl::StrJoin(others, ", "))};
}

std::string predictedText(const Foretold &foretold, const std::string &target,
                          const Distribution &measured) {
  if (!foretold.prediction)
    return absl::StrFormat("predicted    nothing %s\n",
                           cli::printableLine(foretold.none));
  const Prediction &predicted = *foretold.prediction;
  std::string out = absl::StrFormat("predicted    %.1f us at best, ",
                                    predicted.best.seconds * 1e6);
  if (predicted.expected)
    absl::StrAppendFormat(&out, "%.1f expected, ",
                          predicted.expected->seconds * 1e6);
  absl::StrAppendFormat(&out, "%.1f at worst, for %s; ",
                        predicted.worst.seconds * 1e6,
                        cli::printableLine(target));
  if (predicted.expected)
    absl::StrAppendFormat(&out, "P50 / expected %.3f, ",
                          measured.p50 / predicted.expected->seconds);
  absl::StrAppendFormat(&out, "max / worst %.3f\n",
                        measured.most / predicted.worst.seconds);
  return out;
}

Json predictedJson(const Prediction &predicted, const Distribution &measured) {
  Json out = {{"best", caseJson(predicted.best)}};
  if (predicted.expected)
    out["expected"] = caseJson(*predicted.expected);
  out["worst"] = caseJson(predicted.worst);
  out["p50_over_best"] = measured.p50 / predicted.best.seconds;
  if (predicted.expected)
    out["p50_over_expected"] = measured.p50 / predicted.expected->seconds;
  out["p50_over_worst"] = measured.p50 / predicted.worst.seconds;
  out["max_over_worst"] = measured.most / predicted.worst.seconds;
  return out;
}

} // namespace grok::grokrun
