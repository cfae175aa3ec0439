// What a step and a batch's prompts cost, as sums of named terms.
// docs/dialects/rationale-plan.md has the formulas.
#pragma once

#include <limits>
#include <vector>

#include "compiler/Target/Target.h"
#include "ir/Plan/PlanDialect.h"
#include "runtime/bundle/ModelConfig.h"

namespace grok::plan {

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

  double total() const;
  /// Adds another time, as often as `times` says.
  void add(const Terms &other, double times = 1);
};

/// Times of one phase of a layer, in microseconds.
struct PhaseTimes {
  PhaseKind kind;
  bool waits = false; // for what the phase before hands over
  double stream = 0;  // what it takes from the weight stream
  double compute = 0; // from the last word's arrival to handing over, but for
                      // what the stream makes it wait
};

/// What the layers of a step cost with some set of experts, whatever the
/// context.
struct Outcome {
  uint32_t experts = 0;
  std::vector<PhaseTimes> phases;

  PhaseTimes &phase(PhaseKind kind) { return phases[size_t(kind)]; }
};

class LatencyModel {
public:
  using SlotBytes = std::vector<uint64_t>;

  /// Of a device whose slots are assigned.
  explicit LatencyModel(DeviceOp device);

  /// Of the phases of experts, what a dense MLP beside them takes.
  Outcome withoutExperts();
  /// A step at `context` positions in the cache.
  Terms step(const Outcome &outcome, uint32_t batch, uint32_t context,
             bool withHead);
  bool hasPrefill();
  /// Prompts through prefill, with the first new ids; their layers use
  /// `experts`, whose tokens fill `partTiles` of a tile besides whole ones.
  Terms prompts(uint32_t batch, uint32_t prompt, double experts,
                double partTiles);
  const Target &facts() const { return target_; }

  /// To stream what each slot reads in a phase, and to compute with it.
  double streamUs(SlotBytes bytes) const;
  double computeUs(const SlotBytes &bytes) const;
  /// What streamUs and computeUs are between for any bytes of the slots, none
  /// of which has less than `low` or more than `high`, `total` together.
  struct Bounds {
    double least, most;
  };
  Bounds streamBoundsUs(uint64_t low, uint64_t high, uint64_t total) const;
  Bounds computeBoundsUs(uint64_t high, uint64_t total) const;

private:
  double layerUs(const std::vector<PhaseTimes> &phases, double handOver,
                 bool stops);
  double kvUs(uint32_t batch, uint32_t context);
  double handOverUs(uint32_t batch);

  DeviceOp device_;
  Target target_;
  ModelConfig sizes_;
  std::vector<double> rates_; // bytes a microsecond of so many slots together
  double computeRate_ = 0;    // of one slot
  double headUs_ = 0;
  /// How far the stream may be ahead of what is consumed. Before memory is
  /// planned, as far as it likes.
  double ringUs_ = std::numeric_limits<double>::infinity();
};

} // namespace grok::plan
