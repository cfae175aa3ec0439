// The sets of experts that the rows of a step can choose, and which of them can
// be the cheapest or the dearest.
#pragma once

#include <array>
#include <functional>
#include <vector>

#include "ir/Plan/PlanDialect.h"

namespace grok::plan {

/// Distinct experts, ascending.
using ExpertSet = std::vector<uint32_t>;

class ExpertSets {
public:
  /// Bytes that each slot reads in a phase.
  using SlotBytes = std::vector<uint64_t>;
  /// Times of a phase that never get less when a slot reads more.
  static constexpr size_t kTimes = 2;
  using Times = std::array<double, kTimes>;

  /// What a phase takes.
  struct Prices {
    std::function<Times(const SlotBytes &)> times;
    /// Of any bytes of which no slot has less than `low` or more than `high`,
    /// `total` all together: what none of the times is below, or above.
    std::function<Times(uint64_t low, uint64_t high, uint64_t total)> atLeast,
        atMost;
  };

  /// Of a device whose slots are assigned.
  ExpertSets(DeviceOp device, Prices prices);

  /// The times of both expert phases.
  struct Costs {
    Times gateUp{}, down{};
  };
  /// Those of a set of so many experts.
  struct Extreme {
    uint32_t experts;
    Costs costs;
  };
  /// The sets that no other one undercuts, or exceeds, in all times of both
  /// expert phases: whatever grows with those is least, or most, with one of
  /// them.
  struct Extremes {
    std::vector<Extreme> cheapest, dearest;
    /// Every set was looked at. Otherwise there are too many of them, and no
    /// set's times are below, or above, the one that is here.
    bool exhaustive = true;
  };
  /// Of the sets of `fewest` to `most` of `experts`.
  Extremes extremes(const std::vector<uint32_t> &experts, uint32_t fewest,
                    uint32_t most) const;

  /// Their means over the sets of `size` of `experts`, each as likely as the
  /// other: over all sets, or where they are too many over some that a fixed
  /// seed draws.
  Costs meanCosts(const std::vector<uint32_t> &experts, uint32_t size) const;

private:
  struct Walk;
  struct Front;
  struct Spread;
  Spread spread(size_t phase, const std::vector<uint32_t> &experts,
                uint32_t size) const;

  Prices prices_;
  SlotBytes dense_[2];                 // gate_up and down without experts
  std::vector<SlotBytes> ofExpert_[2]; // [expert][slot]
};

} // namespace grok::plan
