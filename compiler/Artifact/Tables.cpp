#include "compiler/Artifact/Tables.h"

#include "nlohmann/json.hpp"

namespace grok {

using mlir::failed;
using mlir::failure;
using mlir::FailureOr;
using mlir::LogicalResult;
using mlir::success;

template <typename OpT> static auto all(plan::DeviceOp device) {
  return device.getBody().front().getOps<OpT>();
}

static LogicalResult checkComplete(plan::DeviceOp device) {
  auto lacks = [&](const char *pass) {
    return device.emitOpError("is not complete; run --") << pass;
  };
  if (all<plan::MatrixOp>(device).empty() || all<plan::PhaseOp>(device).empty())
    return lacks("grok-form-phases");
  if (!device.find<plan::AssignmentOp>())
    return lacks("plan-assign-slots");
  if (!device.find<plan::PlacementOp>())
    return lacks("plan-place-banks");
  if (!device.find<plan::StreamOp>() || !device.find<plan::ArenaOp>())
    return lacks("plan-memory");
  return success();
}

static std::vector<PlanTables::Expert> expertsOf(plan::ExpertsOp op) {
  using Expert = PlanTables::Expert;
  std::vector<Expert> experts(op.getTotal(), Expert::kUnreachable);
  for (int32_t e : op.getReached())
    experts[e] = Expert::kPruned;
  for (int32_t e : op.getKept())
    experts[e] = Expert::kKept;
  return experts;
}

static PlanMatrix matrixOf(plan::MatrixOp op) {
  PlanMatrix matrix;
  matrix.kind = MatrixKind(op.getKind());
  matrix.expert = op.getExpert().value_or(0);
  matrix.tiles = op.getTiles();
  matrix.steps = op.getSteps();
  llvm::ArrayRef<int32_t> begin = *op.getBegin(), count = *op.getCount(),
                          bank = *op.getBank();
  llvm::ArrayRef<int64_t> offset = *op.getOffset();
  for (size_t s = 0; s < count.size(); ++s)
    matrix.slots.push_back({uint32_t(begin[s]), uint32_t(count[s]),
                            uint32_t(bank[s]), uint64_t(offset[s])});
  return matrix;
}

static std::vector<EmbeddingExtent> embeddingOf(plan::EmbeddingOp op) {
  std::vector<EmbeddingExtent> extents;
  for (size_t s = 0; s < op.getRowCount().size(); ++s)
    extents.push_back({uint32_t(op.getRowBegin()[s]),
                       uint32_t(op.getRowCount()[s]), uint32_t(op.getBank()[s]),
                       uint64_t(op.getOffset()[s])});
  return extents;
}

/// The kernel's fields stay 0 where there is none.
static void fillStream(plan::StreamOp op, bool hasKernel, PlanTables &tables) {
  tables.blockSteps = op.getBlockSteps();
  if (!hasKernel)
    return;
  tables.ringStages = op.getRingStages();
  tables.chunkBytes = op.getChunkBytes();
  tables.inFlightChunks = op.getInFlight();
  tables.paceCycles = op.getPace();
  tables.sharedBytes = op.getSharedBytes();
  tables.threads = op.getThreads();
  tables.cluster = op.getCluster();
}

static PrefillTile prefillOf(plan::PrefillOp op) {
  return {op.getTokens(), op.getTileTokens(), op.getStages(),
          op.getSharedBytes()};
}

FailureOr<PlanTables> toTables(plan::DeviceOp device) {
  if (failed(checkComplete(device)))
    return failure();
  PlanTables tables;
  tables.deviceIndex = device.getDeviceIndex();
  tables.deviceCount = device.getDeviceCount();
  auto target = device.find<plan::TargetOp>();
  tables.slots = target.getSlots();
  auto bounds = device.find<plan::BoundsOp>();
  tables.maxBatch = bounds.getBatch();
  tables.maxSeq = bounds.getSeq();
  tables.dtype = DType(bounds.getDtype());
  tables.quantization = Quantization(bounds.getCodes());
  tables.activations = Activations(bounds.getActivations());
  tables.smPolicy = SmPolicy(device.find<plan::AssignmentOp>().getPolicy());
  auto placement = device.find<plan::PlacementOp>();
  tables.bankPolicy = BankPolicy(placement.getPolicy());
  fillStream(device.find<plan::StreamOp>(), target.getSm() != 0, tables);
  if (auto prefill = device.find<plan::PrefillOp>())
    tables.prefill = prefillOf(prefill);
  tables.experts = expertsOf(device.find<plan::ExpertsOp>());
  for (plan::MatrixOp op : all<plan::MatrixOp>(device))
    tables.matrices.push_back(matrixOf(op));
  if (auto embedding = device.find<plan::EmbeddingOp>())
    tables.embedding = embeddingOf(embedding);
  for (plan::SegmentOp op : all<plan::SegmentOp>(device))
    tables.banks.push_back({op.getOffset(), op.getBytes(), op.getUsedBytes(),
                            op.getLayerStride()});
  tables.vectorsOffset = placement.getVectorsOffset();
  tables.vectorsLayerBytes = placement.getVectorsLayerBytes();
  tables.blobBytes = placement.getBlobBytes();
  for (plan::RegionOp op : all<plan::RegionOp>(device))
    tables.arena.push_back({op.getName().str(), op.getOffset(), op.getBytes(),
                            uint32_t(op.getFirst()), uint32_t(op.getLast())});
  auto arena = device.find<plan::ArenaOp>();
  tables.arenaBytes = arena.getBytes();
  tables.kvReserveBytes = arena.getKvReserve();
  return tables;
}

static nlohmann::json outcomeJson(double us, nlohmann::json experts,
                                  mlir::DictionaryAttr terms) {
  nlohmann::json parts = nlohmann::json::object();
  for (mlir::NamedAttribute term : terms)
    if (auto value = llvm::dyn_cast<mlir::FloatAttr>(term.getValue()))
      parts[term.getName().str()] = value.getValueAsDouble();
  return {{"us", us}, {"experts", experts}, {"terms", parts}};
}

std::string predictionJson(plan::DeviceOp device) {
  nlohmann::json list = nlohmann::json::array();
  for (plan::PredictionOp op : all<plan::PredictionOp>(device))
    list.push_back(
        {{"scope", stringifyPredictionScope(op.getScope()).str()},
         {"batch", op.getBatch()},
         {"context", op.getPositions()},
         {"generated", op.getGenerated()},
         {"exhaustive", op.getExhaustive()},
         {"best", outcomeJson(op.getBestUs().convertToDouble(),
                              op.getBestExperts(), op.getBestTerms())},
         {"expected", outcomeJson(op.getExpectedUs().convertToDouble(),
                                  op.getExpectedExperts().convertToDouble(),
                                  op.getExpectedTerms())},
         {"worst", outcomeJson(op.getWorstUs().convertToDouble(),
                               op.getWorstExperts(), op.getWorstTerms())}});
  double clock = device.find<plan::TargetOp>().getClockMhz().convertToDouble();
  return nlohmann::json{{"clock_mhz", clock}, {"predictions", list}}.dump();
}

} // namespace grok
