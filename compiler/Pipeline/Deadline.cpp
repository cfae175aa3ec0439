#include "compiler/Pipeline/Deadline.h"

#include <algorithm>

#include "absl/strings/str_format.h"

namespace grok {
namespace {

/// What makes a term smaller.
const char *remedy(std::string_view term) {
  constexpr std::pair<std::string_view, const char *> kRemedies[] = {
      {"weights", "lower --max-batch, prune experts, or take a part with more "
                  "bandwidth"},
      {"kv", "shorten the rows, lower --max-batch, or take a part with more "
             "bandwidth"},
      {"hand_over", "lower --max-batch, or take a part with a higher clock"},
      {"router_stall", "route by hash, or take a part with a higher clock"},
      {"head", "take a part with more bandwidth"},
      {"prefill",
       "lower --max-batch, or take a part with faster matrix units"}};
  for (auto [name, text] : kRemedies)
    if (name == term)
      return text;
  return "allow more time";
}

} // namespace

std::optional<Prediction> worstRequest(const std::string &predictionJson) {
  std::optional<Prediction> worst;
  for (const Prediction &one : predictionsOf(predictionJson))
    if (one.key.request && (!worst || one.worst.seconds > worst->worst.seconds))
      worst = one;
  return worst;
}

absl::Status checkDeadline(const std::string &predictionJson, double seconds) {
  std::optional<Prediction> worst = worstRequest(predictionJson);
  if (!worst || worst->worst.terms.empty())
    return absl::InternalError("the plan has no predicted request");
  const Prediction::Case &found = worst->worst;
  if (found.seconds <= seconds)
    return absl::OkStatus();
  const auto &[term, most] = *std::max_element(
      found.terms.begin(), found.terms.end(),
      [](const auto &a, const auto &b) { return a.second < b.second; });
  return absl::FailedPreconditionError(absl::StrFormat(
      "--deadline-ms: found %.3f ms for the worst request of batch %d with %d "
      "+ %d ids, expected at most %.3f ms; most of it is %s, %.3f ms: %s",
      found.seconds * 1e3, worst->key.batch, worst->key.context,
      worst->key.generated, seconds * 1e3, term, most * 1e3, remedy(term)));
}

} // namespace grok
