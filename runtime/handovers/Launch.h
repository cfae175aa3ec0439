// A scenario on a plan: which rows a step computes, and who is an expert of
// what.
#pragma once

#include <vector>

#include "runtime/bundle/DecodeMemory.h"
#include "runtime/handovers/Scenario.h"

namespace grok::handovers {

struct Step {
  std::vector<bool> active;       // [row]
  std::vector<uint32_t> position; // [row]
  bool headNeeded = false;
};

class Launch {
public:
  /// Keeps references to all three.
  Launch(const ModelConfig &model, const PlanTables &plan,
         const Scenario &scenario);

  uint32_t rows() const { return uint32_t(scenario.rows.size()); }
  uint32_t layers() const { return scenario.layers; }
  /// Whether the two blocks of a cluster divide the rows; they have
  /// neighbouring slots.
  bool pairShares() const { return shape.cluster == 2 && rows() > 1; }
  /// Whether a slot keeps row b's residual stream.
  bool keeps(uint32_t slot, uint32_t b) const {
    return !pairShares() || b % 2 == slot % 2;
  }
  /// Epoch of a layer's words; the layer after the last is the head's.
  uint32_t epoch(uint32_t step, uint32_t layer) const {
    return step * (layers() + 1) + layer + 1;
  }
  /// The half of a buffer that a layer's words lie in.
  uint32_t parity(uint32_t step, uint32_t layer) const {
    return (epoch(step, layer) - 1) % kParities;
  }

  /// Whether row b's token of this layer has kept expert `expert`, and where
  /// among its experts; expertsPerToken: it has not.
  uint32_t place(uint32_t step, uint32_t layer, uint32_t b,
                 uint32_t expert) const;
  bool kept(uint32_t expert) const {
    return plan.experts[expert] == PlanTables::Expert::kKept;
  }
  /// Kept experts that some active row uses, ascending.
  std::vector<uint32_t> activeExperts(uint32_t step, uint32_t layer) const;
  /// The last kept expert of a row; none: numExperts.
  uint32_t lastKept(uint32_t step, uint32_t layer, uint32_t b) const;
  /// Whether somebody hands over an output of the experts for the row.
  bool hasOutput(uint32_t step, uint32_t layer, uint32_t b) const {
    return steps[step].active[b] &&
           (model.denseWidth > 0 ||
            lastKept(step, layer, b) != model.numExperts);
  }

  const ModelConfig &model;
  const PlanTables &plan;
  const Scenario &scenario;
  const DecodeShape shape;
  std::vector<Step> steps;

private:
  const std::vector<uint32_t> &route(uint32_t step, uint32_t layer,
                                     uint32_t b) const {
    return routes_[(step * layers() + layer) * rows() + b];
  }
  std::vector<std::vector<uint32_t>> routes_; // [step][layer][row]
};

} // namespace grok::handovers
