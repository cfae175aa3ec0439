// Whole plans: every model on every shipped target, down to the tables.
#include <cmath>

#include "compiler/Target/Target.h"
#include "nlohmann/json.hpp"
#include "gtest/gtest.h"

#include "test/unit/plan/Planned.h"

namespace grok {
namespace {

/// Bytes of the expert's extents on a slot, in one layer.
uint64_t bytesOn(const PlanTables &tables, uint32_t slot, uint32_t expert) {
  uint64_t bytes = 0;
  for (const PlanMatrix &matrix : tables.matrices) {
    bool ofExpert =
        matrix.kind == MatrixKind::kGateUp || matrix.kind == MatrixKind::kDown;
    if (matrix.kind != MatrixKind::kHead &&
        (!ofExpert || matrix.expert == expert))
      bytes += uint64_t(matrix.slots[slot].tileCount) * matrix.steps;
  }
  return bytes * kFragmentBytes;
}

TEST(Plan, EveryModelPlansForEveryTarget) {
  for (const char *name : kModels)
    for (const std::string &target : shippedTargets()) {
      SCOPED_TRACE(std::string(name) + " on " + target);
      tablesFor(readModel(name), target);
    }
}

TEST(Plan, FullSizeConfigsPlanForEveryTarget) {
  for (const std::string &name : fullSizeConfigs())
    for (const std::string &target : shippedTargets()) {
      SCOPED_TRACE(name + " on " + target);
      const ModelConfig model = readFullSize(name);
      PlanOptions split;
      split.activations = "split";
      tablesFor(model, target);
      tablesFor(model, target, split);
    }
}

TEST(Plan, EveryPolicyGivesValidTables) {
  for (const char *slots : {"all", "group"})
    for (const char *banks : {"striped", "expert"})
      for (const char *target : {"h200", "h100-pcie", "a100-sxm4-80gb", "cpu"})
        for (const char *model : {"tiny-hash", "hash-offset"}) {
          SCOPED_TRACE(std::string(slots) + " " + banks + " " + target);
          PlanTables tables =
              tablesFor(readModel(model), target, {slots, banks});
          EXPECT_EQ(tables.smPolicy == SmPolicy::kGroup,
                    std::string(slots) == "group");
        }
}

TEST(Plan, UnreachableExpertsAreLeftOutUnlessKept) {
  ModelConfig model = readModel("tiny-hash");
  PlanTables without = tablesFor(model, "h200");
  EXPECT_EQ(std::count(without.experts.begin(), without.experts.end(),
                       PlanTables::Expert::kUnreachable),
            16);
  PlanOptions keep;
  keep.keepUnreachable = true;
  PlanTables with = tablesFor(model, "h200", keep);
  EXPECT_EQ(std::count(with.experts.begin(), with.experts.end(),
                       PlanTables::Expert::kKept),
            32);
  uint64_t used = 0, usedWith = 0;
  for (const BankSegment &bank : without.banks)
    used += bank.usedBytes;
  for (const BankSegment &bank : with.banks)
    usedWith += bank.usedBytes;
  EXPECT_LT(used, usedWith);
}

/// Within a tile of what an expert writes, which all deal alike, and one of
/// what it reads, which go to other slots for every expert.
TEST(Plan, LayerBytesAreBalancedForEveryExpert) {
  PlanTables tables = tablesFor(readFullSize("grok-1"), "h200");
  uint64_t largest = (32768 + 6144) / kTileK * kFragmentBytes;
  for (uint32_t expert = 0; expert < 8; ++expert) {
    uint64_t fewest = ~0ull, most = 0;
    for (uint32_t s = 0; s < tables.slots; ++s) {
      fewest = std::min(fewest, bytesOn(tables, s, expert));
      most = std::max(most, bytesOn(tables, s, expert));
    }
    EXPECT_LE(most - fewest, largest) << "expert " << expert;
  }
}

TEST(Plan, ExpertsTakeTurnsWithTheTilesThatDoNotDivideEvenly) {
  PlanTables tables = tablesFor(readModel("tiny-hash"), "h200");
  std::vector<uint32_t> tiles(tables.slots);
  uint32_t all = 0;
  for (const PlanMatrix &matrix : tables.matrices)
    if (matrix.kind == MatrixKind::kGateUp)
      for (uint32_t s = 0; s < tables.slots; ++s) {
        tiles[s] += matrix.slots[s].tileCount;
        all += matrix.slots[s].tileCount;
      }
  auto [fewest, most] = std::minmax_element(tiles.begin(), tiles.end());
  EXPECT_LE(*most - *fewest, 2u) << all << " tiles";
}

TEST(Plan, TheSameInputGivesTheSameTables) {
  ModelConfig model = readModel("hash-offset");
  EXPECT_EQ(tablesFor(model, "a100-sxm4-40gb").serialize(),
            tablesFor(model, "a100-sxm4-40gb").serialize());
}

TEST(Plan, IncompletePlanGivesNoTables) {
  auto planned = planFor(readModel("tiny-hash"), "cpu");
  ASSERT_TRUE(planned);
  planned->device().find<plan::StreamOp>().erase();
  EXPECT_TRUE(failed(toTables(planned->device())));
  EXPECT_NE(planned->errors.find("is not complete; run --plan-memory"),
            std::string::npos)
      << planned->errors;
}

TEST(Plan, PredictionAddsUpAndIsOrdered) {
  for (const char *slots : {"all", "group"}) {
    auto planned = planFor(readModel("tiny-hash"), "h200", {slots});
    ASSERT_TRUE(planned);
    nlohmann::json root = nlohmann::json::parse(
        predictionJson(planned->device()), nullptr, false);
    ASSERT_EQ(root["predictions"].size(), 4u);
    for (const nlohmann::json &entry : root["predictions"]) {
      EXPECT_LE(entry["best"]["us"], entry["expected"]["us"]);
      EXPECT_LE(entry["expected"]["us"], entry["worst"]["us"]);
      for (const char *outcome : {"best", "expected", "worst"}) {
        double sum = 0;
        for (const auto &term : entry[outcome]["terms"])
          sum += term.get<double>();
        EXPECT_NEAR(sum, entry[outcome]["us"].get<double>(), 1e-6 * sum);
      }
    }
  }
}

/// E (1 - (1 - k / E)^batch) of E equally likely experts of which a row takes
/// k.
TEST(Plan, ExpectedBatchChoosesAsManyExpertsAsInTheMean) {
  auto check = [](const char *model, double kept, double perRow) {
    auto planned = planFor(readModel(model), "h200", {});
    ASSERT_TRUE(planned);
    for (auto op :
         planned->device().getBody().front().getOps<plan::PredictionOp>())
      EXPECT_NEAR(op.getExpectedExperts().convertToDouble(),
                  kept * (1 - std::pow(1 - perRow / kept, op.getBatch())), 1e-9)
          << model;
  };
  check("tiny-hash", 16, 1);
  check("tiny-top2", readModel("tiny-top2").numExperts, 2);
}

TEST(Plan, WorstBatchChoosesAsManyExpertsAsItCan) {
  auto check = [](const char *model, uint32_t batch, uint32_t best,
                  uint32_t worst) {
    auto planned = planFor(readModel(model), "h200");
    ASSERT_TRUE(planned);
    for (auto op :
         planned->device().getBody().front().getOps<plan::PredictionOp>())
      if (op.getBatch() == batch) {
        EXPECT_EQ(op.getBestExperts(), best) << model;
        EXPECT_EQ(op.getWorstExperts(), worst) << model;
      }
  };
  check("tiny-hash", 1, 1, 1);
  check("tiny-hash", 8, 1, 8);
  check("tiny-top2", 1, 2, 2);
  uint32_t experts = readModel("tiny-top2").numExperts;
  check("tiny-top2", 8, 2, std::min(experts, 16u));
}

} // namespace
} // namespace grok
