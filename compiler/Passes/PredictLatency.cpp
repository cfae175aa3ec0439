// --plan-predict: latency of a step and a request, best and worst over every
// routing outcome. docs/dialects/rationale-plan.md has the formulas and what
// they were held against.
#include <algorithm>
#include <limits>
#include <map>
#include <optional>

#include "mlir/IR/Builders.h"

#include "compiler/Passes/ExpertSets.h"
#include "compiler/Passes/Passes.h"
#include "compiler/Passes/PlanTarget.h"
#include "compiler/Passes/PrefillTime.h"
#include "compiler/Routing/PositionReach.h"
#include "ir/Model/ModelStructure.h"
#include "ir/Plan/PlanFacts.h"

namespace grok {
#define GEN_PASS_DEF_PREDICTLATENCY
#include "compiler/Passes/Passes.h.inc"
} // namespace grok

using namespace mlir;
using namespace grok;
using namespace grok::plan;

namespace {

/// The reference request: prompt and new positions.
constexpr uint32_t kPrompt = 512, kGenerated = 64;

/// A time in microseconds, as the sum of its parts.
struct Terms {
  double prefill = 0;     // prompts through prefill's kernels
  double weights = 0;     // streaming the layers' weights
  double kv = 0;          // streaming the KV cache
  double handOver = 0;    // hand-overs and compute that the stream doesn't hide
  double routerStall = 0; // a learned router's decision, which stops the stream
  double head = 0;        // the output head
  double choice = 0;      // agreeing on the next tokens
  double launch = 0;

  double total() const {
    return prefill + weights + kv + handOver + routerStall + head + choice +
           launch;
  }
  void add(const Terms &other) {
    prefill += other.prefill;
    weights += other.weights;
    kv += other.kv;
    handOver += other.handOver;
    routerStall += other.routerStall;
    head += other.head;
    choice += other.choice;
    launch += other.launch;
  }
};

/// Times of one phase of a layer, in microseconds.
struct PhaseTimes {
  PhaseKind kind;
  bool waits = false; // for what the phase before hands over
  double stream = 0;  // what it takes from the weight stream
  double compute = 0; // from the last word's arrival to handing over, but for
                      // what the stream makes it wait
};

/// What the layers of a step cost with one set of experts, whatever the
/// context.
struct Outcome {
  uint32_t experts = 0;
  std::vector<PhaseTimes> phases;
};

class LatencyModel {
public:
  explicit LatencyModel(DeviceOp device);
  Outcome outcome(const ExpertSet &set);
  /// A step at `context` positions in the cache.
  Terms step(const Outcome &outcome, uint32_t batch, uint32_t context,
             bool withHead);
  /// Prompts through prefill, with the first new ids; their layers use
  /// `experts`.
  Terms prompts(uint32_t batch, uint32_t prompt, uint32_t experts);
  bool hasPrefill() { return bool(device.find<PrefillOp>()); }
  const Target &facts() const { return target; }
  using SlotBytes = std::vector<uint64_t>;
  double streamUs(const SlotBytes &bytes) const;
  double computeUs(const SlotBytes &bytes) const;

private:
  double layerUs(const std::vector<PhaseTimes> &phases, double handOver,
                 bool stops);
  double kvUs(uint32_t batch, uint32_t context);
  double handOverUs(uint32_t batch);

  DeviceOp device;
  Target target;
  ModelConfig sizes;
  double headUs = 0;
  /// How far the stream may be ahead of what is consumed. Before memory is
  /// planned, as far as it likes.
  double ringUs = std::numeric_limits<double>::infinity();
};

/// A best or worst case.
struct Case {
  Terms terms;
  uint32_t experts = 0; // of a layer
};
struct Cases {
  Case best, worst;
  bool exhaustive = true; // no set of experts was left out
};

/// The outcomes among which are the best and the worst of a step, whatever the
/// context.
struct StepBounds {
  std::vector<Outcome> cheapest, dearest;
  bool exhaustive = true; // no set of experts was left out
};

/// What the routing can come to, from the experts that rows can choose.
class Routing {
public:
  Routing(DeviceOp device, LatencyModel &model);
  /// With `batch` rows at any positions of the sequence.
  const StepBounds &anywhere(uint32_t batch);
  /// With all rows at this position.
  const StepBounds &at(uint32_t position, uint32_t batch);

private:
  const StepBounds &of(const std::vector<uint32_t> &reached, uint32_t batch);

  DeviceOp device;
  LatencyModel &model;
  ExpertSets sets;
  std::optional<PositionReach> reach; // none: any reached expert anywhere
  std::map<std::pair<std::vector<uint32_t>, uint32_t>, StepBounds>
      known; // of reached experts and a batch
};

struct PredictLatency : grok::impl::PredictLatencyBase<PredictLatency> {
  using PredictLatencyBase::PredictLatencyBase;
  void runOnOperation() override;

private:
  void predict(LatencyModel &model, Routing &routing, uint32_t batch);
  /// Every step takes its own best or worst case: what rows chose before limits
  /// nothing.
  Cases request(LatencyModel &model, Routing &routing, uint32_t batch,
                uint32_t prompt, uint32_t generated);
  void add(PredictionScope scope, uint32_t batch, uint32_t context,
           uint32_t generated, const Cases &cases);
};

} // namespace

//===----------------------------------------------------------------------===//
// Costs
//===----------------------------------------------------------------------===//

LatencyModel::LatencyModel(DeviceOp device)
    : device(device), target(targetOf(device.find<TargetOp>())),
      sizes(sizesOf(device)) {
  for (MatrixOp matrix : device.getBody().front().getOps<MatrixOp>()) {
    if (matrix.getKind() != StreamKind::Head)
      continue;
    SlotBytes bytes(target.smCount);
    for (uint32_t s = 0; s < bytes.size(); ++s)
      bytes[s] = matrix.extentBytes(s);
    headUs =
        std::max(streamUs(bytes), target.handOverStreamUs + computeUs(bytes));
  }
  if (auto stream = device.find<StreamOp>(); stream && stream.getRingStages())
    ringUs = double(stream.getRingStages()) * stream.getChunkBytes() *
             target.smCount / target.streamBytesPerSecond(target.smCount) * 1e6;
}

/// Slots that stream share the bandwidth that so many slots reach, until the
/// shortest of them is done; then the others go on.
double LatencyModel::streamUs(const SlotBytes &bytes) const {
  SlotBytes sorted(bytes);
  std::sort(sorted.begin(), sorted.end());
  double us = 0;
  uint64_t done = 0;
  for (uint32_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i] == done)
      continue; // it ends with the one before
    uint32_t streaming = uint32_t(sorted.size()) - i;
    double rate = target.streamBytesPerSecond(streaming);
    us += double(sorted[i] - done) * streaming / rate * 1e6;
    done = sorted[i];
  }
  return us;
}

double LatencyModel::computeUs(const SlotBytes &bytes) const {
  uint64_t most = *std::max_element(bytes.begin(), bytes.end());
  return double(most) / (target.sharedBytesPerCycle * target.clockMhz);
}

/// The cache is read in tasks of a row, a kv head and a block of positions,
/// dealt to the slots in turn.
double LatencyModel::kvUs(uint32_t batch, uint32_t context) {
  uint64_t tasks =
      uint64_t(batch) * sizes.numKvHeads * ceilDiv(context, kKvBlock);
  uint64_t taskBytes = 2ull * kKvBlock * sizes.headDim * kvElementBytes(device);
  SlotBytes bytes(target.smCount);
  for (uint32_t s = 0; s < bytes.size(); ++s)
    bytes[s] = (tasks / bytes.size() + (s < tasks % bytes.size())) * taskBytes;
  return streamUs(bytes);
}

Outcome LatencyModel::outcome(const ExpertSet &set) {
  std::vector<bool> chosen(device.find<ExpertsOp>().getTotal());
  for (uint32_t e : set)
    chosen[e] = true;
  std::map<PhaseKind, SlotBytes> phases;
  for (MatrixOp matrix : device.getBody().front().getOps<MatrixOp>()) {
    bool runs =
        matrix.getKind() != StreamKind::Head &&
        (!isExpertMatrix(matrix.getKind()) || chosen[*matrix.getExpert()]);
    if (!runs)
      continue;
    SlotBytes &bytes = phases[phaseOf(matrix.getKind())];
    bytes.resize(target.smCount);
    for (uint32_t s = 0; s < bytes.size(); ++s)
      bytes[s] += matrix.extentBytes(s);
  }
  Outcome result;
  result.experts = uint32_t(set.size());
  for (uint32_t kind = 0; kind != uint32_t(PhaseKind::Head); ++kind) {
    PhaseTimes times{PhaseKind(kind)};
    times.waits =
        llvm::any_of(device.getBody().front().getOps<PhaseOp>(),
                     [&](PhaseOp p) { return p.getKind() == times.kind; });
    if (auto it = phases.find(times.kind); it != phases.end()) {
      times.stream = streamUs(it->second);
      times.compute = computeUs(it->second);
    }
    result.phases.push_back(times);
  }
  return result;
}

/// A layer once layers follow one another evenly. All times are counted in
/// microseconds, the stream too: `streamed` and `consumed` are how much of it
/// has come and gone. With a learned router it `stops` until the experts are
/// known.
double LatencyModel::layerUs(const std::vector<PhaseTimes> &phases,
                             double handOver, bool stops) {
  double wholeLayer = 0, beforeExperts = 0;
  for (const PhaseTimes &phase : phases) {
    if (phase.kind == PhaseKind::GateUp)
      beforeExperts = wholeLayer;
    wholeLayer += phase.stream;
  }
  // How far the stream knows its way.
  double known =
      stops ? beforeExperts : std::numeric_limits<double>::infinity();
  double now = 0, streamed = 0, consumed = 0, layerBegan = 0;
  auto stream = [&](double us) {
    double most = std::min(consumed + ringUs, known);
    streamed = std::max(streamed, std::min(streamed + us, most));
    now += us;
  };
  constexpr unsigned kLayers = 4; // the first finds an empty ring
  for (unsigned layer = 0; layer != kLayers; ++layer) {
    layerBegan = now;
    for (const PhaseTimes &phase : phases) {
      stream(phase.waits ? handOver : 0);
      if (stops && phase.kind == PhaseKind::GateUp) {
        known += wholeLayer;
        now += target.handOverUs; // until the memory answers
      }
      consumed += phase.stream;
      stream(std::max(phase.compute, consumed - streamed));
    }
  }
  return now - layerBegan;
}

/// A hand-over carries words of every row, which all slots read. Warps of a
/// kernel for one row don't wait for each other; those of a batch's do, with
/// one row too.
double LatencyModel::handOverUs(uint32_t batch) {
  constexpr double kRowShare = 0.25; // of a hand-over, as a row costs more
  const bool alone = device.find<BoundsOp>().getBatch() == 1;
  return target.handOverStreamUs * (alone ? 1 : 1 + kRowShare * batch);
}

Terms LatencyModel::step(const Outcome &outcome, uint32_t batch,
                         uint32_t context, bool withHead) {
  double layers = sizes.numLayers, stream = 0;
  const double kv = kvUs(batch, context);
  std::vector<PhaseTimes> phases = outcome.phases;
  for (PhaseTimes &phase : phases) {
    stream += phase.stream;
    if (phase.kind == PhaseKind::Attention)
      phase.stream += kv;
  }
  const double handOver = handOverUs(batch),
               layer = layerUs(phases, handOver, !sizes.hash);
  // A learned router's experts can't be streamed before they are known.
  const double known = sizes.hash ? layer : layerUs(phases, handOver, false);
  Terms terms;
  terms.weights = layers * stream;
  terms.kv = layers * kv;
  terms.handOver = layers * std::max(0.0, known - stream - kv);
  terms.routerStall = layers * (layer - known);
  terms.head = withHead ? headUs : 0;
  terms.choice = target.handOverStreamUs;
  return terms;
}

Terms LatencyModel::prompts(uint32_t batch, uint32_t prompt, uint32_t experts) {
  Terms terms;
  terms.prefill = prefillUs(device, target, batch, prompt, experts);
  terms.head = headUs;
  terms.launch = target.launchUs;
  return terms;
}

//===----------------------------------------------------------------------===//
// Routing
//===----------------------------------------------------------------------===//

/// The model that a device was made from; null if the module does not hold it.
static ir::ModelOp modelOf(DeviceOp device) {
  return SymbolTable::lookupNearestSymbolFrom<ir::ModelOp>(
      device->getParentOp(), device.getModelAttr());
}

Routing::Routing(DeviceOp device, LatencyModel &model)
    : device(device), model(model),
      sets(device, [&model](const ExpertSets::SlotBytes &bytes) {
        return ExpertSets::Times{model.streamUs(bytes), model.computeUs(bytes)};
      }) {
  ir::ModelOp op = modelOf(device);
  if (!op)
    return;
  FailureOr<ir::ModelParts> parts = ir::matchModel(op);
  if (failed(parts) || !parts->hashRoute)
    return;
  const ModelConfig config = ir::configOf(op, *parts);
  if (auto why =
          PositionReach::tooMany(config, device.find<BoundsOp>().getSeq())) {
    device.emitRemark("every reached expert is taken as reached from every "
                      "position: ")
        << *why;
    return;
  }
  reach.emplace(config);
}

const StepBounds &Routing::anywhere(uint32_t batch) {
  if (reach)
    return of(reach->before(device.find<BoundsOp>().getSeq()), batch);
  ArrayRef<int32_t> reached = device.find<ExpertsOp>().getReached();
  return of({reached.begin(), reached.end()}, batch);
}

const StepBounds &Routing::at(uint32_t position, uint32_t batch) {
  return reach ? of(reach->at(position), batch) : anywhere(batch);
}

/// Distinct experts that `tokens` tokens use, at least and at most, of `usable`
/// ones; `dropped` more can be chosen, but need none.
static std::pair<uint32_t, uint32_t> distinctExperts(DeviceOp device,
                                                     uint32_t usable,
                                                     uint32_t dropped,
                                                     uint32_t tokens) {
  const uint32_t perToken = device.find<ShapeOp>().getExpertsPerToken();
  return {perToken > dropped ? perToken - dropped : 0,
          std::min(usable, tokens * perToken)};
}

/// Hash: a row chooses one of the reached experts, and all of them may choose
/// the same one or each its own; rows of a pruned one need none. Learned: a row
/// chooses `experts_per_token` different ones.
const StepBounds &Routing::of(const std::vector<uint32_t> &reached,
                              uint32_t batch) {
  auto [found, isNew] = known.try_emplace({reached, batch});
  if (!isNew)
    return found->second;
  ArrayRef<int32_t> kept = device.find<ExpertsOp>().getKept();
  std::vector<uint32_t> usable;
  std::set_intersection(reached.begin(), reached.end(), kept.begin(),
                        kept.end(), std::back_inserter(usable));
  auto [fewest, most] =
      distinctExperts(device, uint32_t(usable.size()),
                      uint32_t(reached.size() - usable.size()), batch);
  ExpertSets::Extremes extremes = sets.extremes(usable, fewest, most);
  found->second.exhaustive = extremes.exhaustive;
  for (const ExpertSet &set : extremes.cheapest)
    found->second.cheapest.push_back(model.outcome(set));
  for (const ExpertSet &set : extremes.dearest)
    found->second.dearest.push_back(model.outcome(set));
  return found->second;
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

static DictionaryAttr dictionary(Builder &b, const Terms &terms) {
  auto entry = [&](StringRef name, double us) {
    return b.getNamedAttr(name, b.getF64FloatAttr(us));
  };
  return b.getDictionaryAttr(
      {entry("prefill_us", terms.prefill), entry("weights_us", terms.weights),
       entry("kv_us", terms.kv), entry("hand_over_us", terms.handOver),
       entry("router_stall_us", terms.routerStall),
       entry("head_us", terms.head), entry("choice_us", terms.choice),
       entry("launch_us", terms.launch)});
}

void PredictLatency::add(PredictionScope scope, uint32_t batch,
                         uint32_t context, uint32_t generated,
                         const Cases &cases) {
  const auto &[best, worst, exhaustive] = cases;
  DeviceOp device = getOperation();
  OpBuilder b = OpBuilder::atBlockEnd(&device.getBody().front());
  PredictionOp::create(b, device.getLoc(), scope, batch, context, generated,
                       APFloat(best.terms.total()), best.experts,
                       dictionary(b, best.terms), APFloat(worst.terms.total()),
                       worst.experts, dictionary(b, worst.terms), exhaustive);
}

/// A step's best and worst case by its time.
static Cases step(const StepBounds &bounds,
                  llvm::function_ref<Terms(const Outcome &)> time) {
  auto extreme = [&](const std::vector<Outcome> &outcomes, double sign) {
    std::optional<Case> found;
    for (const Outcome &outcome : outcomes) {
      Case one{time(outcome), outcome.experts};
      if (!found || sign * one.terms.total() < sign * found->terms.total())
        found = one;
    }
    return *found;
  };
  return {extreme(bounds.cheapest, 1), extreme(bounds.dearest, -1),
          bounds.exhaustive};
}

/// Distinct experts of a layer that a batch's prompts use, at least and at
/// most.
static std::pair<uint32_t, uint32_t> promptExperts(DeviceOp device,
                                                   uint32_t tokens) {
  auto experts = device.find<ExpertsOp>();
  ArrayRef<int32_t> kept = experts.getKept();
  auto dropped = llvm::count_if(experts.getReached(), [&](int32_t e) {
    return !llvm::binary_search(kept, e);
  });
  return distinctExperts(device, uint32_t(kept.size()), uint32_t(dropped),
                         tokens);
}

Cases PredictLatency::request(LatencyModel &model, Routing &routing,
                              uint32_t batch, uint32_t prompt,
                              uint32_t generated) {
  Cases sum;
  sum.best.experts = std::numeric_limits<uint32_t>::max();
  uint32_t position = 0;
  if (model.hasPrefill()) {
    auto [fewest, most] = promptExperts(getOperation(), batch * prompt);
    sum.best = {model.prompts(batch, prompt, fewest), fewest};
    sum.worst = {model.prompts(batch, prompt, most), most};
    position = prompt;
  }
  sum.best.terms.launch += model.facts().launchUs;
  sum.worst.terms.launch += model.facts().launchMaxUs;
  // Every position but the last goes in; those from the prompt's last on choose
  // a token.
  for (; position < prompt + generated - 1; ++position) {
    Cases one = step(routing.at(position, batch), [&](const Outcome &o) {
      return model.step(o, batch, position + 1, position + 1 >= prompt);
    });
    sum.best.terms.add(one.best.terms);
    sum.worst.terms.add(one.worst.terms);
    sum.best.experts = std::min(sum.best.experts, one.best.experts);
    sum.worst.experts = std::max(sum.worst.experts, one.worst.experts);
    sum.exhaustive &= one.exhaustive;
  }
  return sum;
}

void PredictLatency::predict(LatencyModel &model, Routing &routing,
                             uint32_t batch) {
  DeviceOp device = getOperation();
  uint32_t seq = device.find<BoundsOp>().getSeq();
  uint32_t generated = std::min(kGenerated, (seq + 1) / 2);
  uint32_t prompt = std::max(1u, std::min(kPrompt, seq - generated));
  add(PredictionScope::Step, batch, prompt, 0,
      step(routing.anywhere(batch), [&](const Outcome &o) {
        return model.step(o, batch, prompt, true);
      }));
  add(PredictionScope::Request, batch, prompt, generated,
      request(model, routing, batch, prompt, generated));
}

void PredictLatency::runOnOperation() {
  DeviceOp device = getOperation();
  if (!device.find<AssignmentOp>()) {
    device.emitOpError("has no slots assigned; run --plan-assign-slots first");
    return signalPassFailure();
  }
  if (device.find<PredictionOp>()) {
    device.emitOpError("has its latency predicted already");
    return signalPassFailure();
  }
  LatencyModel model(device);
  Routing routing(device, model);
  uint32_t maxBatch = device.find<BoundsOp>().getBatch();
  predict(model, routing, 1);
  if (maxBatch > 1)
    predict(model, routing, maxBatch);
}
