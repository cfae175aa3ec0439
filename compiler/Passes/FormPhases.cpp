// --grok-form-phases: a model becomes the phases, hand-overs and matrices of a
// decode step on one target.
#include "compiler/Passes/FormPhases.h"

#include <algorithm>

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"

#include "compiler/Routing/Routing.h"
#include "ir/Model/ModelStructure.h"
#include "ir/Plan/PlanFacts.h"
#include "runtime/bundle/KernelAbi.h"

namespace grok {
#define GEN_PASS_DEF_FORMPHASES
#include "compiler/Passes/Passes.h.inc"
} // namespace grok

using namespace mlir;
using namespace grok;
using plan::EdgeScope;
using plan::EdgeSync;
using plan::PhaseKind;
using plan::StreamKind;

namespace {

/// Places of a plan's tables, one a matrix and slot: what a bundle's reader
/// takes, and what is compiled in seconds.
constexpr uint64_t kMostExtents = 1 << 24;
/// The first that has an instruction for fp8.
constexpr uint32_t kLeastFp8Sm = 90;

struct Bounds {
  uint32_t batch, seq;
  DType dtype;
  Quantization quantization;
  Activations activations;
};

/// Puts the parts of a device into its body.
class DeviceBuilder {
public:
  DeviceBuilder(OpBuilder &builder, Location loc, const ModelConfig &model,
                const Target &target, const Bounds &bounds)
      : b(builder), loc(loc), model(model), target(target), bounds(bounds) {}

  void facts(ArrayRef<uint32_t> kept, ArrayRef<uint32_t> reached);
  void phases();
  LogicalResult matrices(ArrayRef<uint32_t> kept);

private:
  void targetFacts();
  void phase(PhaseKind kind, ArrayRef<StringRef> reads,
             ArrayRef<StringRef> writes);
  void edge(PhaseKind from, PhaseKind to, StringRef buffer, uint64_t words,
            EdgeScope scope = EdgeScope::SameLayer,
            EdgeSync sync = EdgeSync::Epoch);
  void edges();
  void matrix(StreamKind kind, std::optional<uint32_t> expert = {});

  OpBuilder &b;
  Location loc;
  const ModelConfig &model;
  const Target &target;
  const Bounds &bounds;
};

struct FormPhases : grok::impl::FormPhasesBase<FormPhases> {
  using FormPhasesBase::FormPhasesBase;
  FormPhases(Target target, FormPhasesOptions options)
      : FormPhasesBase(std::move(options)), given(std::move(target)) {}
  FormPhases(const FormPhases &other) = default;

  void runOnOperation() override;

private:
  FailureOr<Target> readTarget(ir::ModelOp modelOp);
  FailureOr<Bounds> readBounds(ir::ModelOp modelOp, const ModelConfig &model,
                               const Target &device);
  /// The experts that some token at some position can choose.
  std::vector<uint32_t> reachedExperts(const ModelConfig &model,
                                       ir::ExpertsOp experts);

  std::optional<Target> given;
};

} // namespace

//===----------------------------------------------------------------------===//
// Facts
//===----------------------------------------------------------------------===//

void DeviceBuilder::targetFacts() {
  std::vector<double> slots, rates;
  for (const StreamPoint &point : target.streamCurve) {
    slots.push_back(point.sms);
    rates.push_back(point.rate);
  }
  double handOver[] = {target.handOverUs, target.handOverStreamUs};
  double launch[] = {target.launchUs, target.launchMaxUs};
  plan::TargetOp::create(
      b, loc, target.name, target.sm, target.smCount,
      target.sharedBytesPerBlock, target.memoryBytes, target.bankCount,
      target.bankAlign, APFloat(target.bandwidthGbS),
      APFloat(target.streamEfficiency), slots, rates, handOver, launch,
      APFloat(target.clockMhz), APFloat(target.sharedBytesPerCycle));
}

static SmallVector<int32_t> asI32(ArrayRef<uint32_t> values) {
  return SmallVector<int32_t>(values.begin(), values.end());
}

void DeviceBuilder::facts(ArrayRef<uint32_t> kept, ArrayRef<uint32_t> reached) {
  targetFacts();
  plan::ShapeOp::create(
      b, loc, model.vocabSize, model.numLayers, model.hiddenSize,
      model.numHeads, model.numKvHeads, model.headDim, model.expertsPerToken,
      model.expertWidth, model.denseWidth,
      model.hash ? plan::RouterKind::Hash : plan::RouterKind::Learned,
      model.tiedHead);
  plan::BoundsOp::create(b, loc, bounds.batch, bounds.seq,
                         plan::ElementKind(bounds.dtype),
                         plan::OperandKind(bounds.activations),
                         plan::CodeKind(bounds.quantization));
  IntegerAttr groups = model.hash
                           ? b.getI32IntegerAttr(int32_t(model.hash->numGroups))
                           : nullptr;
  plan::ExpertsOp::create(b, loc, b.getI32IntegerAttr(model.numExperts), groups,
                          b.getDenseI32ArrayAttr(asI32(kept)),
                          b.getDenseI32ArrayAttr(asI32(reached)));
}

//===----------------------------------------------------------------------===//
// Phases, hand-overs and matrices
//===----------------------------------------------------------------------===//

void DeviceBuilder::phase(PhaseKind kind, ArrayRef<StringRef> reads,
                          ArrayRef<StringRef> writes) {
  plan::PhaseOp::create(b, loc, kind, b.getStrArrayAttr(reads),
                        b.getStrArrayAttr(writes));
}

void DeviceBuilder::edge(PhaseKind from, PhaseKind to, StringRef buffer,
                         uint64_t words, EdgeScope scope, EdgeSync sync) {
  plan::EdgeOp::create(b, loc, from, to, buffer, words, scope, sync);
}

void DeviceBuilder::phases() {
  bool learned = !model.hash;
  phase(PhaseKind::Qkv, {"y_moe", "candidates"}, {"q", "kv_new", "kv"});
  phase(PhaseKind::Attention, {"q", "kv_new", "kv"}, {"partials"});
  phase(PhaseKind::Merge, {"partials"}, {"attn"});
  phase(PhaseKind::AttnOut, {"attn"}, {"y_attn"});
  if (learned)
    phase(PhaseKind::Route, {"y_attn"}, {"router"});
  phase(PhaseKind::GateUp, {learned ? "router" : "y_attn"}, {"act"});
  phase(PhaseKind::Down, {"act"}, {"y_moe"});
  phase(PhaseKind::Head, {"y_moe"}, {"candidates"});
  edges();
}

void DeviceBuilder::edges() {
  uint64_t rows = bounds.batch;
  uint64_t attn = rows * model.numHeads * model.headDim;
  uint64_t kv = rows * 2 * model.numKvHeads * model.headDim;
  uint64_t partials = rows * model.numHeads * ceilDiv(bounds.seq, kKvBlock) *
                      (model.headDim + 2);
  // Two values a word, but for split activations.
  DecodeShape shape{};
  shape.expertsPerToken = model.expertsPerToken;
  shape.expertWidth = model.expertWidth;
  shape.denseWidth = model.denseWidth;
  shape.planes = bounds.activations == Activations::kSplit ? 2 : 1;
  uint64_t hidden = rows * shape.outputWords(model.hiddenSize);
  uint64_t merged = rows * shape.operandWords(model.numHeads * model.headDim);
  uint64_t act = rows * shape.actWords();
  edge(PhaseKind::Qkv, PhaseKind::Attention, "q", attn);
  edge(PhaseKind::Qkv, PhaseKind::Attention, "kv_new", kv);
  edge(PhaseKind::Qkv, PhaseKind::Attention, "kv", kv, EdgeScope::NextStep,
       EdgeSync::StepFence);
  edge(PhaseKind::Attention, PhaseKind::Merge, "partials", partials);
  edge(PhaseKind::Merge, PhaseKind::AttnOut, "attn", merged);
  if (model.hash) {
    edge(PhaseKind::AttnOut, PhaseKind::GateUp, "y_attn", hidden);
  } else {
    edge(PhaseKind::AttnOut, PhaseKind::Route, "y_attn", hidden);
    edge(PhaseKind::Route, PhaseKind::GateUp, "router",
         rows * model.numExperts);
  }
  edge(PhaseKind::GateUp, PhaseKind::Down, "act", act);
  edge(PhaseKind::Down, PhaseKind::Qkv, "y_moe", hidden, EdgeScope::NextLayer);
  edge(PhaseKind::Down, PhaseKind::Head, "y_moe", hidden);
  edge(PhaseKind::Head, PhaseKind::Qkv, "candidates", 2 * rows * target.smCount,
       EdgeScope::NextStep);
}

void DeviceBuilder::matrix(StreamKind kind, std::optional<uint32_t> expert) {
  MatrixShape shape = matrixShape(model, MatrixKind(kind));
  IntegerAttr index =
      expert ? b.getI32IntegerAttr(int32_t(*expert)) : IntegerAttr();
  plan::MatrixOp::create(
      b, loc, plan::StreamKindAttr::get(b.getContext(), kind), index,
      b.getI32IntegerAttr(int32_t(ceilDiv(shape.rows, kTileRows))),
      b.getI32IntegerAttr(int32_t(ceilDiv(shape.k, kTileK))), nullptr, nullptr,
      nullptr, nullptr);
}

LogicalResult DeviceBuilder::matrices(ArrayRef<uint32_t> kept) {
  if (uint64_t extents = 2 * uint64_t(kept.size()) * target.smCount;
      extents > kMostExtents)
    return mlir::emitError(loc, "found ")
           << kept.size() << " experts on " << target.smCount
           << " slots, whose matrices have " << extents
           << " extents, expected at most " << kMostExtents
           << "; compile for a part with fewer SMs, or fewer experts";
  matrix(StreamKind::Qkv);
  matrix(StreamKind::AttnOut);
  for (auto [ofExpert, ofDense] :
       {std::pair(StreamKind::GateUp, StreamKind::DenseGateUp),
        std::pair(StreamKind::Down, StreamKind::DenseDown)}) {
    for (uint32_t expert : kept)
      matrix(ofExpert, expert);
    if (model.denseWidth)
      matrix(ofDense);
  }
  matrix(StreamKind::Head);
  return success();
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

FailureOr<Target> FormPhases::readTarget(ir::ModelOp modelOp) {
  if (given)
    return *given;
  absl::StatusOr<Target> found = findTarget(target);
  if (!found.ok())
    return modelOp.emitError(std::string(found.status().message()));
  return *std::move(found);
}

FailureOr<Bounds> FormPhases::readBounds(ir::ModelOp modelOp,
                                         const ModelConfig &model,
                                         const Target &device) {
  auto error = [&](StringRef option) {
    return modelOp.emitError("option '") << option << "': found ";
  };
  if (maxBatch < 1 || maxBatch > abi::kMaxBatch)
    return error("max-batch")
           << maxBatch.getValue() << ", expected 1 to " << abi::kMaxBatch;
  uint32_t seq = maxSeq ? uint32_t(maxSeq) : model.defaultMaxSeq();
  if (seq > model.maxPositions)
    return error("max-seq") << seq << ", expected at most the model's context, "
                            << model.maxPositions;
  Bounds bounds{maxBatch, seq, model.checkpointDType, Quantization::kNone,
                Activations::kSingle};
  if (activations == "split")
    bounds.activations = Activations::kSplit;
  else if (activations != "single")
    return error("activations") << "'" << activations.getValue()
                                << "', expected 'single' or 'split'";
  if (dtype == "f16")
    bounds.dtype = DType::kF16;
  else if (dtype == "bf16")
    bounds.dtype = DType::kBF16;
  else if (!dtype.empty())
    return error("dtype") << "'" << dtype.getValue()
                          << "', expected 'bf16' or 'f16'";
  if (quantization == "int8")
    bounds.quantization = Quantization::kInt8;
  else if (quantization == "fp8")
    bounds.quantization = Quantization::kFp8;
  else if (quantization != "none")
    return error("quantization") << "'" << quantization.getValue()
                                 << "', expected 'none', 'int8' or 'fp8'";
  if (bounds.quantization == Quantization::kFp8 && device.sm &&
      device.sm < kLeastFp8Sm)
    return modelOp.emitError("found weights of fp8 for ")
           << device.name << " (sm_" << device.sm << "), which converts none, "
           << "expected sm_" << kLeastFp8Sm
           << " or later; compile with --dtype int8";
  return bounds;
}

std::vector<uint32_t> FormPhases::reachedExperts(const ModelConfig &model,
                                                 ir::ExpertsOp experts) {
  std::vector<uint32_t> reached;
  std::optional<HashAnalysis> analysis;
  if (model.hash) {
    absl::StatusOr<HashAnalysis> result = analyzeHash(model);
    if (result.ok())
      analysis = *std::move(result);
    else
      experts.emitRemark("every expert is taken as reached: ")
          << std::string(result.status().message());
  }
  for (uint32_t e = 0; e < model.numExperts; ++e)
    if (!analysis || analysis->reachable(e))
      reached.push_back(e);
  return reached;
}

void FormPhases::runOnOperation() {
  ModuleOp module = getOperation();
  auto models = module.getOps<ir::ModelOp>();
  if (models.empty() || std::next(models.begin()) != models.end()) {
    module.emitError("expected one 'grok.model' to plan, found ")
        << std::distance(models.begin(), models.end());
    return signalPassFailure();
  }
  ir::ModelOp modelOp = *models.begin();
  FailureOr<ir::ModelParts> parts = ir::matchModel(modelOp);
  FailureOr<Target> device = readTarget(modelOp);
  if (failed(parts) || failed(device))
    return signalPassFailure();
  ModelConfig model = ir::configOf(modelOp, *parts);
  FailureOr<Bounds> bounds = readBounds(modelOp, model, *device);
  if (failed(bounds))
    return signalPassFailure();

  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  Location loc = modelOp.getLoc();
  auto deviceOp =
      plan::DeviceOp::create(builder, loc, "decode", modelOp.getSymName(),
                             /*device_index=*/0, /*device_count=*/1);
  builder.setInsertionPointToStart(&deviceOp.getBody().emplaceBlock());
  DeviceBuilder contents(builder, loc, model, *device, *bounds);
  auto kept = parts->experts.keptExperts();
  contents.facts(kept, reachedExperts(model, parts->experts));
  contents.phases();
  if (failed(contents.matrices(kept)))
    return signalPassFailure();
}

std::unique_ptr<Pass> grok::createFormPhasesFor(Target target,
                                                FormPhasesOptions options) {
  return std::make_unique<FormPhases>(std::move(target), std::move(options));
}
