// The numbers of a bench run of prefill, and how they are shown.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/Executor.h"
#include "runtime/common/PrefillWork.h"

namespace grok::grokrun {

struct PrefillBenchRequest {
  uint32_t rows = 1, promptTokens = 512;
  uint32_t runs = 20;
  uint32_t passTokens = 0; // of a pass at most; 0: as compiled
  uint64_t seed = 0;
};

struct PrefillReport {
  std::string device, target;
  PrefillBenchRequest request;
  uint32_t passTokens = 0;          // 0: no prefill kernels ran
  double ceiling = 0;               // bytes a second
  std::optional<double> matrixRate; // operations a second; none on the CPU
  PrefillWork work;
  std::vector<double> seconds; // of each run, ascending

  double median() const { return seconds[seconds.size() / 2]; }
  double mean() const;
  double byteSeconds() const { return work.bytes.total() / ceiling; }
  double flopSeconds() const {
    return matrixRate ? work.flops.total() / *matrixRate : 0;
  }
  /// What the run could not have been faster than.
  double bound() const;
};

/// Runs the prompts of a batch, one new id a row, again and again.
absl::StatusOr<PrefillReport> benchPrefill(const Bundle &bundle,
                                           Executor &executor,
                                           const PrefillBenchRequest &request);

std::string prefillText(const PrefillReport &report);
std::string prefillJson(const PrefillReport &report);

} // namespace grok::grokrun
