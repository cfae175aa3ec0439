// The plan's edges against what the model checker's slots wait for.
#include <set>

#include "gtest/gtest.h"

#include "runtime/handovers/DecodeProgram.h"
#include "test/unit/plan/Planned.h"

namespace grok {
namespace {

/// The buffers of the words that a scenario waits for, by name.
std::set<std::string> buffersOf(const std::vector<handovers::Process> &all,
                                const PlanTables &plan) {
  std::set<std::string> names;
  for (const handovers::Process &process : all)
    for (const handovers::Op &op : process.ops)
      for (handovers::WordRange range : op.words)
        for (const ArenaRegion &region : plan.arena)
          if (op.kind == handovers::OpKind::kAwait &&
              range.begin * kWordBytes >= region.offset &&
              range.end * kWordBytes <= region.offset + region.bytes)
            names.insert(region.name);
  return names;
}

/// What the plan's edges say that crosses by words is what slots wait for.
TEST(Edge, AreWhatSlotsWaitFor) {
  for (const char *name : kModels)
    for (const char *slots : {"all", "group"}) {
      ModelConfig model = readModel(name);
      if (!model.hash && std::string(slots) == "group")
        continue;
      SCOPED_TRACE(std::string(name) + " " + slots);
      auto planned = planFor(model, "h200", {slots});
      ASSERT_TRUE(planned);
      std::set<std::string> edges;
      for (plan::EdgeOp edge :
           planned->device().getBody().front().getOps<plan::EdgeOp>())
        if (edge.getSync() == plan::EdgeSync::Epoch)
          edges.insert(edge.getBuffer().str());
      PlanTables plan = *toTables(planned->device());
      std::set<std::string> waits;
      for (const handovers::Scenario &scenario :
           handovers::scenarios(model, plan, 1))
        waits.merge(
            buffersOf(handovers::decodeProcesses(model, plan, scenario), plan));
      EXPECT_EQ(edges, waits);
    }
}

} // namespace
} // namespace grok
