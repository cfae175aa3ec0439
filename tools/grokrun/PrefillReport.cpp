#include "tools/grokrun/PrefillReport.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_format.h"
#include "runtime/bundle/Json.h"
#include "runtime/bundle/Sampling.h"

namespace grok::grokrun {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint32_t kWarmUpRuns = 3, kMostRuns = 100'000;

absl::Status check(const PrefillBenchRequest &request, const Executor &e) {
  absl::Status status =
      checkCount("batch", request.rows, e.maxBatch(), ", the compiled batch");
  status.Update(checkCount("prompt tokens", request.promptTokens,
                           e.maxSeq() - 1,
                           ", the length in use less the new id"));
  status.Update(checkCount("runs", request.runs, kMostRuns, ""));
  return status;
}

} // namespace

double PrefillReport::mean() const {
  return std::accumulate(seconds.begin(), seconds.end(), 0.0) /
         double(seconds.size());
}

double PrefillReport::bound() const {
  return std::max(byteSeconds(), flopSeconds());
}

absl::StatusOr<PrefillReport> benchPrefill(const Bundle &bundle,
                                           Executor &executor,
                                           const PrefillBenchRequest &asked) {
  if (absl::Status s = check(asked, executor); !s.ok())
    return s;
  PrefillReport report;
  report.device = executor.deviceName();
  report.target = bundle.manifest().target.name;
  report.request = asked;
  const uint32_t compiled = bundle.plan().prefill.tokens;
  if (!executor.onCpu() && compiled)
    report.passTokens =
        asked.passTokens ? std::min(asked.passTokens, compiled) : compiled;
  absl::StatusOr<double> ceiling = executor.streamingCeiling();
  if (!ceiling.ok())
    return ceiling.status();
  report.ceiling = *ceiling;
  if (report.passTokens) {
    absl::StatusOr<double> rate = executor.matrixRate();
    if (!rate.ok())
      return rate.status();
    report.matrixRate = *rate;
  }
  BatchRequest request;
  request.prefillTokens = asked.passTokens;
  std::vector<std::vector<int32_t>> ids(asked.rows);
  for (uint32_t row = 0; row != asked.rows; ++row) {
    for (uint32_t position = 0; position != asked.promptTokens; ++position)
      ids[row].push_back(sampling::benchToken(asked.seed, position, row,
                                              bundle.model().vocabSize));
    request.rows.push_back({ids[row], 0, 1});
  }
  report.work =
      prefillWork(bundle.model(), bundle.plan(), ids,
                  executor.onCpu() ? uint32_t(sizeof(float))
                                   : kvElementBytes(bundle.plan().activations));
  for (uint32_t run = 0; run != kWarmUpRuns + asked.runs; ++run) {
    absl::StatusOr<BatchResult> result = executor.run(request);
    if (!result.ok())
      return result.status();
    if (run >= kWarmUpRuns)
      report.seconds.push_back(result->seconds);
  }
  std::sort(report.seconds.begin(), report.seconds.end());
  return report;
}

std::string prefillText(const PrefillReport &r) {
  const double tokens = double(r.request.rows) * r.request.promptTokens;
  std::string out = absl::StrFormat("device       %s\n", r.device);
  absl::StrAppendFormat(
      &out, "prompts      %d x %d tokens, %d runs after %d to warm up, %s\n",
      r.request.rows, r.request.promptTokens, r.request.runs, kWarmUpRuns,
      r.passTokens ? absl::StrFormat("passes of %d", r.passTokens)
                   : "through the decode path");
  if (r.matrixRate)
    absl::StrAppendFormat(&out,
                          "matrix rate  %.1f TFLOP/s without loads\n"
                          "flops        %.4g, %.1f us at that rate\n",
                          *r.matrixRate * 1e-12, r.work.flops.total(),
                          r.flopSeconds() * 1e6);
  else
    absl::StrAppendFormat(&out, "flops        %.4g\n", r.work.flops.total());
  absl::StrAppendFormat(
      &out,
      "ceiling      %.1f GB/s streaming\n"
      "bytes        %.4g, %.1f us at the ceiling\n"
      "time         P50 %.1f us, min %.1f, max %.1f, mean %.1f\n"
      "tokens       %.1f /s\n"
      "ratio        %.3f times the larger of the two, by the mean\n",
      r.ceiling * 1e-9, r.work.bytes.total(), r.byteSeconds() * 1e6,
      r.median() * 1e6, r.seconds.front() * 1e6, r.seconds.back() * 1e6,
      r.mean() * 1e6, tokens / r.mean(), r.mean() / r.bound());
  return out;
}

std::string prefillJson(const PrefillReport &r) {
  const PrefillFlops &f = r.work.flops;
  Json out = {{"device", r.device},
              {"target", r.target},
              {"mode", "prefill"},
              {"batch", r.request.rows},
              {"prompt_tokens", r.request.promptTokens},
              {"pass_tokens", r.passTokens},
              {"runs", r.request.runs},
              {"seed", r.request.seed},
              {"ceiling_gb_s", r.ceiling * 1e-9},
              {"bytes", r.work.bytes.total()},
              {"byte_time_us", r.byteSeconds() * 1e6},
              {"flops",
               {{"projections", f.projections},
                {"attention", f.attention},
                {"experts", f.experts},
                {"dense_mlp", f.denseMlp},
                {"router", f.router},
                {"head", f.head},
                {"total", f.total()}}},
              {"time_us",
               {{"p50", r.median() * 1e6},
                {"min", r.seconds.front() * 1e6},
                {"max", r.seconds.back() * 1e6},
                {"mean", r.mean() * 1e6}}},
              {"ratio", r.mean() / r.bound()}};
  if (r.matrixRate) {
    out["matrix_tflop_s"] = *r.matrixRate * 1e-12;
    out["flop_time_us"] = r.flopSeconds() * 1e6;
  }
  return out.dump(1) + "\n";
}

} // namespace grok::grokrun
