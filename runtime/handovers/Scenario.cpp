#include "runtime/handovers/Scenario.h"

#include <algorithm>

#include "runtime/bundle/DecodeMemory.h"

namespace grok::handovers {
namespace {

/// Steps that a scenario plays: each parity comes again.
constexpr uint32_t kSteps = 3;

/// A number that depends on all of these; the finaliser of splitmix64.
uint64_t mix(uint64_t seed, uint64_t step, uint64_t layer, uint64_t row) {
  uint64_t z = seed + (step + 1) * 0x9e3779b97f4a7c15u +
               (layer + 1) * 0xbf58476d1ce4e5b9u +
               (row + 1) * 0x94d049bb133111ebu;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

using Experts = std::vector<uint32_t>;

/// The `count` entries of `from` that follow the `first`, around, ascending.
Experts window(const Experts &from, uint64_t first, uint32_t count) {
  Experts chosen;
  for (uint32_t i = 0; i != count; ++i)
    chosen.push_back(from[(first + i) % from.size()]);
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

Experts draw(Experts from, uint64_t seed, uint32_t count) {
  for (uint32_t i = 0; i != count; ++i)
    std::swap(from[i], from[i + mix(seed, i, 0, 0) % (from.size() - i)]);
  from.resize(count);
  std::sort(from.begin(), from.end());
  return from;
}

/// All rows of the batch, row b from position start(b) on; every other one ends
/// a step earlier, and the second, if there is one, has nothing to compute.
template <class Start>
std::vector<ScenarioRow> allRows(const PlanTables &plan, Start start) {
  std::vector<ScenarioRow> rows;
  for (uint32_t b = 0; b != plan.maxBatch; ++b) {
    const uint32_t last = plan.maxSeq > kSteps ? plan.maxSeq - kSteps : 0,
                   from = std::min<uint32_t>(start(b), last),
                   known = from + (b == 1 ? 0 : 1);
    rows.push_back({from, known, known + (b == 1 ? 0 : kSteps - b % 2)});
  }
  return rows;
}

} // namespace

std::vector<Scenario> scenarios(const ModelConfig &model,
                                const PlanTables &plan, uint64_t seed) {
  const uint32_t perToken = model.expertsPerToken;
  // Layers repeat. Whether their number is even decides which half of a buffer
  // a step begins with.
  const uint32_t layers =
      model.numLayers <= 3 ? model.numLayers : 2 + model.numLayers % 2;
  Experts kept, dropped;
  for (uint32_t e = 0; e != model.numExperts; ++e)
    if (plan.experts[e] == PlanTables::Expert::kKept)
      kept.push_back(e);
    else if (plan.experts[e] == PlanTables::Expert::kPruned)
      dropped.push_back(e);
  Experts chosen = dropped;
  chosen.insert(chosen.end(), kept.begin(), kept.end());

  auto drawn = [=](uint32_t step, uint32_t layer, uint32_t row) {
    return draw(chosen, mix(seed, step, layer, row), perToken);
  };
  std::vector<Scenario> all;
  const uint32_t known = std::min(2u, plan.maxSeq);
  all.push_back({"a row alone",
                 {{0, known, std::min(known + kSteps - 1, plan.maxSeq)}},
                 layers,
                 drawn});
  all.push_back(
      {"long rows with one expert",
       allRows(plan, [&](uint32_t b) { return plan.maxSeq - 37 * b; }), layers,
       [=](uint32_t, uint32_t, uint32_t) {
         return window(kept, 0, perToken);
       }});
  all.push_back({"rows at a block's border with experts apart",
                 allRows(plan, [](uint32_t b) { return kKvPositions - 2 + b; }),
                 layers, [=](uint32_t step, uint32_t layer, uint32_t row) {
                   return window(kept, uint64_t(row) * perToken + step + layer,
                                 perToken);
                 }});
  all.push_back({"rows with any experts",
                 allRows(plan, [](uint32_t b) { return 5 * b; }), layers,
                 drawn});
  if (dropped.size() >= perToken)
    all.push_back({"rows with dropped experts",
                   allRows(plan, [](uint32_t b) { return b; }), layers,
                   [=](uint32_t, uint32_t, uint32_t row) {
                     return window(dropped, row, perToken);
                   }});
  return all;
}

} // namespace grok::handovers
