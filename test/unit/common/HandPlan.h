// A plan made by hand, for tests that need one without the compiler: a few
// slots with contiguous tile ranges, one bank.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/bundle/PlanTables.h"
#include "runtime/bundle/TensorSource.h"

namespace grok::test {

struct HandPlanOptions {
  uint32_t slots = 3, maxBatch = 8, maxSeq = 0; // 0: the model's, at most 1024
  uint32_t blockSteps = 16;
  DType dtype = DType::kBF16;
  std::vector<uint32_t> dropped = {}; // experts without weights
};

/// A valid plan without a decode kernel.
PlanTables handPlan(const ModelConfig &model, const HandPlanOptions &options);

/// The plan's blob in memory.
absl::StatusOr<std::vector<uint8_t>> handBlob(const ModelConfig &model,
                                              const PlanTables &plan,
                                              TensorSource &weights);

} // namespace grok::test
