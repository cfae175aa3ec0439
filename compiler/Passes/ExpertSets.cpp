#include "compiler/Passes/ExpertSets.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>

#include "ir/Plan/PlanFacts.h"

using namespace grok;
using namespace grok::plan;

namespace {

/// Sets of one size that are looked at one by one for the extremes, and the
/// sums of a slot's bytes on the way to them. The reference model's batch of 8
/// has 12870 sets, and on 132 slots 3.2 million sums.
constexpr uint64_t kMostSets = 1 << 17, kMostSums = 1 << 25;
/// The same for a mean. Where there are more, as many sets are drawn as take so
/// many sums, kDrawnSets at most.
constexpr uint64_t kMostMeanSets = 1 << 14, kDrawnSets = 1 << 10,
                   kDrawnSums = 1 << 22;
constexpr uint64_t kSeed = 1;

constexpr size_t kPhases = 2; // gate_up and down
using Costs = ExpertSets::Costs;

/// a is nowhere above b.
bool atMost(const Costs &a, const Costs &b) {
  for (size_t i = 0; i != ExpertSets::kTimes; ++i)
    if (a.gateUp[i] > b.gateUp[i] || a.down[i] > b.down[i])
      return false;
  return true;
}
bool atLeast(const Costs &a, const Costs &b) { return atMost(b, a); }

/// n over k, or `most` if it is more.
uint64_t choose(uint64_t n, uint64_t k, uint64_t most) {
  uint64_t ways = 1;
  for (uint64_t i = 1; i <= k && ways < most; ++i)
    ways = ways * (n - k + i) / i;
  return std::min(ways, most);
}

/// All sets of `size` of `experts` can be looked at one by one. Built up one
/// expert after the other, they and their beginnings are experts + 1 over size.
bool canListAll(uint64_t experts, uint64_t size, uint64_t slots) {
  return choose(experts, size, kMostSets + 1) <= kMostSets &&
         choose(experts + 1, size, kMostSums + 1) * slots <= kMostSums;
}

} // namespace

/// A walk over sets of one size, each of which is shown with its costs.
struct ExpertSets::Walk {
  using Show = llvm::function_ref<void(const ExpertSet &, const Costs &)>;

  const ExpertSets &sets;
  const uint32_t size;
  const Show show;
  ExpertSet current;
  SlotBytes bytes[kPhases]; // of `current`

  Walk(const ExpertSets &sets, uint32_t size, Show show)
      : sets(sets), size(size), show(show),
        bytes{sets.dense_[0], sets.dense_[1]} {}

  void add(uint32_t expert) {
    current.push_back(expert);
    for (size_t phase = 0; phase != kPhases; ++phase)
      for (size_t s = 0; s != bytes[phase].size(); ++s)
        bytes[phase][s] += sets.ofExpert_[phase][expert][s];
  }
  void removeLast() {
    uint32_t expert = current.back();
    current.pop_back();
    for (size_t phase = 0; phase != kPhases; ++phase)
      for (size_t s = 0; s != bytes[phase].size(); ++s)
        bytes[phase][s] -= sets.ofExpert_[phase][expert][s];
  }

  void price() {
    show(current, {sets.prices_.times(bytes[0]), sets.prices_.times(bytes[1])});
  }

  /// The set that adds all of experts[from ..] to `current`, without a step
  /// down the stack for each.
  void withRest(const std::vector<uint32_t> &experts, size_t from) {
    for (size_t i = from; i != experts.size(); ++i)
      add(experts[i]);
    price();
    for (size_t i = from; i != experts.size(); ++i)
      removeLast();
  }

  /// Every set that adds some of experts[from ..] to `current`.
  void all(const std::vector<uint32_t> &experts, size_t from = 0) {
    const size_t missing = size - current.size();
    if (missing == 0)
      return price();
    if (missing == experts.size() - from)
      return withRest(experts, from);
    // As long as enough are left to fill the set.
    for (size_t i = from; i + missing <= experts.size(); ++i) {
      add(experts[i]);
      all(experts, i + 1);
      removeLast();
    }
  }

  /// `count` sets that a fixed seed draws, the same ones everywhere.
  void drawn(std::vector<uint32_t> experts, uint64_t count) {
    std::mt19937_64 engine(kSeed);
    for (uint64_t n = 0; n != count; ++n) {
      for (size_t i = 0; i != size; ++i) {
        std::swap(experts[i], experts[i + engine() % (experts.size() - i)]);
        add(experts[i]);
      }
      price();
      while (!current.empty())
        removeLast();
    }
  }
};

/// The costs of those shown that no other ones beat.
struct ExpertSets::Front {
  bool (*const beats)(const Costs &, const Costs &);
  std::vector<Extreme> members;

  void show(const ExpertSet &set, const Costs &costs) {
    for (const Extreme &other : members)
      if (beats(other.costs, costs))
        return;
    std::erase_if(members, [&](const Extreme &other) {
      return beats(costs, other.costs);
    });
    members.push_back({uint32_t(set.size()), costs});
  }
};

/// What the sets of one size have in common in a phase: bytes of a slot at
/// least and at most, and of all together.
struct ExpertSets::Spread {
  uint64_t low = std::numeric_limits<uint64_t>::max(), high = 0;
  uint64_t fewest = 0, most = 0;
};

ExpertSets::ExpertSets(DeviceOp device, Prices prices)
    : prices_(std::move(prices)) {
  const uint32_t slots = device.find<TargetOp>().getSlots(),
                 total = device.find<ExpertsOp>().getTotal();
  for (size_t phase = 0; phase != kPhases; ++phase) {
    dense_[phase].resize(slots);
    ofExpert_[phase].assign(total, SlotBytes(slots));
  }
  for (MatrixOp matrix : device.getBody().front().getOps<MatrixOp>()) {
    PhaseKind kind = phaseOf(matrix.getKind());
    if (kind != PhaseKind::GateUp && kind != PhaseKind::Down)
      continue;
    size_t phase = kind == PhaseKind::Down;
    SlotBytes &bytes = isExpertMatrix(matrix.getKind())
                           ? ofExpert_[phase][*matrix.getExpert()]
                           : dense_[phase];
    for (uint32_t s = 0; s != slots; ++s)
      bytes[s] += matrix.extentBytes(s);
  }
}

/// The sums of the `count` least and of the `count` largest values.
static std::pair<uint64_t, uint64_t> outerSums(std::vector<uint64_t> &values,
                                               uint32_t count) {
  auto sum = [&] {
    return std::accumulate(values.begin(), values.begin() + count, uint64_t(0));
  };
  if (count == values.size())
    return {sum(), sum()};
  std::nth_element(values.begin(), values.begin() + count, values.end());
  const uint64_t least = sum();
  std::nth_element(values.begin(), values.begin() + count, values.end(),
                   std::greater<>());
  return {least, sum()};
}

ExpertSets::Spread ExpertSets::spread(size_t phase,
                                      const std::vector<uint32_t> &experts,
                                      uint32_t size) const {
  Spread all;
  std::vector<uint64_t> ofExpert(experts.size()), totals(experts.size());
  for (size_t s = 0; s != dense_[phase].size(); ++s) {
    for (size_t i = 0; i != experts.size(); ++i)
      totals[i] += ofExpert[i] = ofExpert_[phase][experts[i]][s];
    const uint64_t dense = dense_[phase][s];
    auto [least, most] = outerSums(ofExpert, size);
    all.low = std::min(all.low, dense + least);
    all.high = std::max(all.high, dense + most);
    all.fewest += dense;
  }
  all.most = all.fewest;
  auto [fewest, most] = outerSums(totals, size);
  all.fewest += fewest;
  all.most += most;
  return all;
}

ExpertSets::Extremes ExpertSets::extremes(const std::vector<uint32_t> &experts,
                                          uint32_t fewest,
                                          uint32_t most) const {
  Extremes result;
  // Of all sets of a size, or else what bounds them.
  auto search = [&](uint32_t size, bool (*beats)(const Costs &, const Costs &),
                    auto bound) -> std::vector<Extreme> {
    if (!canListAll(experts.size(), size, dense_[0].size())) {
      result.exhaustive = false;
      return {
          {size,
           {bound(spread(0, experts, size)), bound(spread(1, experts, size))}}};
    }
    Front front{beats, {}};
    auto show = [&](const ExpertSet &set, const Costs &costs) {
      front.show(set, costs);
    };
    Walk(*this, size, show).all(experts);
    return std::move(front.members);
  };
  // No slot reads less for a further expert.
  result.cheapest = search(fewest, atMost, [&](const Spread &s) {
    return prices_.atLeast(s.low, s.high, s.fewest);
  });
  result.dearest = search(most, atLeast, [&](const Spread &s) {
    return prices_.atMost(s.low, s.high, s.most);
  });
  return result;
}

ExpertSets::Costs ExpertSets::meanCosts(const std::vector<uint32_t> &experts,
                                        uint32_t size) const {
  Costs sum;
  uint64_t shown = 0;
  auto show = [&](const ExpertSet &, const Costs &costs) {
    ++shown;
    for (size_t i = 0; i != kTimes; ++i) {
      sum.gateUp[i] += costs.gateUp[i];
      sum.down[i] += costs.down[i];
    }
  };
  Walk walk(*this, size, show);
  const size_t slots = dense_[0].size();
  if (choose(experts.size(), size, kMostMeanSets + 1) <= kMostMeanSets &&
      canListAll(experts.size(), size, slots))
    walk.all(experts);
  else
    walk.drawn(experts, std::clamp<uint64_t>(kDrawnSums / (size * slots), 1,
                                             kDrawnSets));
  for (size_t i = 0; i != kTimes; ++i) {
    sum.gateUp[i] /= double(shown);
    sum.down[i] /= double(shown);
  }
  return sum;
}
