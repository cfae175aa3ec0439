// What a plan must satisfy before anything trusts it.
#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "runtime/bundle/DecodeMemory.h"
#include "runtime/bundle/PlanTables.h"

namespace grok {

/// Every bound, overlap and consistency of a plan against its model:
/// InvalidArgument "FILE: what: found ..., expected ...".
absl::Status checkPlan(const PlanTables &plan, const ModelConfig &model,
                       std::string_view file);

/// The sizes that the decode kernel's memory depends on.
DecodeShape decodeShape(const ModelConfig &model, const PlanTables &plan);

/// The sizes that the prefill kernels' memory depends on.
PrefillShape prefillShape(const ModelConfig &model, const PlanTables &plan);

/// Whether a layer can end without a hand-over from some slot: it has no tile
/// of attn_out or of an expert's down matrix, or the rows' experts were all
/// pruned. Slots then announce themselves by a word of their own.
bool needsPresence(const PlanTables &plan, const ModelConfig &model);

/// Bytes of a slot's extent of a matrix in one layer.
constexpr uint64_t extentBytes(const PlanTables &plan, const PlanMatrix &matrix,
                               const SlotExtent &extent) {
  return extentBytes(plan.quantization, extent.tileCount, matrix.steps);
}

/// False for the head, which is read once a step.
constexpr bool isPerLayer(MatrixKind kind) { return kind != MatrixKind::kHead; }

/// Of one expert; the other matrices of a layer are everybody's.
constexpr bool isOfExpert(MatrixKind kind) {
  return kind == MatrixKind::kGateUp || kind == MatrixKind::kDown;
}

/// Bytes of one layer's vectors, without padding, and of all vectors.
constexpr uint64_t layerVectorBytes(const ModelConfig &m) {
  return (uint64_t(4) + (m.hash ? 0 : m.numExperts)) * m.hiddenSize * 4;
}

/// "gate_up of expert 3" and the like, for messages.
std::string matrixName(MatrixKind kind, uint32_t expert);

} // namespace grok
