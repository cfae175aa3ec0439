// What follows from a plan's facts: sizes, ranges and rules that the passes
// apply and the verifier checks, written down once.
#pragma once

#include "ir/Plan/PlanDialect.h"
#include "runtime/bundle/DecodeMemory.h"
#include "runtime/bundle/ModelConfig.h"
#include "runtime/bundle/PlanTables.h"

namespace grok::plan {

/// The sizes of the model of a device that has its shape, bounds and experts.
/// Only what sizes follow from is set, no constant of the arithmetic.
ModelConfig sizesOf(DeviceOp device);

/// A stream's part of DecodeShape, before or after there is a plan.stream.
struct StreamShape {
  uint32_t blockSteps, ringStages, chunkBytes, cluster;
};
StreamShape streamShape(StreamOp op);
/// What the sizes of buffers depend on. Slots must be assigned.
DecodeShape decodeShape(DeviceOp device, const StreamShape &stream);
/// The same of prefill. There must be a plan.stream.
PrefillShape prefillShape(DeviceOp device, const PrefillTile &tile);
/// k32 steps of the longest row of a matrix.
uint32_t longestRow(DeviceOp device);

/// Bytes of one entry of the KV cache: the CPU keeps float32.
uint32_t kvElementBytes(DeviceOp device);

struct Range {
  uint32_t begin, end;
  bool contains(uint32_t x) const { return begin <= x && x < end; }
};
/// The slots of group `group` under policy `group`: slots / groups each,
/// rounded down.
Range groupSlots(uint32_t slots, uint32_t groups, uint32_t group);
/// The group of an expert; 0 where experts have none.
uint32_t groupOf(ExpertsOp experts, uint32_t expert);

/// The slots that may compute tiles of `matrix`.
Range allowedSlots(DeviceOp device, MatrixOp matrix, SlotPolicy policy);
/// The bank that slot `slot`'s extent of `matrix` lies in.
uint32_t bankOf(DeviceOp device, MatrixOp matrix, PlacePolicy policy,
                uint32_t slot);

inline bool isExpertMatrix(StreamKind kind) {
  return kind == StreamKind::GateUp || kind == StreamKind::Down;
}
/// The phase that consumes a matrix.
PhaseKind phaseOf(StreamKind kind);
/// Layers that have a matrix of this kind: all, or one for the head.
uint32_t layersOf(DeviceOp device, StreamKind kind);
/// Bytes of the float32 vectors of one layer: four norms and a learned router's
/// matrix.
uint64_t vectorLayerBytes(const ModelConfig &sizes);

} // namespace grok::plan
