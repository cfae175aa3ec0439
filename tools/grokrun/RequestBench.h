// Whole requests, one after the other: how long each takes, and what the
// machine was doing.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/Executor.h"
#include "tools/grokrun/DeviceSampler.h"

namespace grok::grokrun {

struct RequestBenchOptions {
  uint32_t rows = 1, promptTokens = 512, newTokens = 64;
  uint32_t requests = 1000;
  uint64_t seed = 0;
  uint32_t passTokens = 0;         // of a prefill pass at most; 0: as compiled
  bool resident = false;           // the kernel stays from one to the next
  std::optional<uint32_t> lockMhz; // holds the SM clock there
};

struct RequestTime {
  double at = 0;      // when it began, seconds from the first one's beginning
  double seconds = 0; // from the ids in the host's memory to the new ids there
  double firstSeconds = 0; // until every row had its first new id
};

/// Bytes before the first request, after the last, and at most between two.
struct MemoryUse {
  uint64_t before = 0, after = 0, most = 0;
  void note(uint64_t bytes);
};

struct RequestBenchResult {
  uint32_t warmUp = 0;
  std::vector<RequestTime> requests;
  std::vector<double> idSeconds;   // from each new id of row 0 to the next one
  std::optional<MemoryUse> device; // none on the CPU
  MemoryUse resident;              // of this process
  std::vector<TimedSample> samples;
  std::string noSamples; // why there are none
};

/// Requests that run before those that count: pages, caches and clocks settle.
uint32_t requestWarmUp(uint32_t requests);

/// Request r's row b has the prompt that follows from seed, r and b. Cancelled
/// if a signal asked for an end while the clocks were locked; else errors of
/// the options, of the executor, and of locking the clocks.
absl::StatusOr<RequestBenchResult>
benchRequests(const Bundle &bundle, Executor &executor,
              const RequestBenchOptions &options);

} // namespace grok::grokrun
