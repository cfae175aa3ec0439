// The numbers of a bench run, and how they are shown.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "runtime/Executor.h"
#include "runtime/common/StepWork.h"
#include "tools/grokrun/Distribution.h"
#include "tools/grokrun/Predicted.h"

namespace grok::grokrun {

struct BenchReport {
  std::string device, target;
  BenchRequest request;
  double ceiling = 0; // bytes a second
  double experts = 0; // mean a step, summed over the layers
  StepBytes bytes;    // mean
  Distribution times; // seconds, of the steps
  uint32_t handOvers = 0;
  Foretold predicted;
  std::vector<double> stepSeconds;

  double byteSeconds() const { return bytes.total() / ceiling; }
  double ceilingShare() const { return byteSeconds() / times.mean; }
  double tokensPerSecond() const { return request.rows / times.mean; }
};

BenchReport benchReport(const Bundle &bundle, const Executor &executor,
                        const BenchRequest &request, BenchResult result,
                        double ceiling);

/// A short table.
std::string benchText(const BenchReport &report);
/// All of it, and every step's time if they are not too many.
std::string benchJson(const BenchReport &report);

} // namespace grok::grokrun
