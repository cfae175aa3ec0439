// --plan-predict: latency of a step and a request, best and worst over every
// routing outcome. docs/dialects/rationale-plan.md has the formulas and what
// they were held against.
#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <map>

#include "mlir/IR/Builders.h"

#include "compiler/Passes/Passes.h"
#include "compiler/Passes/PlanTarget.h"
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

/// Distinct experts that the rows of a step have chosen.
using ExpertSet = std::vector<uint32_t>;

/// A time in microseconds, as the sum of its parts.
struct Terms {
  double weights = 0;     // streaming the layers' weights
  double kv = 0;          // streaming the KV cache
  double handOver = 0;    // hand-overs and compute that the stream doesn't hide
  double routerStall = 0; // a learned router's decision, which stops the stream
  double head = 0;        // the output head
  double choice = 0;      // agreeing on the next tokens
  double launch = 0;

  double total() const {
    return weights + kv + handOver + routerStall + head + choice + launch;
  }
  void add(const Terms &other) {
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

/// The sets of experts that stand for all that a batch can choose.
class Outcomes {
public:
  Outcomes(DeviceOp device, uint32_t batch);
  const std::vector<ExpertSet> &sets() const { return list; }

private:
  void fewestAndMost(ExpertsOp experts, ShapeOp shape, uint32_t batch,
                     uint32_t reachable);
  /// Adds every way to take `left` experts from the groups from `group` on,
  /// at most `most` from each: groups of equal size are alike, so that only
  /// the numbers matter.
  void split(uint32_t group, uint32_t left, uint32_t most, ExpertSet &chosen);

  uint32_t fewest = 0, most = 0;
  std::vector<ExpertSet> groups; // kept and reached, the largest group first
  std::vector<ExpertSet> list;
};

class LatencyModel {
public:
  explicit LatencyModel(DeviceOp device);
  Outcome outcome(const ExpertSet &set);
  /// A step at `context` positions in the cache.
  Terms step(const Outcome &outcome, uint32_t batch, uint32_t context,
             bool withHead);
  const Target &facts() const { return target; }

private:
  using SlotBytes = std::vector<uint64_t>;
  double streamUs(const SlotBytes &bytes) const;
  double computeUs(const SlotBytes &bytes) const;
  double ringUs();
  double layerUs(const std::vector<PhaseTimes> &phases, double handOver,
                 bool stops);
  double kvUs(uint32_t batch, uint32_t context);

  DeviceOp device;
  Target target;
  ModelConfig sizes;
  double headUs = 0;
};

struct PredictLatency : grok::impl::PredictLatencyBase<PredictLatency> {
  using PredictLatencyBase::PredictLatencyBase;
  void runOnOperation() override;

private:
  void predict(LatencyModel &model, uint32_t batch);
  void add(PredictionScope scope, uint32_t batch, uint32_t context,
           uint32_t generated, std::function<Terms(const Outcome &)> time,
           double worstLaunchExtra);
  std::vector<Outcome> outcomes;
};

} // namespace

//===----------------------------------------------------------------------===//
// Routing outcomes
//===----------------------------------------------------------------------===//

Outcomes::Outcomes(DeviceOp device, uint32_t batch) {
  auto experts = device.find<ExpertsOp>();
  std::map<uint32_t, ExpertSet> byGroup;
  uint32_t reachable = 0;
  for (int32_t e : experts.getKept())
    if (llvm::is_contained(experts.getReached(), e)) {
      byGroup[groupOf(experts, uint32_t(e))].push_back(uint32_t(e));
      ++reachable;
    }
  for (auto &[group, members] : byGroup)
    groups.push_back(members);
  std::sort(groups.begin(), groups.end(),
            [](const ExpertSet &a, const ExpertSet &b) {
              return a.size() != b.size() ? a.size() > b.size() : a < b;
            });
  fewestAndMost(experts, device.find<ShapeOp>(), batch, reachable);
  for (uint32_t n = fewest; n <= most; ++n) {
    ExpertSet chosen;
    split(0, n, n, chosen);
  }
}

/// Hash: rows choose freely among the reached experts, all of them the same
/// one or each its own; rows of a pruned one need none. Learned: a row chooses
/// `experts_per_token` different ones.
void Outcomes::fewestAndMost(ExpertsOp experts, ShapeOp shape, uint32_t batch,
                             uint32_t reachable) {
  uint32_t dropped = uint32_t(experts.getReached().size()) - reachable;
  uint32_t perToken = shape.getExpertsPerToken();
  fewest = perToken > dropped ? perToken - dropped : 0;
  most = std::min(reachable, batch * perToken);
}

void Outcomes::split(uint32_t group, uint32_t left, uint32_t limit,
                     ExpertSet &chosen) {
  if (left == 0) {
    list.push_back(chosen);
    return;
  }
  if (group == groups.size())
    return;
  uint32_t n = std::min({left, limit, uint32_t(groups[group].size())});
  for (; n > 0; --n) {
    size_t before = chosen.size();
    chosen.insert(chosen.end(), groups[group].begin(),
                  groups[group].begin() + n);
    split(group + 1, left - n, n, chosen);
    chosen.resize(before);
  }
}

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
}

/// Slots that stream share the bandwidth that so many slots reach, until the
/// shortest of them is done; then the others go on.
double LatencyModel::streamUs(const SlotBytes &bytes) const {
  SlotBytes sorted(bytes);
  std::sort(sorted.begin(), sorted.end());
  double us = 0;
  uint64_t done = 0;
  for (uint32_t i = 0; i < sorted.size(); ++i) {
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
  std::map<PhaseKind, SlotBytes> phases;
  for (MatrixOp matrix : device.getBody().front().getOps<MatrixOp>()) {
    bool runs = matrix.getKind() != StreamKind::Head &&
                (!isExpertMatrix(matrix.getKind()) ||
                 llvm::is_contained(set, *matrix.getExpert()));
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

/// How far the stream may be ahead of what is consumed. Before memory is
/// planned, as far as it likes.
double LatencyModel::ringUs() {
  auto stream = device.find<StreamOp>();
  if (!stream || stream.getRingStages() == 0)
    return std::numeric_limits<double>::infinity();
  double bytes = double(stream.getRingStages()) * stream.getChunkBytes();
  return bytes * target.smCount / target.streamBytesPerSecond(target.smCount) *
         1e6;
}

/// A layer once layers follow one another evenly. All times are counted in
/// microseconds, the stream too: `streamed` and `consumed` are how much of it
/// has come and gone. With a learned router it `stops` until the experts are
/// known.
double LatencyModel::layerUs(const std::vector<PhaseTimes> &phases,
                             double handOver, bool stops) {
  const double ring = ringUs();
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
    double most = std::min(consumed + ring, known);
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

/// A hand-over carries words of every row, which all slots read.
static double handOverUs(const Target &target, uint32_t batch) {
  constexpr double kRowShare = 0.32; // of a hand-over, as a further row costs
  return target.handOverStreamUs * (1 + kRowShare * (batch - 1));
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
  const double handOver = handOverUs(target, batch),
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

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

static DictionaryAttr dictionary(Builder &b, const Terms &terms) {
  auto entry = [&](StringRef name, double us) {
    return b.getNamedAttr(name, b.getF64FloatAttr(us));
  };
  return b.getDictionaryAttr(
      {entry("weights_us", terms.weights), entry("kv_us", terms.kv),
       entry("hand_over_us", terms.handOver),
       entry("router_stall_us", terms.routerStall),
       entry("head_us", terms.head), entry("choice_us", terms.choice),
       entry("launch_us", terms.launch)});
}

void PredictLatency::add(PredictionScope scope, uint32_t batch,
                         uint32_t context, uint32_t generated,
                         std::function<Terms(const Outcome &)> time,
                         double worstLaunchExtra) {
  std::optional<Terms> best, worst;
  uint32_t bestExperts = 0, worstExperts = 0;
  for (const Outcome &outcome : outcomes) {
    Terms terms = time(outcome);
    if (!best || terms.total() < best->total()) {
      best = terms;
      bestExperts = outcome.experts;
    }
    if (!worst || terms.total() > worst->total()) {
      worst = terms;
      worstExperts = outcome.experts;
    }
  }
  worst->launch += worstLaunchExtra;
  DeviceOp device = getOperation();
  OpBuilder b = OpBuilder::atBlockEnd(&device.getBody().front());
  PredictionOp::create(b, device.getLoc(), scope, batch, context, generated,
                       APFloat(best->total()), bestExperts,
                       dictionary(b, *best), APFloat(worst->total()),
                       worstExperts, dictionary(b, *worst));
}

void PredictLatency::predict(LatencyModel &model, uint32_t batch) {
  DeviceOp device = getOperation();
  outcomes.clear();
  Outcomes choices(device, batch);
  for (const ExpertSet &set : choices.sets())
    outcomes.push_back(model.outcome(set));
  uint32_t seq = device.find<BoundsOp>().getSeq();
  uint32_t generated = std::min(kGenerated, (seq + 1) / 2);
  uint32_t prompt = std::max(1u, std::min(kPrompt, seq - generated));

  add(
      PredictionScope::Step, batch, prompt, 0,
      [&](const Outcome &o) { return model.step(o, batch, prompt, true); }, 0);
  const Target &target = model.facts();
  add(
      PredictionScope::Request, batch, prompt, generated,
      [&](const Outcome &o) {
        Terms sum;
        sum.launch = target.launchUs;
        // Every position but the last goes in; those from the prompt's last on
        // choose a token.
        for (uint32_t i = 0; i < prompt + generated - 1; ++i)
          sum.add(model.step(o, batch, i + 1, i + 1 >= prompt));
        return sum;
      },
      target.launchMaxUs - target.launchUs);
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
  uint32_t maxBatch = device.find<BoundsOp>().getBatch();
  predict(model, 1);
  if (maxBatch > 1)
    predict(model, maxBatch);
}
