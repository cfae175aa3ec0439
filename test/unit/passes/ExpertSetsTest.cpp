// The sets of experts that bound a step, held against all sets one by one.
#include "compiler/Passes/ExpertSets.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <random>
#include <string>

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "gtest/gtest.h"

#include "compiler/Passes/Passes.h"

namespace grok::plan {
namespace {

constexpr uint32_t kExperts = 6, kSlots = 5;

/// A device of five slots whose experts have tiles that don't divide evenly, so
/// that it matters which of them meet.
std::string planText(uint32_t experts, uint32_t groups) {
  std::string list;
  for (uint32_t e = 0; e != experts; ++e)
    list += (e ? ", " : "") + std::to_string(e);
  std::string text =
      "plan.device @decode of @main rank 0 of 1 {\n"
      "plan.target \"five\" sm 90 slots 5 shared 232448 memory 3000000000 "
      "banks "
      "2 align 4096 gb_s 1.0e+03 efficiency 1.0 curve_slots [1.0] curve_rate "
      "[1.0] hand_over [1.0, 2.0] launch [1.0, 2.0] clock_mhz 1.0e+03 "
      "bytes_per_cycle 1.0e+02\n"
      "plan.shape vocab 64 layers 2 hidden 64 heads 1 kv_heads 1 head_dim 64 "
      "experts_per_token 1 expert_width 36 dense_width 0 router hash tied\n"
      "plan.bounds batch 8 seq 64 dtype bf16 activations single\n";
  text += "plan.experts total " + std::to_string(experts) + " groups " +
          std::to_string(groups) + " kept [" + list + "] reached [" + list +
          "]\n";
  auto matrix = [&](const char *kind, uint32_t tiles, uint32_t steps) {
    text += std::string("plan.matrix ") + kind + " tiles " +
            std::to_string(tiles) + " steps " + std::to_string(steps) + "\n";
  };
  matrix("qkv", 24, 2);
  matrix("attn_out", 8, 2);
  for (const char *kind : {"gate_up", "down"})
    for (uint32_t e = 0; e != experts; ++e)
      matrix((std::string(kind) + " expert " + std::to_string(e)).c_str(),
             kind[0] == 'g' ? 9 : 8, 2);
  matrix("head", 8, 2);
  return text + "}\n";
}

/// Something that grows with what each slot reads, but is neither the sum nor
/// the largest.
ExpertSets::Times timesOf(const ExpertSets::SlotBytes &bytes) {
  double squares = 0;
  for (uint64_t b : bytes)
    squares += double(b) * double(b);
  return {squares, double(*std::max_element(bytes.begin(), bytes.end()))};
}

/// The same for prices that are sums of squares and the largest.
ExpertSets::Times boundBelow(uint64_t, uint64_t, uint64_t total) {
  const double even = double(total) / kSlots;
  return {even * even * kSlots, even};
}
ExpertSets::Times boundAbove(uint64_t, uint64_t high, uint64_t total) {
  return {double(high) * double(total), double(high)};
}
ExpertSets setsOf(DeviceOp device) {
  return ExpertSets(device, {timesOf, boundBelow, boundAbove});
}

class ExpertSetsTest : public testing::Test {
protected:
  DeviceOp plan(uint32_t experts = kExperts, uint32_t groups = 2) {
    context.loadDialect<PlanDialect>();
    module = mlir::parseSourceString<mlir::ModuleOp>(planText(experts, groups),
                                                     &context);
    EXPECT_TRUE(module);
    mlir::PassManager manager(&context);
    manager.addNestedPass<DeviceOp>(createAssignSlots());
    EXPECT_TRUE(mlir::succeeded(manager.run(*module)));
    return *module->getOps<DeviceOp>().begin();
  }

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

/// The costs of a set by the plan's extents.
ExpertSets::Costs costsOf(DeviceOp device, uint64_t members) {
  ExpertSets::SlotBytes bytes[2] = {ExpertSets::SlotBytes(kSlots),
                                    ExpertSets::SlotBytes(kSlots)};
  for (MatrixOp matrix : device.getBody().front().getOps<MatrixOp>())
    if (matrix.getExpert() && (members >> *matrix.getExpert() & 1))
      for (uint32_t s = 0; s != kSlots; ++s)
        bytes[matrix.getKind() == StreamKind::Down][s] += matrix.extentBytes(s);
  return {timesOf(bytes[0]), timesOf(bytes[1])};
}

/// Something that grows with all costs.
double priceOf(const ExpertSets::Costs &costs, double weight) {
  return costs.gateUp[0] + weight * costs.gateUp[1] +
         weight * weight * costs.down[0] + costs.down[1];
}

TEST_F(ExpertSetsTest, ExtremesOfEverySet) {
  DeviceOp device = plan();
  const ExpertSets sets = setsOf(device);
  const std::vector<uint32_t> experts = {0, 1, 2, 4, 5};
  for (uint32_t most = 1; most <= 5; ++most)
    for (uint32_t fewest = most > 2 ? 2 : 1; fewest <= most; ++fewest) {
      ExpertSets::Extremes extremes = sets.extremes(experts, fewest, most);
      EXPECT_TRUE(extremes.exhaustive);
      for (double weight : {0.01, 1.0, 100.0}) {
        double least = HUGE_VAL, dearest = 0;
        for (uint32_t members = 1; members != 1u << kExperts; ++members) {
          uint32_t count = uint32_t(std::popcount(members));
          if (members >> 3 & 1 || count < fewest || count > most)
            continue;
          double price = priceOf(costsOf(device, members), weight);
          least = std::min(least, price);
          dearest = std::max(dearest, price);
        }
        double foundLeast = HUGE_VAL, foundDearest = 0;
        for (const auto &[count, costs] : extremes.cheapest)
          foundLeast = std::min(foundLeast, priceOf(costs, weight));
        for (const auto &[count, costs] : extremes.dearest)
          foundDearest = std::max(foundDearest, priceOf(costs, weight));
        EXPECT_EQ(foundLeast, least) << fewest << " to " << most;
        EXPECT_EQ(foundDearest, dearest) << fewest << " to " << most;
      }
    }
}

TEST_F(ExpertSetsTest, NoExpertAtAll) {
  DeviceOp device = plan();
  ExpertSets::Extremes extremes = setsOf(device).extremes({1, 2}, 0, 1);
  ASSERT_EQ(extremes.cheapest.size(), 1u);
  EXPECT_EQ(extremes.cheapest[0].experts, 0u);
  EXPECT_EQ(priceOf(extremes.cheapest[0].costs, 1), 0);
}

/// The number of sets says nothing of the way to them: of 33 experts there is
/// one set of 33, and 2^33 beginnings of it that lead nowhere.
TEST_F(ExpertSetsTest, AnySizeOfManyExperts) {
  constexpr uint32_t kMany = 33;
  DeviceOp device = plan(kMany, 3);
  const ExpertSets sets = setsOf(device);
  std::vector<uint32_t> experts(kMany);
  std::iota(experts.begin(), experts.end(), 0);
  for (uint32_t size = 1; size <= kMany; ++size) {
    ExpertSets::Extremes extremes = sets.extremes(experts, size, size);
    const bool few = size <= 4 || size >= kMany - 4;
    EXPECT_EQ(extremes.exhaustive, few) << size;
    ASSERT_FALSE(extremes.dearest.empty()) << size;
    for (const ExpertSets::Extreme &extreme : extremes.dearest)
      EXPECT_EQ(extreme.experts, size);
  }
}

/// Few sets, but each with many experts on the way to it.
TEST_F(ExpertSetsTest, LongSetsCountEveryStep) {
  constexpr uint32_t kMany = 8192;
  DeviceOp device = plan(kMany, 2);
  std::vector<uint32_t> experts(kMany);
  std::iota(experts.begin(), experts.end(), 0);
  const ExpertSets sets = setsOf(device);
  EXPECT_FALSE(sets.extremes(experts, kMany - 1, kMany - 1).exhaustive);
  EXPECT_TRUE(sets.extremes(experts, kMany, kMany).exhaustive);
}

/// Of 24 experts there are too many sets of 12 and of 10: no set passes the
/// bounds.
TEST_F(ExpertSetsTest, BoundsOfTooMany) {
  DeviceOp device = plan(24, 3);
  std::vector<uint32_t> experts(24);
  std::iota(experts.begin(), experts.end(), 0);
  const ExpertSets::Extremes extremes =
      setsOf(device).extremes(experts, 10, 12);
  EXPECT_FALSE(extremes.exhaustive);
  ASSERT_EQ(extremes.cheapest.size(), 1u);
  ASSERT_EQ(extremes.dearest.size(), 1u);
  const auto &[fewest, least] = extremes.cheapest[0];
  const auto &[most, dearest] = extremes.dearest[0];
  EXPECT_EQ(fewest, 10u);
  EXPECT_EQ(most, 12u);
  std::mt19937 engine(1);
  for (int n = 0; n != 2000; ++n) {
    std::shuffle(experts.begin(), experts.end(), engine);
    uint64_t members = 0;
    const uint32_t size = 10 + n % 3;
    for (uint32_t i = 0; i != size; ++i)
      members |= uint64_t(1) << experts[i];
    const ExpertSets::Costs costs = costsOf(device, members);
    for (size_t i = 0; i != ExpertSets::kTimes; ++i) {
      EXPECT_LE(least.gateUp[i], costs.gateUp[i]);
      EXPECT_LE(least.down[i], costs.down[i]);
      EXPECT_GE(dearest.gateUp[i], costs.gateUp[i]);
      EXPECT_GE(dearest.down[i], costs.down[i]);
    }
  }
}

} // namespace
} // namespace grok::plan
