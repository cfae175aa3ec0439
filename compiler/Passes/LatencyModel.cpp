#include "compiler/Passes/LatencyModel.h"

#include <algorithm>
#include <limits>
#include <map>

#include "compiler/Passes/Calibration.h"
#include "compiler/Passes/PlanTarget.h"
#include "compiler/Passes/PrefillTime.h"
#include "ir/Plan/PlanFacts.h"

using namespace mlir;
using namespace grok;
using namespace grok::plan;

double Terms::total() const {
  return prefill + weights + kv + handOver + routerStall + head + choice +
         launch;
}

void Terms::add(const Terms &other, double times) {
  prefill += times * other.prefill;
  weights += times * other.weights;
  kv += times * other.kv;
  handOver += times * other.handOver;
  routerStall += times * other.routerStall;
  head += times * other.head;
  choice += times * other.choice;
  launch += times * other.launch;
}

/// Bytes a microsecond that a slot computes with: what matrix work reads from
/// shared memory, or what a GPU's instructions unpack.
static double computeRate(const Target &target, CodeKind codes) {
  double perCycle = target.sharedBytesPerCycle;
  if (target.sm != 0 && codes != CodeKind::None)
    perCycle = std::min(perCycle, codes == CodeKind::Int8
                                      ? calibration::kInt8BytesPerCycle
                                      : calibration::kFp8BytesPerCycle);
  return perCycle * target.clockMhz;
}

LatencyModel::LatencyModel(DeviceOp device)
    : device_(device), target_(targetOf(device.find<TargetOp>())),
      sizes_(sizesOf(device)),
      computeRate_(computeRate(target_, device.find<BoundsOp>().getCodes())) {
  for (uint32_t slots = 0; slots <= target_.smCount; ++slots)
    rates_.push_back(target_.streamBytesPerSecond(slots) * 1e-6);
  for (MatrixOp matrix : device.getBody().front().getOps<MatrixOp>()) {
    if (matrix.getKind() != StreamKind::Head)
      continue;
    SlotBytes bytes(target_.smCount);
    for (uint32_t s = 0; s < bytes.size(); ++s)
      bytes[s] = matrix.extentBytes(s);
    headUs_ =
        std::max(streamUs(bytes), target_.handOverStreamUs + computeUs(bytes));
  }
  if (auto stream = device.find<StreamOp>(); stream && stream.getRingStages())
    ringUs_ = double(stream.getRingStages()) * stream.getChunkBytes() *
              target_.smCount / rates_[target_.smCount];
}

/// Slots that stream share the bandwidth that so many slots reach, until the
/// shortest of them is done; then the others go on.
double LatencyModel::streamUs(SlotBytes bytes) const {
  std::sort(bytes.begin(), bytes.end());
  double us = 0;
  uint64_t done = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] == done)
      continue;
    const size_t streaming = bytes.size() - i;
    us += double(bytes[i] - done) * double(streaming) / rates_[streaming];
    done = bytes[i];
  }
  return us;
}

double LatencyModel::computeUs(const SlotBytes &bytes) const {
  uint64_t most = *std::max_element(bytes.begin(), bytes.end());
  return double(most) / computeRate_;
}

/// With the slots in descending order of their bytes, b1 >= b2 >= ..., streamUs
/// is the sum of bn (g(n) - g(n - 1)) for g(n) = n / rate(n): linear in them.
/// So it is least and most in corners of what is allowed, where the first p
/// slots have `high`, the last ones `low`, and q between them all the same.
LatencyModel::Bounds LatencyModel::streamBoundsUs(uint64_t low, uint64_t high,
                                                  uint64_t total) const {
  const size_t slots = rates_.size() - 1;
  auto upTo = [&](size_t n) { return n ? double(n) / rates_[n] : 0; };
  Bounds bounds{std::numeric_limits<double>::infinity(), 0};
  for (size_t p = 0; p != slots; ++p)
    for (size_t q = 1; p + q <= slots; ++q) {
      const double rest = double(total) - double(p) * double(high) -
                          double(slots - p - q) * double(low),
                   between = rest / double(q);
      if (between < double(low) || between > double(high))
        continue;
      const double us = upTo(p) * double(high) +
                        (upTo(p + q) - upTo(p)) * between +
                        (upTo(slots) - upTo(p + q)) * double(low);
      bounds.least = std::min(bounds.least, us);
      bounds.most = std::max(bounds.most, us);
    }
  return bounds;
}

LatencyModel::Bounds LatencyModel::computeBoundsUs(uint64_t high,
                                                   uint64_t total) const {
  return {double(total) / double(rates_.size() - 1) / computeRate_,
          double(high) / computeRate_};
}

/// The cache is read in tasks of a row, a kv head and a block of positions,
/// dealt to the slots in turn.
double LatencyModel::kvUs(uint32_t batch, uint32_t context) {
  uint64_t tasks =
      uint64_t(batch) * sizes_.numKvHeads * ceilDiv(context, kKvBlock);
  uint64_t taskBytes =
      2ull * kKvBlock * sizes_.headDim * kvElementBytes(device_);
  SlotBytes bytes(target_.smCount);
  for (uint32_t s = 0; s < bytes.size(); ++s)
    bytes[s] = (tasks / bytes.size() + (s < tasks % bytes.size())) * taskBytes;
  return streamUs(bytes);
}

Outcome LatencyModel::withoutExperts() {
  std::map<PhaseKind, SlotBytes> phases;
  for (MatrixOp matrix : device_.getBody().front().getOps<MatrixOp>()) {
    if (matrix.getKind() == StreamKind::Head ||
        isExpertMatrix(matrix.getKind()))
      continue;
    SlotBytes &bytes = phases[phaseOf(matrix.getKind())];
    bytes.resize(target_.smCount);
    for (uint32_t s = 0; s < bytes.size(); ++s)
      bytes[s] += matrix.extentBytes(s);
  }
  Outcome result;
  for (uint32_t kind = 0; kind != uint32_t(PhaseKind::Head); ++kind) {
    PhaseTimes times{PhaseKind(kind)};
    times.waits =
        llvm::any_of(device_.getBody().front().getOps<PhaseOp>(),
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
    double most = std::min(consumed + ringUs_, known);
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
        now += target_.handOverUs; // until the memory answers
      }
      consumed += phase.stream;
      stream(std::max(phase.compute, consumed - streamed));
    }
  }
  return now - layerBegan;
}

/// A hand-over carries words of every row.
double LatencyModel::handOverUs(uint32_t batch) {
  const bool alone = device_.find<BoundsOp>().getBatch() == 1;
  return target_.handOverStreamUs *
         (alone ? 1
                : calibration::kBatchHandOver +
                      calibration::kRowHandOver * batch);
}

Terms LatencyModel::step(const Outcome &outcome, uint32_t batch,
                         uint32_t context, bool withHead) {
  double layers = sizes_.numLayers, stream = 0;
  const double kv = kvUs(batch, context);
  std::vector<PhaseTimes> phases = outcome.phases;
  for (PhaseTimes &phase : phases) {
    stream += phase.stream;
    if (phase.kind == PhaseKind::Attention)
      phase.stream += kv;
  }
  const double handOver = handOverUs(batch),
               layer = layerUs(phases, handOver, !sizes_.hash);
  // A learned router's experts can't be streamed before they are known.
  const double known = sizes_.hash ? layer : layerUs(phases, handOver, false);
  Terms terms;
  terms.weights = layers * stream;
  terms.kv = layers * kv;
  terms.handOver = layers * std::max(0.0, known - stream - kv);
  terms.routerStall = layers * (layer - known);
  terms.head = withHead ? headUs_ : 0;
  terms.choice = target_.handOverStreamUs;
  return terms;
}

bool LatencyModel::hasPrefill() { return bool(device_.find<PrefillOp>()); }

Terms LatencyModel::prompts(uint32_t batch, uint32_t prompt, double experts,
                            double partTiles) {
  Terms terms;
  terms.prefill =
      prefillUs(device_, target_, batch, prompt, experts, partTiles);
  terms.head = headUs_;
  terms.launch = target_.launchUs;
  return terms;
}
