// The numbers of a bench run of requests, and how they are shown.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/grokrun/Distribution.h"
#include "tools/grokrun/Predicted.h"
#include "tools/grokrun/RequestBench.h"

namespace grok::grokrun {

struct RequestReport {
  std::string device, target;
  RequestBenchOptions options;
  std::optional<double> deadline; // seconds
  uint32_t passTokens = 0; // of a prefill pass; 0: no prefill kernels ran
  RequestBenchResult run;
  Distribution total, first; // seconds, of a request and its first ids
  std::optional<Distribution>
      id; // of each id after the first, if there are any
  Foretold predicted;
  size_t misses = 0; // of the deadline
  /// Requests that missed the deadline or took kSlowShare of the median, the
  /// slowest first, kMostSlow of them at most.
  std::vector<size_t> slow;

  static constexpr double kSlowShare = 1.05;
  static constexpr size_t kMostSlow = 20;
  /// The reading beside a request; null without readings.
  const TimedSample *beside(size_t request) const;
};

RequestReport requestReport(const Bundle &bundle, const Executor &executor,
                            const RequestBenchOptions &options,
                            std::optional<double> deadline,
                            RequestBenchResult run);

/// A short table.
std::string requestText(const RequestReport &report);
/// All of it, and every request's time.
std::string requestJson(const RequestReport &report);

} // namespace grok::grokrun
