#include "compiler/Passes/StepRouting.h"

#include <algorithm>
#include <cmath>

#include "compiler/Routing/DistinctExperts.h"
#include "ir/Model/ModelStructure.h"

using namespace mlir;
using namespace grok;
using namespace grok::plan;

/// The model that a device was made from; null if the module does not hold it.
static ir::ModelOp modelOf(DeviceOp device) {
  return SymbolTable::lookupNearestSymbolFrom<ir::ModelOp>(
      device->getParentOp(), device.getModelAttr());
}

static ExpertSets::Prices pricesOf(const LatencyModel &model) {
  using Times = ExpertSets::Times;
  return {.times =
              [&model](const ExpertSets::SlotBytes &bytes) {
                return Times{model.streamUs(bytes), model.computeUs(bytes)};
              },
          .atLeast =
              [&model](uint64_t low, uint64_t high, uint64_t total) {
                return Times{model.streamBoundsUs(low, high, total).least,
                             model.computeBoundsUs(high, total).least};
              },
          .atMost =
              [&model](uint64_t low, uint64_t high, uint64_t total) {
                return Times{model.streamBoundsUs(low, high, total).most,
                             model.computeBoundsUs(high, total).most};
              }};
}

StepRouting::StepRouting(DeviceOp device, LatencyModel &model)
    : device(device), withoutExperts(model.withoutExperts()),
      sets(device, pricesOf(model)) {
  ir::ModelOp op = modelOf(device);
  if (!op)
    return;
  FailureOr<ir::ModelParts> parts = ir::matchModel(op);
  if (failed(parts) || !parts->hashRoute)
    return;
  const ModelConfig config = ir::configOf(op, *parts);
  if (auto why =
          PositionReach::tooMany(config, device.find<BoundsOp>().getSeq())) {
    device.emitRemark("every reached expert is taken as reached from every "
                      "position: ")
        << *why;
    return;
  }
  reach.emplace(config);
}

bool StepRouting::isKept(uint32_t expert) {
  ArrayRef<int32_t> kept = device.find<ExpertsOp>().getKept(); // ascending
  return std::binary_search(kept.begin(), kept.end(), int32_t(expert));
}

const StepBounds &StepRouting::anywhere(uint32_t batch) {
  if (reach)
    return of(reach->before(device.find<BoundsOp>().getSeq()), batch);
  ArrayRef<int32_t> reached = device.find<ExpertsOp>().getReached();
  return of({reached.begin(), reached.end()}, batch);
}

const StepBounds &StepRouting::at(uint32_t position, uint32_t batch) {
  return reach ? of(reach->at(position).experts, batch) : anywhere(batch);
}

std::pair<uint32_t, uint32_t> StepRouting::distinctExperts(uint32_t usable,
                                                           uint32_t dropped,
                                                           uint32_t tokens) {
  const uint32_t perToken = device.find<ShapeOp>().getExpertsPerToken();
  return {perToken > dropped ? perToken - dropped : 0,
          std::min(usable, tokens * perToken)};
}

/// What the layers cost if the phases of experts cost this.
Outcome StepRouting::outcome(uint32_t experts,
                             const ExpertSets::Costs &costs) const {
  Outcome all = withoutExperts;
  all.experts = experts;
  for (auto [kind, times] : {std::pair{PhaseKind::GateUp, costs.gateUp},
                             std::pair{PhaseKind::Down, costs.down}}) {
    all.phase(kind).stream = times[0];
    all.phase(kind).compute = times[1];
  }
  return all;
}

/// Hash: a row chooses one of the reached experts, and all of them may choose
/// the same one or each its own; rows of a pruned one need none. Learned: a row
/// chooses `experts_per_token` different ones.
const StepBounds &StepRouting::of(const std::vector<uint32_t> &reached,
                                  uint32_t batch) {
  auto [found, isNew] = bounds.try_emplace({reached, batch});
  if (!isNew)
    return found->second;
  std::vector<uint32_t> usable;
  llvm::copy_if(reached, std::back_inserter(usable),
                [&](uint32_t e) { return isKept(e); });
  auto [fewest, most] = distinctExperts(
      uint32_t(usable.size()), uint32_t(reached.size() - usable.size()), batch);
  ExpertSets::Extremes extremes = sets.extremes(usable, fewest, most);
  found->second.exhaustive = extremes.exhaustive;
  for (const auto &[experts, costs] : extremes.cheapest)
    found->second.cheapest.push_back(outcome(experts, costs));
  for (const auto &[experts, costs] : extremes.dearest)
    found->second.dearest.push_back(outcome(experts, costs));
  return found->second;
}

StepRouting::Shares StepRouting::sharesAt(uint32_t position) {
  Shares shares;
  if (!reach) {
    ArrayRef<int32_t> reached = device.find<ExpertsOp>().getReached();
    for (int32_t e : reached)
      shares[uint32_t(e)] = 1.0 / double(reached.size());
    return shares;
  }
  const double ids = device.find<ShapeOp>().getVocab();
  const auto &[experts, counts] = reach->at(position);
  for (auto [e, count] : llvm::zip(experts, counts))
    shares[e] = count / ids;
  return shares;
}

/// The probability of each number of distinct kept experts.
std::vector<double> StepRouting::distinct(const Shares &shares,
                                          uint32_t batch) {
  auto shape = device.find<ShapeOp>();
  std::vector<double> kept;
  for (auto [e, share] : shares)
    if (isKept(e))
      kept.push_back(share);
  if (shape.getRouter() == RouterKind::Hash)
    return distinctByShares(kept, batch);
  return distinctBySets(uint32_t(kept.size()),
                        uint32_t(shares.size() - kept.size()),
                        shape.getExpertsPerToken(), batch);
}

/// What the layers cost in the mean over all sets of `size` experts.
Outcome StepRouting::meanOutcome(const std::vector<uint32_t> &usable,
                                 uint32_t size) {
  auto [found, isNew] = means.try_emplace({usable, size});
  if (!isNew)
    return found->second;
  return found->second = outcome(size, sets.meanCosts(usable, size));
}

/// Sets of as many experts count as equally likely, as they are where every
/// expert is. Numbers that hardly ever come are left out.
const LikelyOutcomes &StepRouting::expectedAt(uint32_t position,
                                              uint32_t batch) {
  const Shares shares = sharesAt(position);
  auto [found, isNew] = likely.try_emplace({shares, batch});
  if (!isNew)
    return found->second;
  std::vector<uint32_t> usable;
  for (auto [e, share] : shares)
    if (isKept(e))
      usable.push_back(e);
  const std::vector<double> probability = distinct(shares, batch);
  constexpr double kLikely = 1e-12;
  for (uint32_t n = 0; n != probability.size(); ++n)
    if (probability[n] > kLikely)
      found->second.push_back({probability[n], meanOutcome(usable, n)});
  return found->second;
}

std::pair<uint32_t, uint32_t> StepRouting::boundsOfPrompts(uint32_t batch,
                                                           uint32_t prompt) {
  auto experts = device.find<ExpertsOp>();
  const auto dropped = llvm::count_if(
      experts.getReached(), [&](int32_t e) { return !isKept(uint32_t(e)); });
  return distinctExperts(uint32_t(experts.getKept().size()), uint32_t(dropped),
                         batch * prompt);
}

bool StepRouting::boundsOfPromptsAreReached(uint32_t prompt) {
  if (!reach) // a hash without it has too many positions to tell
    return device.find<ShapeOp>().getRouter() != RouterKind::Hash;
  ArrayRef<int32_t> reached = device.find<ExpertsOp>().getReached();
  return llvm::all_of(llvm::seq(prompt), [&](uint32_t position) {
    return llvm::equal(reach->at(position).experts, reached);
  });
}

double StepRouting::expectedOfPrompts(uint32_t batch, uint32_t prompt) {
  auto shape = device.find<ShapeOp>();
  std::map<uint32_t, double> missed; // the probability that no token uses it
  // Without a hash every position is like the first.
  const uint32_t positions = reach ? prompt : 1,
                 tokens = reach ? batch : batch * prompt;
  for (uint32_t position = 0; position != positions; ++position)
    for (auto [e, share] : sharesAt(position)) {
      const double one = shape.getExpertsPerToken() * share;
      missed.try_emplace(e, 1).first->second *= std::pow(1 - one, tokens);
    }
  double experts = 0;
  for (auto [e, probability] : missed)
    if (isKept(e))
      experts += 1 - probability;
  return experts;
}
