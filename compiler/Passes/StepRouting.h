// What a step's routing can come to, and how likely it is.
#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/Passes/ExpertSets.h"
#include "compiler/Passes/LatencyModel.h"
#include "compiler/Routing/PositionReach.h"

namespace grok::plan {

/// The outcomes among which are the best and the worst of a step, whatever the
/// context.
struct StepBounds {
  std::vector<Outcome> cheapest, dearest;
  bool exhaustive = true; // else they are bounds
};

/// The mean outcome of each number of distinct experts, and how likely that
/// number is.
struct LikelyOutcome {
  double probability;
  Outcome outcome;
};
using LikelyOutcomes = std::vector<LikelyOutcome>;

class StepRouting {
public:
  StepRouting(DeviceOp device, LatencyModel &model);
  /// With `batch` rows at any positions of the sequence.
  const StepBounds &anywhere(uint32_t batch);
  /// With all rows at this position.
  const StepBounds &at(uint32_t position, uint32_t batch);
  /// With an id in each row at this position that is any of the vocabulary, all
  /// as likely; of a learned router with any experts.
  const LikelyOutcomes &expectedAt(uint32_t position, uint32_t batch);
  /// Distinct experts of a layer that the tokens of so many prompts use, at
  /// least and at most.
  std::pair<uint32_t, uint32_t> boundsOfPrompts(uint32_t batch,
                                                uint32_t prompt);
  /// Whether some prompts come to these bounds, as they do where every position
  /// reaches what any position of the sequence reaches.
  bool boundsOfPromptsAreReached(uint32_t prompt);
  /// Their mean number, of such ids.
  double expectedOfPrompts(uint32_t batch, uint32_t prompt);

private:
  /// The probability that an id leads to each expert, by number; none that is
  /// 0.
  using Shares = std::map<uint32_t, double>;

  Outcome outcome(uint32_t experts, const ExpertSets::Costs &costs) const;
  const StepBounds &of(const std::vector<uint32_t> &reached, uint32_t batch);
  Shares sharesAt(uint32_t position);
  /// Distinct experts that `tokens` tokens use, at least and at most, of
  /// `usable` ones; `dropped` more can be chosen, but need none.
  std::pair<uint32_t, uint32_t>
  distinctExperts(uint32_t usable, uint32_t dropped, uint32_t tokens);
  bool isKept(uint32_t expert);
  std::vector<double> distinct(const Shares &shares, uint32_t batch);
  Outcome meanOutcome(const std::vector<uint32_t> &usable, uint32_t size);

  DeviceOp device;
  const Outcome withoutExperts; // of any step
  ExpertSets sets;
  std::optional<PositionReach> reach; // none: any reached expert anywhere
  std::map<std::pair<std::vector<uint32_t>, uint32_t>, StepBounds>
      bounds; // of reached experts and a batch
  std::map<std::pair<std::vector<uint32_t>, uint32_t>, Outcome>
      means; // of usable experts and a number of them
  std::map<std::pair<Shares, uint32_t>, LikelyOutcomes>
      likely; // of shares and a batch
};

} // namespace grok::plan
