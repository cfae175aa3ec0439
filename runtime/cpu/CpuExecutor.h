// The CPU executor with what tests and benchmarks choose: threads and
// instruction set.
#pragma once

#include <memory>
#include <span>

#include "runtime/Executor.h"
#include "runtime/cpu/Kernels.h"

namespace grok::cpu {

struct CpuOptions {
  unsigned threads = 0;             // 0: chosen from the machine and the model
  const Kernels *kernels = nullptr; // null: the machine's best
};

/// The executor of a plan over a blob, which must outlive it. Results depend on
/// neither option. InvalidArgument if the plan or the blob doesn't fit, or the
/// limits (resolveLimits); ResourceExhausted without memory.
absl::StatusOr<std::unique_ptr<Executor>>
createExecutor(const ModelConfig &model, const PlanTables &plan,
               std::span<const uint8_t> blob, const LoadLimits &limits,
               const CpuOptions &options);

} // namespace grok::cpu
