// A blob's parts, packed in an order that suits the source.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/bundle/BlobWalk.h"
#include "runtime/bundle/TensorSource.h"

namespace grok {

/// Takes bytes and where in the blob they go.
using PartSink = std::function<absl::Status(uint64_t offset,
                                            std::span<const uint8_t> bytes)>;

/// All parts in ascending offset, or one matrix of one layer after the other.
/// The plan has passed checkPlan.
std::vector<BlobPart> packingOrder(const ModelConfig &model,
                                   const PlanTables &plan, bool wholeMatrices);

/// Packs `parts` in order. The bytes of a part come in ascending order; what
/// lies between parts does not come. `done`, if given, is called after each
/// part with the number of those that are done. How far what was quantised is
/// from what the source has.
absl::StatusOr<QuantizationError>
packParts(const ModelConfig &model, const PlanTables &plan,
          TensorSource &weights, std::span<const BlobPart> parts,
          const PartSink &sink,
          const std::function<absl::Status(size_t)> &done = {});

} // namespace grok
