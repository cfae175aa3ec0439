// The numbers of a bench run, and how they are shown.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/Executor.h"
#include "runtime/common/StepWork.h"

namespace grok::grokrun {

/// What the compiler predicted of a step, best and worst over every routing
/// outcome.
struct PredictedStep {
  double bestSeconds = 0, worstSeconds = 0;
};

/// Times of the steps; a quantile is the least time that so many steps keep.
struct StepTimes {
  double p50 = 0, p99 = 0, p999 = 0, most = 0, mean = 0; // seconds
};

struct BenchReport {
  std::string device, target;
  BenchRequest request;
  double ceiling = 0; // bytes a second
  double experts = 0; // mean a step, summed over the layers
  StepBytes bytes;    // mean
  StepTimes times;
  uint32_t handOvers = 0;
  std::optional<PredictedStep> predicted;
  std::vector<double> stepSeconds;

  double byteSeconds() const { return bytes.total() / ceiling; }
  double ceilingShare() const { return byteSeconds() / times.mean; }
  double tokensPerSecond() const { return request.rows / times.mean; }
};

/// The step's prediction for this batch and context in a manifest's JSON;
/// nothing if it has none.
std::optional<PredictedStep> findPrediction(const std::string &predictionJson,
                                            uint32_t batch, uint32_t context);

BenchReport benchReport(const Bundle &bundle, const Executor &executor,
                        const BenchRequest &request, BenchResult result,
                        double ceiling);

/// A short table.
std::string benchText(const BenchReport &report);
/// All of it, and every step's time if they are not too many.
std::string benchJson(const BenchReport &report);

} // namespace grok::grokrun
