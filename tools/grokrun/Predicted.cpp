#include "tools/grokrun/Predicted.h"

#include "absl/strings/str_format.h"
#include "tools/cli/Printable.h"

namespace grok::grokrun {
namespace {

using Json = nlohmann::ordered_json;

Json caseJson(const Prediction::Case &c) {
  Json terms = Json::object();
  for (const auto &[name, seconds] : c.terms)
    terms[name] = seconds * 1e6;
  return {{"us", c.seconds * 1e6}, {"terms_us", terms}};
}

} // namespace

std::string predictedText(const Prediction &predicted,
                          const std::string &target,
                          const Distribution &measured) {
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
