#include "compiler/Pipeline/Policies.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "compiler/Pipeline/Deadline.h"
#include "runtime/bundle/Names.h"

namespace grok {
namespace {

using Severity = CompileHooks::Severity;

/// One pair of policies, and what came of it.
struct Candidate {
  CompileRequest request;
  Lowered lowered;
  std::vector<std::pair<Severity, std::string>> reports;
  double seconds = 0; // of the worst request

  std::string name() const {
    return absl::StrCat(std::string(wordFor(request.options.smPolicy)), "/",
                        std::string(wordFor(request.options.bankPolicy)));
  }
};

absl::StatusOr<Candidate> lowerOne(CompileRequest request) {
  Candidate c{std::move(request), {}, {}};
  CompileHooks hooks;
  hooks.report = [&c](Severity severity, const std::string &message) {
    c.reports.emplace_back(severity, message);
  };
  absl::StatusOr<Lowered> lowered = lower(c.request, hooks);
  if (!lowered.ok())
    return lowered.status();
  c.lowered = *std::move(lowered);
  if (std::optional<Prediction> worst = worstRequest(c.lowered.predictionJson))
    c.seconds = worst->worst.seconds;
  return c;
}

/// The candidates in the order in which ties are decided.
absl::StatusOr<std::vector<Candidate>> lowerAll(const CompileRequest &request) {
  std::vector<Candidate> all;
  for (auto [smWord, sm] : smPolicyWords())
    for (auto [bankWord, bank] : bankPolicyWords()) {
      if ((!request.autoSmPolicy && sm != request.options.smPolicy) ||
          (!request.autoBankPolicy && bank != request.options.bankPolicy))
        continue;
      // Group slots are for models with groups.
      if (request.autoSmPolicy && sm == SmPolicy::kGroup && !request.model.hash)
        continue;
      CompileRequest one = request;
      one.options.smPolicy = sm;
      one.options.bankPolicy = bank;
      absl::StatusOr<Candidate> candidate = lowerOne(std::move(one));
      if (!candidate.ok())
        return candidate.status();
      all.push_back(*std::move(candidate));
    }
  return all;
}

} // namespace

absl::StatusOr<Lowered> lowerWithPolicies(CompileRequest &request,
                                          const CompileHooks &hooks) {
  // The model's IR is the same with all of them.
  if ((!request.autoSmPolicy && !request.autoBankPolicy) ||
      request.emit == EmitPhase::kGrok)
    return lower(request, hooks);
  absl::StatusOr<std::vector<Candidate>> all = lowerAll(request);
  if (!all.ok())
    return all.status();
  Candidate *best = &all->front();
  std::vector<std::string> times;
  for (Candidate &one : *all) {
    times.push_back(
        absl::StrFormat("%s %.3f ms", one.name(), one.seconds * 1e3));
    if (one.seconds < best->seconds)
      best = &one;
  }
  request.options = best->request.options;
  if (hooks.report) {
    for (const auto &[severity, message] : best->reports)
      hooks.report(severity, message);
    hooks.report(Severity::kRemark,
                 absl::StrCat("policies (SM/bank): took ", best->name(),
                              " by the worst predicted request: ",
                              absl::StrJoin(times, ", ")));
  }
  return std::move(best->lowered);
}

} // namespace grok
