#include "compiler/Passes/ExpertSets.h"

#include <algorithm>
#include <map>
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
    show(current, {sets.times_(bytes[0]), sets.times_(bytes[1])});
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

  /// Every way to add some from the groups from `group` on, at most `limit`
  /// from each: groups that are ordered by size are alike, so that only the
  /// numbers matter.
  void byNumbers(const std::vector<ExpertSet> &groups, size_t group,
                 size_t limit) {
    const size_t left = size - current.size();
    if (left == 0)
      return price();
    if (group == groups.size())
      return;
    size_t n = std::min({left, limit, groups[group].size()});
    for (size_t i = 0; i != n; ++i) {
      add(groups[group][i]);
      byNumbers(groups, group + 1, i + 1);
    }
    for (size_t i = 0; i != n; ++i)
      removeLast();
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

/// The sets of those shown of which no other one `beats` the costs.
struct ExpertSets::Front {
  bool (*const beats)(const Costs &, const Costs &);
  std::vector<std::pair<ExpertSet, Costs>> members;

  void show(const ExpertSet &set, const Costs &costs) {
    for (const auto &[other, its] : members)
      if (beats(its, costs))
        return;
    std::erase_if(
        members, [&](const auto &other) { return beats(costs, other.second); });
    members.emplace_back(set, costs);
  }
};

ExpertSets::ExpertSets(DeviceOp device, PhaseTimes times)
    : device_(device), times_(std::move(times)) {
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

std::vector<ExpertSet>
ExpertSets::groupsOf(const std::vector<uint32_t> &experts) const {
  std::map<uint32_t, ExpertSet> byGroup;
  ExpertsOp op = DeviceOp(device_).find<ExpertsOp>();
  for (uint32_t e : experts)
    byGroup[groupOf(op, e)].push_back(e);
  std::vector<ExpertSet> groups;
  for (auto &[group, members] : byGroup)
    groups.push_back(members);
  std::sort(groups.begin(), groups.end(),
            [](const ExpertSet &a, const ExpertSet &b) {
              return a.size() != b.size() ? a.size() > b.size() : a < b;
            });
  return groups;
}

ExpertSets::Extremes ExpertSets::extremes(const std::vector<uint32_t> &experts,
                                          uint32_t fewest,
                                          uint32_t most) const {
  Extremes result;
  auto search = [&](uint32_t size,
                    bool (*beats)(const Costs &, const Costs &)) {
    Front front{beats, {}};
    auto show = [&](const ExpertSet &set, const Costs &costs) {
      front.show(set, costs);
    };
    Walk walk(*this, size, show);
    if (canListAll(experts.size(), size, dense_[0].size())) {
      walk.all(experts);
    } else {
      result.exhaustive = false;
      walk.byNumbers(groupsOf(experts), 0, size);
    }
    std::vector<ExpertSet> found;
    for (auto &[set, costs] : front.members)
      found.push_back(std::move(set));
    return found;
  };
  // No slot reads less for a further expert.
  result.cheapest = search(fewest, atMost);
  result.dearest = search(most, atLeast);
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
