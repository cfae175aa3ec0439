#include "compiler/Passes/ExpertSets.h"

#include <algorithm>
#include <map>

#include "ir/Plan/PlanFacts.h"

using namespace grok;
using namespace grok::plan;

namespace {

/// Sets of one size that are looked at one by one, and the sums of a slot's
/// bytes on the way to them. The reference model's batch of 8 has 12870 sets,
/// and on 132 slots 3.2 million sums.
constexpr uint64_t kMostSets = 1 << 17, kMostSums = 1 << 25;

constexpr size_t kPhases = 2; // gate_up and down
using Costs = std::array<double, kPhases * ExpertSets::kTimes>;

struct Priced {
  Costs costs;
  ExpertSet set;
};

/// a is nowhere above b.
bool atMost(const Costs &a, const Costs &b) {
  for (size_t i = 0; i != a.size(); ++i)
    if (a[i] > b[i])
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

/// One look at all sets of one size: keeps those of which no other one `beats`
/// the costs.
struct ExpertSets::Search {
  const ExpertSets &sets;
  const uint32_t size;
  bool (*const beats)(const Costs &, const Costs &);
  std::vector<Priced> front;
  Priced current;
  SlotBytes bytes[kPhases]; // of `current`

  Search(const ExpertSets &sets, uint32_t size,
         bool (*beats)(const Costs &, const Costs &))
      : sets(sets), size(size), beats(beats),
        bytes{sets.dense_[0], sets.dense_[1]} {}

  void add(uint32_t expert) {
    current.set.push_back(expert);
    for (size_t phase = 0; phase != kPhases; ++phase)
      for (size_t s = 0; s != bytes[phase].size(); ++s)
        bytes[phase][s] += sets.ofExpert_[phase][expert][s];
  }
  void removeLast() {
    uint32_t expert = current.set.back();
    current.set.pop_back();
    for (size_t phase = 0; phase != kPhases; ++phase)
      for (size_t s = 0; s != bytes[phase].size(); ++s)
        bytes[phase][s] -= sets.ofExpert_[phase][expert][s];
  }

  void price() {
    for (size_t phase = 0; phase != kPhases; ++phase) {
      Times times = sets.times_(bytes[phase]);
      std::copy(times.begin(), times.end(),
                current.costs.begin() + phase * kTimes);
    }
    for (const Priced &other : front)
      if (beats(other.costs, current.costs))
        return;
    std::erase_if(front, [&](const Priced &other) {
      return beats(current.costs, other.costs);
    });
    front.push_back(current);
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
  void all(const std::vector<uint32_t> &experts, size_t from) {
    const size_t missing = size - current.set.size();
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
    const size_t left = size - current.set.size();
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

  std::vector<ExpertSet> found() && {
    std::vector<ExpertSet> out;
    for (Priced &one : front)
      out.push_back(std::move(one.set));
    return out;
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
    Search sets(*this, size, beats);
    if (canListAll(experts.size(), size, dense_[0].size())) {
      sets.all(experts, 0);
    } else {
      result.exhaustive = false;
      sets.byNumbers(groupsOf(experts), 0, size);
    }
    return std::move(sets).found();
  };
  // No slot reads less for a further expert.
  result.cheapest = search(fewest, atMost);
  result.dearest = search(most, atLeast);
  return result;
}
