// The sets of experts that bound a step, held against all sets one by one.
#include "compiler/Passes/ExpertSets.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
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

/// The price of a set by the plan's extents.
double priceOf(DeviceOp device, uint32_t members, double weight) {
  ExpertSets::SlotBytes bytes[2] = {ExpertSets::SlotBytes(kSlots),
                                    ExpertSets::SlotBytes(kSlots)};
  for (MatrixOp matrix : device.getBody().front().getOps<MatrixOp>())
    if (matrix.getExpert() && (members >> *matrix.getExpert() & 1))
      for (uint32_t s = 0; s != kSlots; ++s)
        bytes[matrix.getKind() == StreamKind::Down][s] += matrix.extentBytes(s);
  ExpertSets::Times up = timesOf(bytes[0]), down = timesOf(bytes[1]);
  return up[0] + weight * up[1] + weight * weight * down[0] + down[1];
}

uint32_t membersOf(const ExpertSet &set) {
  uint32_t members = 0;
  for (uint32_t e : set)
    members |= 1u << e;
  return members;
}

TEST_F(ExpertSetsTest, ExtremesOfEverySet) {
  DeviceOp device = plan();
  const ExpertSets sets(device, timesOf);
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
          double price = priceOf(device, members, weight);
          least = std::min(least, price);
          dearest = std::max(dearest, price);
        }
        double foundLeast = HUGE_VAL, foundDearest = 0;
        for (const ExpertSet &set : extremes.cheapest)
          foundLeast =
              std::min(foundLeast, priceOf(device, membersOf(set), weight));
        for (const ExpertSet &set : extremes.dearest)
          foundDearest =
              std::max(foundDearest, priceOf(device, membersOf(set), weight));
        EXPECT_EQ(foundLeast, least) << fewest << " to " << most;
        EXPECT_EQ(foundDearest, dearest) << fewest << " to " << most;
      }
    }
}

TEST_F(ExpertSetsTest, NoExpertAtAll) {
  DeviceOp device = plan();
  ExpertSets::Extremes extremes =
      ExpertSets(device, timesOf).extremes({1, 2}, 0, 1);
  EXPECT_EQ(extremes.cheapest, std::vector<ExpertSet>{{}});
}

/// The number of sets says nothing of the way to them: of 33 experts there is
/// one set of 33, and 2^33 beginnings of it that lead nowhere.
TEST_F(ExpertSetsTest, AnySizeOfManyExperts) {
  constexpr uint32_t kMany = 33;
  DeviceOp device = plan(kMany, 3);
  const ExpertSets sets(device, timesOf);
  std::vector<uint32_t> experts(kMany);
  std::iota(experts.begin(), experts.end(), 0);
  for (uint32_t size = 1; size <= kMany; ++size) {
    ExpertSets::Extremes extremes = sets.extremes(experts, size, size);
    const bool few = size <= 4 || size >= kMany - 4;
    EXPECT_EQ(extremes.exhaustive, few) << size;
    ASSERT_FALSE(extremes.dearest.empty()) << size;
    for (const ExpertSet &set : extremes.dearest)
      EXPECT_EQ(set.size(), size);
  }
}

/// Few sets, but each with many experts on the way to it.
TEST_F(ExpertSetsTest, LongSetsCountEveryStep) {
  constexpr uint32_t kMany = 8192;
  DeviceOp device = plan(kMany, 2);
  std::vector<uint32_t> experts(kMany);
  std::iota(experts.begin(), experts.end(), 0);
  const ExpertSets sets(device, timesOf);
  EXPECT_FALSE(sets.extremes(experts, kMany - 1, kMany - 1).exhaustive);
  EXPECT_TRUE(sets.extremes(experts, kMany, kMany).exhaustive);
}

/// Of 24 experts there are too many sets of up to 12: groups are alike then.
TEST_F(ExpertSetsTest, RepresentativesOfTooMany) {
  DeviceOp device = plan(24, 3);
  std::vector<uint32_t> experts(24);
  std::iota(experts.begin(), experts.end(), 0);
  ExpertSets::Extremes extremes =
      ExpertSets(device, timesOf).extremes(experts, 2, 12);
  EXPECT_FALSE(extremes.exhaustive);
  for (const ExpertSet &set : extremes.cheapest)
    EXPECT_EQ(set.size(), 2u);
  for (const ExpertSet &set : extremes.dearest)
    EXPECT_EQ(set.size(), 12u);
}

} // namespace
} // namespace grok::plan
