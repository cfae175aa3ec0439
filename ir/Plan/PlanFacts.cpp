#include "ir/Plan/PlanFacts.h"

#include <algorithm>

namespace grok::plan {

ModelConfig sizesOf(DeviceOp device) {
  auto shape = device.find<ShapeOp>();
  ModelConfig m;
  m.vocabSize = shape.getVocab();
  m.hiddenSize = shape.getHidden();
  m.numLayers = shape.getLayers();
  m.numHeads = shape.getHeads();
  m.numKvHeads = shape.getKvHeads();
  m.headDim = shape.getHeadDim();
  m.numExperts = device.find<ExpertsOp>().getTotal();
  m.expertsPerToken = shape.getExpertsPerToken();
  m.expertWidth = shape.getExpertWidth();
  m.denseWidth = shape.getDenseWidth();
  m.maxPositions = device.find<BoundsOp>().getSeq();
  m.tiedHead = shape.getTied();
  if (shape.getRouter() == RouterKind::Hash)
    m.hash.emplace();
  return m;
}

uint32_t longestRow(DeviceOp device) {
  uint32_t steps = 0;
  for (MatrixOp matrix : device.getBody().front().getOps<MatrixOp>())
    steps = std::max(steps, matrix.getSteps());
  return steps;
}

/// Largest tile count of a slot in a matrix whose sums stay in shared memory.
static uint32_t maxDownTiles(DeviceOp device) {
  int32_t most = 0;
  for (MatrixOp matrix : device.getBody().front().getOps<MatrixOp>()) {
    if (matrix.getKind() != StreamKind::Down &&
        matrix.getKind() != StreamKind::DenseDown)
      continue;
    llvm::ArrayRef<int32_t> counts = *matrix.getCount();
    for (int32_t count : counts)
      most = std::max(most, count);
  }
  return uint32_t(most);
}

StreamShape streamShape(StreamOp op) {
  return {op.getBlockSteps(), op.getRingStages(), op.getChunkBytes(),
          op.getCluster()};
}

DecodeShape decodeShape(DeviceOp device, const StreamShape &stream) {
  ModelConfig m = sizesOf(device);
  auto bounds = device.find<BoundsOp>();
  DecodeShape s{};
  s.hidden = m.hiddenSize;
  s.heads = m.numHeads;
  s.kvHeads = m.numKvHeads;
  s.headDim = m.headDim;
  s.experts = m.numExperts;
  s.expertsPerToken = m.expertsPerToken;
  s.expertWidth = m.expertWidth;
  s.denseWidth = m.denseWidth;
  s.vocab = m.vocabSize;
  s.layers = m.numLayers;
  s.learnedRouting = !m.hash.has_value();
  s.slots = device.find<TargetOp>().getSlots();
  s.maxBatch = bounds.getBatch();
  s.maxSeq = bounds.getSeq();
  s.planes = bounds.getActivations() == OperandKind::Split ? 2 : 1;
  s.blockSteps = stream.blockSteps;
  s.ringStages = stream.ringStages;
  s.chunkBytes = stream.chunkBytes;
  s.cluster = stream.cluster;
  auto matrices = device.getBody().front().getOps<MatrixOp>();
  s.matrices = uint32_t(std::distance(matrices.begin(), matrices.end()));
  s.maxDownTiles = maxDownTiles(device);
  return s;
}

PrefillShape prefillShape(DeviceOp device, const PrefillTile &tile) {
  return {decodeShape(device, streamShape(device.find<StreamOp>())), tile};
}

uint32_t kvElementBytes(DeviceOp device) {
  bool cpu = device.find<TargetOp>().getSm() == 0;
  auto activations = Activations(device.find<BoundsOp>().getActivations());
  return cpu ? 4 : grok::kvElementBytes(activations);
}

Range groupSlots(uint32_t slots, uint32_t groups, uint32_t group) {
  uint32_t width = slots / groups;
  return {group * width, (group + 1) * width};
}

uint32_t groupOf(ExpertsOp experts, uint32_t expert) {
  if (!experts.getGroups())
    return 0;
  return expert / (experts.getTotal() / *experts.getGroups());
}

Range allowedSlots(DeviceOp device, MatrixOp matrix, SlotPolicy policy) {
  uint32_t slots = device.find<TargetOp>().getSlots();
  auto experts = device.find<ExpertsOp>();
  if (policy == SlotPolicy::All || !isExpertMatrix(matrix.getKind()) ||
      !experts.getGroups())
    return {0, slots};
  return groupSlots(slots, *experts.getGroups(),
                    groupOf(experts, *matrix.getExpert()));
}

uint32_t bankOf(DeviceOp device, MatrixOp matrix, PlacePolicy policy,
                uint32_t slot) {
  uint32_t banks = device.find<TargetOp>().getBankCount();
  if (!isExpertMatrix(matrix.getKind()))
    return slot % banks;
  uint32_t expert = *matrix.getExpert();
  if (policy == PlacePolicy::Striped)
    return (expert + slot) % banks;
  auto experts = device.find<ExpertsOp>();
  uint32_t groups = experts.getGroups().value_or(1);
  uint32_t inGroup = expert % (experts.getTotal() / groups);
  return (groupOf(experts, expert) + inGroup) % banks;
}

PhaseKind phaseOf(StreamKind kind) {
  switch (kind) {
  case StreamKind::Qkv:
    return PhaseKind::Qkv;
  case StreamKind::AttnOut:
    return PhaseKind::AttnOut;
  case StreamKind::GateUp:
  case StreamKind::DenseGateUp:
    return PhaseKind::GateUp;
  case StreamKind::Down:
  case StreamKind::DenseDown:
    return PhaseKind::Down;
  case StreamKind::Head:
    return PhaseKind::Head;
  }
  llvm_unreachable("unknown matrix kind");
}

uint32_t layersOf(DeviceOp device, StreamKind kind) {
  return kind == StreamKind::Head ? 1 : device.find<ShapeOp>().getLayers();
}

uint64_t vectorLayerBytes(const ModelConfig &sizes) {
  uint64_t floats = 4ull * sizes.hiddenSize;
  if (!sizes.hash)
    floats += uint64_t(sizes.numExperts) * sizes.hiddenSize;
  return floats * 4;
}

} // namespace grok::plan
