// The model checker of a plan's hand-overs.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"
#include "runtime/bundle/PlanTables.h"

namespace grok::handovers {

struct CheckOptions {
  uint32_t randomOrders = 0; // of every scenario, besides the extreme ones
  uint32_t slotsApart = 2;   // that are played as the first and as the last
  uint64_t seed = 1;         // of the orders and of the experts that are drawn
};

/// What was looked at.
struct CheckReport {
  uint32_t scenarios = 0, orders = 0;
  uint64_t handOvers = 0; // waits of one process for another, in all scenarios
};

/// Plays scenarios() on a plan and proves that in no order of its slots anybody
/// waits forever, reads a word or an entry of the KV cache before it is there,
/// or overwrites what somebody has yet to read; then plays orders that try. The
/// plan has been checked (checkPlan) and is for a machine with a decode kernel.
/// Errors as those of link, proveOrder and simulate, with the scenario's name.
absl::StatusOr<CheckReport> checkHandOvers(const ModelConfig &model,
                                           const PlanTables &plan,
                                           std::string_view file,
                                           const CheckOptions &options);

} // namespace grok::handovers
