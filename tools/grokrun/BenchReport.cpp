#include "tools/grokrun/BenchReport.h"

#include <cmath>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/bundle/Json.h"
#include "tools/cli/Text.h"

namespace grok::grokrun {
namespace {

using Json = nlohmann::ordered_json;

/// Steps whose times are all written.
constexpr size_t kMaxListed = 100'000;

double meanOf(const std::vector<uint32_t> &counts) {
  return std::accumulate(counts.begin(), counts.end(), 0.0) /
         double(counts.size());
}

Json bytesJson(const StepBytes &b) {
  return {{"qkv", b.qkv},
          {"attn_out", b.attnOut},
          {"experts", b.experts},
          {"dense_mlp", b.denseMlp},
          {"vectors", b.vectors},
          {"head", b.head},
          {"embedding", b.embedding},
          {"kv", b.kv},
          {"total", b.total()}};
}

Json timesJson(const Distribution &t) {
  return {{"p50", t.p50 * 1e6},
          {"p99", t.p99 * 1e6},
          {"p999", t.p999 * 1e6},
          {"max", t.most * 1e6},
          {"mean", t.mean * 1e6}};
}

} // namespace

BenchReport benchReport(const Bundle &bundle, const Executor &executor,
                        const BenchRequest &request, BenchResult result,
                        double ceiling) {
  BenchReport report;
  report.device = executor.deviceName();
  report.target = bundle.manifest().target.name;
  report.request = request;
  report.ceiling = ceiling;
  report.experts = meanOf(result.experts);
  report.bytes =
      stepBytes(bundle.model(), request.rows, request.context, report.experts,
                bundle.plan().quantization,
                executor.onCpu() ? uint32_t(sizeof(float))
                                 : kvElementBytes(bundle.plan().activations));
  report.times = distributionOf(result.stepSeconds);
  report.handOvers = handOversOfStep(bundle.model());
  report.predicted = foretold(
      bundle, executor,
      {.request = false, .batch = request.rows, .context = request.context});
  report.stepSeconds = std::move(result.stepSeconds);
  return report;
}

std::string benchText(const BenchReport &r) {
  const Distribution &t = r.times;
  std::string out = absl::StrFormat(
      "device       %s\n"
      "steps        %d of batch %d at context %d, after %d to warm up\n"
      "ceiling      %.1f GB/s streaming\n"
      "bytes        %s a step, %.1f us at the ceiling\n"
      "time         P50 %.1f us, P99 %.1f, P99.9 %.1f, max %.1f, mean %.1f\n"
      "tokens       %.1f /s\n"
      "ratio        %.1f %% of the ceiling\n"
      "hand-overs   %d a step\n",
      r.device, r.request.steps, r.request.rows, r.request.context,
      benchWarmUp(r.request.steps), r.ceiling * 1e-9,
      cli::grouped(uint64_t(std::llrint(r.bytes.total()))),
      r.byteSeconds() * 1e6, t.p50 * 1e6, t.p99 * 1e6, t.p999 * 1e6,
      t.most * 1e6, t.mean * 1e6, r.tokensPerSecond(), r.ceilingShare() * 100,
      r.handOvers);
  return out + predictedText(r.predicted, r.target, t);
}

std::string benchJson(const BenchReport &r) {
  Json out = {{"device", r.device},
              {"target", r.target},
              {"mode", "decode"},
              {"batch", r.request.rows},
              {"context", r.request.context},
              {"steps", r.request.steps},
              {"warm_up_steps", benchWarmUp(r.request.steps)},
              {"seed", r.request.seed},
              {"ceiling_gb_s", r.ceiling * 1e-9},
              {"experts_per_step", r.experts},
              {"bytes_per_step", bytesJson(r.bytes)},
              {"byte_time_us", r.byteSeconds() * 1e6},
              {"step_us", timesJson(r.times)},
              {"tokens_per_second", r.tokensPerSecond()},
              {"ceiling_ratio", r.ceilingShare()},
              {"hand_overs_per_step", r.handOvers}};
  if (r.predicted.prediction)
    out["predicted"] = predictedJson(*r.predicted.prediction, r.times);
  if (r.stepSeconds.size() <= kMaxListed) {
    Json &list = out["step_times_us"] = Json::array();
    for (double seconds : r.stepSeconds)
      list.push_back(seconds * 1e6);
  }
  return out.dump(1) + "\n";
}

} // namespace grok::grokrun
