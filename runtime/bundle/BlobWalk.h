// A blob's parts in the order of their bytes.
#pragma once

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "runtime/bundle/PlanTables.h"

namespace grok {

/// One contiguous part of a blob.
struct BlobPart {
  enum class Kind { kExtent, kEmbedding, kVectors } kind = Kind::kExtent;
  uint32_t matrix = 0; // kExtent: index in PlanTables::matrices
  uint32_t slot = 0;   // kExtent, kEmbedding
  uint32_t layer = 0;  // kExtent
  uint64_t offset = 0, bytes = 0;
};

/// Calls `visit` for every part, in ascending offset. The plan has passed
/// checkPlan, so parts don't overlap; what lies between them is padding.
absl::Status
forEachBlobPart(const ModelConfig &model, const PlanTables &plan,
                const std::function<absl::Status(const BlobPart &)> &visit);

} // namespace grok
