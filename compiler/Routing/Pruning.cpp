#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "compiler/Routing/Routing.h"
#include "runtime/bundle/JsonReader.h"

namespace grok {
namespace {

absl::Status checkHistogram(const ModelConfig &model,
                            std::span<const uint64_t> histogram,
                            const std::vector<uint64_t> &reach) {
  if (histogram.size() != model.numExperts)
    return absl::InvalidArgumentError(absl::StrCat(
        "histogram: found ", histogram.size(),
        " counts, expected one for each of ", model.numExperts, " experts"));
  bool any = false;
  for (size_t e = 0; e < histogram.size(); ++e) {
    any |= histogram[e] != 0;
    if (histogram[e] && !reach[e])
      return absl::InvalidArgumentError(absl::StrCat(
          "histogram: found ", histogram[e], " tokens on expert ", e,
          ", which the hash cannot reach, expected a histogram measured with "
          "this config"));
  }
  if (!any)
    return absl::InvalidArgumentError(
        "histogram: found only zeros, expected counts of tokens");
  return absl::OkStatus();
}

} // namespace

absl::StatusOr<std::vector<uint64_t>> parseHistogram(std::string_view text,
                                                     std::string_view file,
                                                     const ModelConfig &model) {
  absl::StatusOr<json::Document> document = json::parse(text, file);
  if (!document.ok())
    return document.status();
  document->lines.emplace("", 1); // where a key is missing from
  json::ObjectReader in(*document, "");
  std::vector<uint64_t> histogram;
  const nlohmann::json *list = in.member("histogram");
  if (list && !list->is_array())
    in.fail("histogram", json::describe(*list),
            "a list of counts, one an expert");
  if (absl::Status status = in.finish(); !status.ok())
    return status;
  for (size_t e = 0; e < list->size(); ++e) {
    const nlohmann::json &count = (*list)[e];
    if (!count.is_number_unsigned() || count.get<uint64_t>() >= uint64_t(1)
                                                                    << 53)
      return absl::InvalidArgumentError(absl::StrCat(
          document->place(absl::StrCat("/histogram/", e)),
          ": key 'histogram': found ", json::describe(count), " for expert ", e,
          ", expected a count from 0 to 2^53 - 1"));
    histogram.push_back(count.get<uint64_t>());
  }
  if (histogram.size() != model.numExperts)
    return absl::InvalidArgumentError(
        absl::StrCat(document->place("/histogram"), ": key 'histogram': found ",
                     histogram.size(), " counts, expected one for each of ",
                     model.numExperts, " experts"));
  return histogram;
}

std::string histogramJson(std::span<const uint64_t> histogram) {
  std::string out = "{\"histogram\": [";
  for (size_t e = 0; e < histogram.size(); ++e)
    absl::StrAppend(&out, e ? ", " : "", histogram[e]);
  return out + "]}\n";
}

absl::StatusOr<PruningChoice>
choosePruned(const ModelConfig &model, double ratio,
             std::span<const uint64_t> histogram) {
  if (!(ratio >= 0 && ratio < 1))
    return absl::InvalidArgumentError(
        absl::StrCat("pruning ratio: found ", ratio,
                     ", expected at least 0 and less than 1"));
  // Without a hash every expert can be chosen.
  std::vector<uint64_t> reach(model.numExperts, 1);
  if (model.hash) {
    absl::StatusOr<HashAnalysis> analysis = analyzeHash(model);
    if (!analysis.ok())
      return analysis.status();
    reach = analysis->expertOutcomes;
  }
  if (!histogram.empty()) {
    if (absl::Status status = checkHistogram(model, histogram, reach);
        !status.ok())
      return status;
  } else if (!model.hash && ratio > 0) {
    return absl::InvalidArgumentError("pruning with a learned router: found no "
                                      "histogram, expected one; measure it "
                                      "with `grokrun eval --expert-histogram`");
  }
  auto use = [&](uint32_t e) {
    return histogram.empty() ? reach[e] : histogram[e];
  };
  std::vector<uint32_t> order;
  double total = 0;
  for (uint32_t e = 0; e < model.numExperts; ++e) {
    total += double(use(e));
    if (reach[e])
      order.push_back(e);
  }
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return use(a) != use(b) ? use(a) < use(b) : a > b;
  });
  PruningChoice choice;
  // A ratio such as 0.29 is not exact in binary: 0.29 * 100 must be 29.
  size_t count = size_t(std::floor(ratio * double(order.size()) + 1e-9));
  choice.dropped.assign(order.begin(), order.begin() + ptrdiff_t(count));
  double touched = 0;
  for (uint32_t e : choice.dropped)
    touched += double(use(e));
  choice.touchedShare = total > 0 ? touched / total : 0;
  std::sort(choice.dropped.begin(), choice.dropped.end());
  return choice;
}

} // namespace grok
