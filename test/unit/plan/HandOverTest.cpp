// The model checker on the plans that this project ships: every model on every
// target with a GPU.
#include "gtest/gtest.h"

#include "compiler/Target/Target.h"
#include "runtime/bundle/PlanCheck.h"
#include "runtime/handovers/Check.h"
#include "runtime/handovers/RingMoves.h"
#include "runtime/handovers/Schedule.h"
#include "test/unit/plan/TestPlans.h"

namespace grok {
namespace {

using handovers::CheckOptions;

void check(const ModelConfig &model, const std::string &target,
           const CheckOptions &options, const PlanOptions &planned = {}) {
  PlanTables plan = tablesFor(model, target, planned);
  absl::StatusOr<handovers::CheckReport> report =
      handovers::checkHandOvers(model, plan, "plan.bin", options);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_GE(report->scenarios, 4u);
  EXPECT_GE(report->orders, report->scenarios * (5 + 2 * options.slotsApart +
                                                 options.randomOrders));
  EXPECT_GT(report->handOvers, report->scenarios * plan.slots);
}

std::vector<std::string> gpuTargets() {
  std::vector<std::string> targets = shippedTargets();
  std::erase(targets, "cpu");
  return targets;
}

TEST(HandOver, EveryModelOnEveryTarget) {
  for (const char *name : kModels)
    for (const std::string &target : gpuTargets()) {
      SCOPED_TRACE(std::string(name) + " on " + target);
      check(readModel(name), target, {.randomOrders = 4});
    }
}

/// Few orders besides those that are always played: each has a hundred times
/// the hand-overs of a small model.
TEST(HandOver, FullSizeConfigsOnEveryTarget) {
  const std::vector<std::string> names = fullSizeConfigs();
  EXPECT_GE(names.size(), 6u);
  for (const std::string &name : names)
    for (const std::string &target : gpuTargets()) {
      SCOPED_TRACE(name + " on " + target);
      check(readFullSize(name), target, {.randomOrders = 1, .slotsApart = 1});
    }
}

TEST(HandOver, EveryPolicyAndBatch) {
  for (const char *slots : {"all", "group"})
    for (uint32_t batch : {1, 3})
      for (const char *activations : {"single", "split"}) {
        SCOPED_TRACE(std::string(slots) + " " + activations);
        PlanOptions options;
        options.slots = slots;
        options.maxBatch = batch;
        options.activations = activations;
        check(readModel("hash-offset"), "h100-sxm", {.randomOrders = 10},
              options);
      }
}

/// Codes of 8 bits come after the scales of their group of tiles.
TEST(HandOver, EveryQuantization) {
  for (const char *quantization : {"int8", "fp8"})
    for (const char *name : {"tiny-hash", "grok2-residual"}) {
      SCOPED_TRACE(std::string(quantization) + " " + name);
      PlanOptions options;
      options.quantization = quantization;
      EXPECT_NE(tablesFor(readModel(name), "h200", options).quantization,
                Quantization::kNone);
      check(readModel(name), "h200", {.randomOrders = 10}, options);
    }
}

TEST(HandOver, AThousandOrders) {
  for (const char *name : {"tiny-hash", "tiny-top2", "grok2-residual"}) {
    SCOPED_TRACE(name);
    PlanOptions options;
    options.maxBatch = 2;
    check(readModel(name), "h200",
          {.randomOrders = 250, .slotsApart = 12, .seed = 7}, options);
  }
}

TEST(HandOver, TheSameSeedGivesTheSameOrders) {
  handovers::Schedule a = handovers::randomSchedule(5, 3),
                      b = handovers::randomSchedule(5, 3);
  handovers::ReadySet first(a), second(b);
  for (uint32_t process = 0; process != 10; ++process) {
    first.insert(process);
    second.insert(process);
  }
  while (!first.empty()) {
    uint32_t process = first.pick();
    EXPECT_EQ(process, second.pick());
    first.erase(process);
    second.erase(process);
  }
  EXPECT_TRUE(second.empty());
}

/// Whoever waits for more of the ring than it holds waits forever, so both
/// sides must agree on how much that is.
TEST(HandOver, NothingIsAwaitedThatTheRingCannotHold) {
  for (const ModelConfig &model :
       {readFullSize("grok-1"), readFullSize("grok-2"),
        readModel("tiny-hash")}) {
    DecodeShape shape = decodeShape(model, tablesFor(model, "h200"));
    for (Quantization q :
         {Quantization::kNone, Quantization::kInt8, Quantization::kFp8})
      for (uint32_t width : {model.hiddenSize, model.expertWidth})
        for (uint32_t tiles : {1, 2, 7, 9, 62}) {
          uint32_t released = 0;
          for (const handovers::Moves &group :
               handovers::productMoves(shape, q, width, tiles).groups)
            for (handovers::RingMove move : *group) {
              EXPECT_LE(move.await - released, shape.ringStages);
              EXPECT_LE(move.release, move.await);
              released = move.release;
            }
          EXPECT_EQ(released, handovers::chunksOf(
                                  extentBytes(q, tiles, ceilDiv(width, kTileK)),
                                  shape.chunkBytes));
        }
  }
}

} // namespace
} // namespace grok
