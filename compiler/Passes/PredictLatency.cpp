// --plan-predict: latency of a step and a request, best, expected and worst
// over the routing outcomes. docs/dialects/rationale-plan.md has the formulas
// and what they were held against.
#include <algorithm>
#include <limits>
#include <optional>

#include "mlir/IR/Builders.h"

#include "compiler/Passes/LatencyModel.h"
#include "compiler/Passes/Passes.h"
#include "compiler/Passes/StepRouting.h"

namespace grok {
#define GEN_PASS_DEF_PREDICTLATENCY
#include "compiler/Passes/Passes.h.inc"
} // namespace grok

using namespace mlir;
using namespace grok;
using namespace grok::plan;

namespace {

/// A best or worst case.
struct Case {
  Terms terms;
  uint32_t experts = 0; // of a layer
};
/// A mean over all outcomes.
struct Mean {
  Terms terms;
  double experts = 0;
};
struct Cases {
  Case best, worst;
  Mean expected;
  bool exhaustive = true; // else best and worst are bounds
};

struct PredictLatency : grok::impl::PredictLatencyBase<PredictLatency> {
  using PredictLatencyBase::PredictLatencyBase;
  void runOnOperation() override;

private:
  void predict(LatencyModel &model, StepRouting &routing, uint32_t batch);
  /// Every step takes its own best or worst case: what rows chose before limits
  /// nothing.
  Cases request(LatencyModel &model, StepRouting &routing, uint32_t batch,
                uint32_t prompt, uint32_t generated);
  void add(PredictionScope scope, uint32_t batch, uint32_t context,
           uint32_t generated, const Cases &cases);
};

} // namespace

static DictionaryAttr dictionary(Builder &b, const Terms &terms) {
  auto entry = [&](StringRef name, double us) {
    return b.getNamedAttr(name, b.getF64FloatAttr(us));
  };
  return b.getDictionaryAttr(
      {entry("prefill_us", terms.prefill), entry("weights_us", terms.weights),
       entry("kv_us", terms.kv), entry("hand_over_us", terms.handOver),
       entry("router_stall_us", terms.routerStall),
       entry("head_us", terms.head), entry("choice_us", terms.choice),
       entry("launch_us", terms.launch)});
}

/// The expected case lies between the others. It may be off by what rounding
/// does to a mean of equal times, and, where the means of phases stand for
/// sets, by what a layer's time bends between those.
static const Terms &expectedTerms(const Cases &cases) {
  if (cases.expected.terms.total() < cases.best.terms.total())
    return cases.best.terms;
  if (cases.expected.terms.total() > cases.worst.terms.total())
    return cases.worst.terms;
  return cases.expected.terms;
}

void PredictLatency::add(PredictionScope scope, uint32_t batch,
                         uint32_t context, uint32_t generated,
                         const Cases &cases) {
  const auto &[best, worst, mean, exhaustive] = cases;
  const Terms &expected = expectedTerms(cases);
  DeviceOp device = getOperation();
  OpBuilder b = OpBuilder::atBlockEnd(&device.getBody().front());
  PredictionOp::create(b, device.getLoc(), scope, batch, context, generated,
                       APFloat(best.terms.total()), best.experts,
                       dictionary(b, best.terms), APFloat(expected.total()),
                       APFloat(mean.experts), dictionary(b, expected),
                       APFloat(worst.terms.total()), worst.experts,
                       dictionary(b, worst.terms), exhaustive);
}

using StepTime = llvm::function_ref<Terms(const Outcome &)>;

/// A step's best and worst case by its time.
static Cases step(const StepBounds &bounds, const LikelyOutcomes &likely,
                  StepTime time) {
  auto extreme = [&](const std::vector<Outcome> &outcomes, double sign) {
    std::optional<Case> found;
    for (const Outcome &outcome : outcomes) {
      Case one{time(outcome), outcome.experts};
      if (!found || sign * one.terms.total() < sign * found->terms.total())
        found = one;
    }
    return *found;
  };
  Mean mean;
  for (const auto &[probability, outcome] : likely) {
    mean.terms.add(time(outcome), probability);
    mean.experts += probability * outcome.experts;
  }
  return {extreme(bounds.cheapest, 1), extreme(bounds.dearest, -1), mean,
          bounds.exhaustive};
}

Cases PredictLatency::request(LatencyModel &model, StepRouting &routing,
                              uint32_t batch, uint32_t prompt,
                              uint32_t generated) {
  Cases sum;
  sum.best.experts = std::numeric_limits<uint32_t>::max();
  uint32_t position = 0;
  if (model.hasPrefill()) {
    auto [fewest, most] = routing.boundsOfPrompts(batch, prompt);
    sum.best = {model.prompts(batch, prompt, fewest, 0), fewest};
    sum.worst = {model.prompts(batch, prompt, most, 1), most};
    sum.exhaustive = routing.boundsOfPromptsAreReached(prompt);
    sum.expected.experts = routing.expectedOfPrompts(batch, prompt);
    sum.expected.terms =
        model.prompts(batch, prompt, sum.expected.experts, 0.5);
    position = prompt;
  }
  sum.best.terms.launch += model.facts().launchUs;
  sum.worst.terms.launch += model.facts().launchMaxUs;
  sum.expected.terms.launch += model.facts().launchUs;
  // A request of one new id may have no step.
  const uint32_t steps = prompt + generated - 1 - position;
  if (steps)
    sum.expected.experts = 0;
  // Every position but the last goes in; those from the prompt's last on choose
  // a token.
  for (; position < prompt + generated - 1; ++position) {
    Cases one = step(
        routing.at(position, batch), routing.expectedAt(position, batch),
        [&](const Outcome &o) {
          return model.step(o, batch, position + 1, position + 1 >= prompt);
        });
    sum.best.terms.add(one.best.terms);
    sum.worst.terms.add(one.worst.terms);
    sum.expected.terms.add(one.expected.terms);
    sum.expected.experts += one.expected.experts / steps;
    sum.best.experts = std::min(sum.best.experts, one.best.experts);
    sum.worst.experts = std::max(sum.worst.experts, one.worst.experts);
    sum.exhaustive &= one.exhaustive;
  }
  return sum;
}

void PredictLatency::predict(LatencyModel &model, StepRouting &routing,
                             uint32_t batch) {
  DeviceOp device = getOperation();
  uint32_t seq = device.find<BoundsOp>().getSeq();
  uint32_t prompt = promptTokens, generated = newTokens;
  if (uint64_t(prompt) + generated > seq) {
    generated = std::min(generated, (seq + 1) / 2);
    prompt = std::max(1u, std::min(prompt, seq - generated));
  }
  add(PredictionScope::Step, batch, prompt, 0,
      step(routing.anywhere(batch), routing.expectedAt(prompt - 1, batch),
           [&](const Outcome &o) {
             return model.step(o, batch, prompt, true);
           }));
  add(PredictionScope::Request, batch, prompt, generated,
      request(model, routing, batch, prompt, generated));
}

void PredictLatency::runOnOperation() {
  DeviceOp device = getOperation();
  if (!device.find<AssignmentOp>()) {
    device.emitOpError("has no slots assigned; run --plan-assign-slots first");
    return signalPassFailure();
  }
  if (device.find<PredictionOp>()) {
    device.emitOpError("has its latency predicted already");
    return signalPassFailure();
  }
  if (promptTokens == 0 || newTokens == 0) {
    device.emitOpError("cannot have a request of ")
        << promptTokens.getValue() << " + " << newTokens.getValue()
        << " ids predicted; expected at least 1 + 1";
    return signalPassFailure();
  }
  LatencyModel model(device);
  StepRouting routing(device, model);
  uint32_t maxBatch = device.find<BoundsOp>().getBatch();
  predict(model, routing, 1);
  if (maxBatch > 1)
    predict(model, routing, maxBatch);
}
