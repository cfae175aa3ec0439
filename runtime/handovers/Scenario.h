// What a launch is asked for, as far as it decides who waits for whom.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "runtime/bundle/PlanTables.h"

namespace grok::handovers {

/// As in DecodeParams: positions from `start` on are computed, `known` ids are
/// there, and the row ends with `limit` of them.
struct ScenarioRow {
  uint32_t start, known, limit;
};

struct Scenario {
  std::string name;
  std::vector<ScenarioRow> rows; // 1 .. maxBatch
  uint32_t layers;               // of the model that are played
  /// Experts of a row's token, ascending, as many as a token has. With hash
  /// routing the layer is 0.
  std::function<std::vector<uint32_t>(uint32_t step, uint32_t layer,
                                      uint32_t row)>
      route;
};

/// The extremes: one row and all rows; short rows, rows that end at different
/// steps, rows as long as the plan allows and across the border of a block of
/// positions; all tokens with one expert, with experts as far apart as they go,
/// with experts that were dropped, and drawn from `seed`.
std::vector<Scenario> scenarios(const ModelConfig &model,
                                const PlanTables &plan, uint64_t seed);

} // namespace grok::handovers
