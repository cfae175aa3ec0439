#include "runtime/handovers/Launch.h"

#include <algorithm>

#include "runtime/bundle/PlanCheck.h"

namespace grok::handovers {
namespace {

/// Every step of a launch, by the book-keeping of nextStep in
/// codegen/Device/decode.h.
std::vector<Step> stepsOf(const std::vector<ScenarioRow> &rows) {
  std::vector<Step> steps;
  Step step;
  for (const ScenarioRow &row : rows) {
    step.active.push_back(row.start < row.known);
    step.position.push_back(row.start);
  }
  auto any = [&] {
    return std::find(step.active.begin(), step.active.end(), true) !=
           step.active.end();
  };
  while (any()) {
    step.headNeeded = false;
    for (size_t b = 0; b != rows.size(); ++b)
      step.headNeeded |=
          step.active[b] && step.position[b] + 1 >= rows[b].known;
    steps.push_back(step);
    for (size_t b = 0; b != rows.size(); ++b) {
      uint32_t next = step.position[b] + 1;
      bool more =
          step.active[b] && (next < rows[b].known || next + 1 < rows[b].limit);
      step.active[b] = more;
      step.position[b] = more ? next : step.position[b];
    }
  }
  return steps;
}

} // namespace

Launch::Launch(const ModelConfig &m, const PlanTables &p, const Scenario &s)
    : model(m), plan(p), scenario(s), shape(decodeShape(m, p)),
      steps(stepsOf(s.rows)) {
  for (uint32_t step = 0; step != steps.size(); ++step)
    for (uint32_t layer = 0; layer != layers(); ++layer)
      for (uint32_t b = 0; b != rows(); ++b)
        routes_.push_back(s.route(step, m.hash ? 0 : layer, b));
}

uint32_t Launch::place(uint32_t step, uint32_t layer, uint32_t b,
                       uint32_t expert) const {
  const std::vector<uint32_t> &experts = route(step, layer, b);
  if (!steps[step].active[b])
    return model.expertsPerToken;
  return uint32_t(std::find(experts.begin(), experts.end(), expert) -
                  experts.begin());
}

std::vector<uint32_t> Launch::activeExperts(uint32_t step,
                                            uint32_t layer) const {
  std::vector<uint32_t> active;
  for (uint32_t e = 0; e != model.numExperts; ++e)
    for (uint32_t b = 0; b != rows(); ++b)
      if (kept(e) && place(step, layer, b, e) != model.expertsPerToken) {
        active.push_back(e);
        break;
      }
  return active;
}

uint32_t Launch::lastKept(uint32_t step, uint32_t layer, uint32_t b) const {
  uint32_t last = model.numExperts;
  for (uint32_t e : route(step, layer, b))
    if (kept(e))
      last = e;
  return last;
}

} // namespace grok::handovers
