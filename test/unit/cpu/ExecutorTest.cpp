// What a request's results may not depend on, and what it is refused for.
#include <algorithm>
#include <cmath>
#include <set>

#include "runtime/bundle/Sampling.h"
#include "runtime/cpu/Kernels.h"
#include "test/unit/cpu/TestModel.h"
#include "gtest/gtest.h"

namespace grok::test {
namespace {

const std::vector<int32_t> kIds = {5, 17, 60, 0, 33, 8, 8, 21, 44, 59, 2, 31};

class ExecutorTest : public testing::TestWithParam<bool> {
protected:
  TestModel t = syntheticModel(smallConfig(GetParam()));
};

TEST_P(ExecutorTest, LogitsDontDependOnThreadsOrInstructionSet) {
  std::vector<float> expected = logitsOf(*t.executor, kIds);
  ASSERT_EQ(expected.size(), kIds.size() * t.model.vocabSize);
  for (unsigned threads : {1u, 2u, 3u, 7u})
    for (const cpu::Kernels *kernels : cpu::supportedKernels()) {
      t.load({threads, kernels});
      EXPECT_EQ(logitsOf(*t.executor, kIds), expected)
          << threads << " threads, " << kernels->name;
    }
}

TEST_P(ExecutorTest, LogitsDontDependOnTheRowOrTheOtherRows) {
  std::vector<float> expected = logitsOf(*t.executor, kIds);
  for (uint32_t row : {0u, 3u, 7u}) {
    BatchRequest request;
    for (uint32_t r = 0; r != 8; ++r) {
      std::vector<int32_t> other(5 + 11 * r, int32_t(3 * r + 1));
      request.rows.push_back({r == row ? kIds : other, 0, r});
    }
    std::vector<float> logits;
    request.onLogits = [&](uint32_t r, uint32_t position,
                           std::span<const float> values) {
      if (r == row && position < kIds.size())
        logits.insert(logits.end(), values.begin(), values.end());
      return absl::OkStatus();
    };
    ASSERT_TRUE(t.executor->run(request).ok());
    EXPECT_EQ(logits, expected) << "row " << row;
  }
}

TEST_P(ExecutorTest, SlotsDontChangeTheResult) {
  std::vector<float> expected = logitsOf(*t.executor, kIds);
  TestModel other = syntheticModel(t.model, {.slots = 13});
  EXPECT_EQ(logitsOf(*other.executor, kIds), expected);
}

TEST_P(ExecutorTest, ContinuingARowEqualsComputingItAtOnce) {
  std::vector<float> expected = logitsOf(*t.executor, kIds), logits;
  BatchRequest request;
  request.onLogits = [&](uint32_t, uint32_t, std::span<const float> values) {
    logits.insert(logits.end(), values.begin(), values.end());
    return absl::OkStatus();
  };
  std::vector<int32_t> begin(kIds.begin(), kIds.begin() + 5);
  request.rows = {{begin, 0, 0}};
  ASSERT_TRUE(t.executor->run(request).ok());
  request.rows = {{kIds, 5, 0}};
  ASSERT_TRUE(t.executor->run(request).ok());
  EXPECT_EQ(logits, expected);
}

TEST_P(ExecutorTest, GreedyTakesTheLargestLogitOfEachPosition) {
  BatchRequest request;
  request.rows = {{kIds, 0, 9}};
  absl::StatusOr<BatchResult> result = t.executor->run(request);
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_EQ(result->newIds[0].size(), 9u);
  std::vector<int32_t> all = kIds;
  for (int32_t id : result->newIds[0])
    all.push_back(id);
  std::vector<float> logits = logitsOf(*t.executor, all);
  for (size_t i = kIds.size(); i != all.size(); ++i) {
    auto row = logits.begin() + ptrdiff_t((i - 1) * t.model.vocabSize);
    EXPECT_EQ(all[i], std::max_element(row, row + t.model.vocabSize) - row);
  }
}

TEST_P(ExecutorTest, StopsAfterTheEndId) {
  BatchRequest request;
  request.rows = {{kIds, 0, 9}};
  std::vector<int32_t> all = t.executor->run(request)->newIds[0];
  request.eosId = all[2];
  std::vector<int32_t> stopped = t.executor->run(request)->newIds[0];
  size_t first =
      size_t(std::find(all.begin(), all.end(), all[2]) - all.begin());
  EXPECT_EQ(stopped, std::vector<int32_t>(all.begin(),
                                          all.begin() + ptrdiff_t(first) + 1));
}

TEST_P(ExecutorTest, SamplingDependsOnTheSeedAloneNotOnTheRow) {
  BatchRequest request;
  request.temperature = 1.5f;
  request.seed = 42;
  request.rows = {{kIds, 0, 20}};
  std::vector<int32_t> alone = t.executor->run(request)->newIds[0];
  request.rows = {{{1, 2}, 0, 3}, {kIds, 0, 20}, {{9}, 0, 30}};
  EXPECT_EQ(t.executor->run(request)->newIds[1], alone);
  request.seed = 43;
  EXPECT_NE(t.executor->run(request)->newIds[1], alone);
}

/// Distinct experts that rows of one id each choose, summed over the layers.
uint32_t expertsOf(TestModel &t, const std::vector<int32_t> &ids) {
  std::set<std::pair<uint32_t, uint32_t>> chosen;
  BatchRequest request;
  for (int32_t id : ids)
    request.rows.push_back({{id}, 0, 0});
  request.onRouting = [&](uint32_t, uint32_t, uint32_t layer,
                          std::span<const uint32_t> experts) {
    for (uint32_t e : experts)
      if (t.plan.experts[e] == PlanTables::Expert::kKept)
        chosen.emplace(layer, e);
  };
  EXPECT_TRUE(t.executor->run(request).ok());
  return uint32_t(chosen.size());
}

TEST_P(ExecutorTest, BenchCountsTheExpertsOfItsIds) {
  for (std::vector<uint32_t> dropped : {std::vector<uint32_t>{}, {1}}) {
    TestModel model = syntheticModel(t.model, {.dropped = dropped});
    BenchRequest request{.rows = 3, .context = 1, .steps = 5, .seed = 9};
    absl::StatusOr<BenchResult> result = model.executor->bench(request);
    ASSERT_TRUE(result.ok()) << result.status();
    ASSERT_EQ(result->stepSeconds.size(), 5u);
    ASSERT_EQ(result->experts.size(), 5u);
    for (uint32_t i = 0; i != 5; ++i) {
      EXPECT_GT(result->stepSeconds[i], 0);
      std::vector<int32_t> ids;
      for (uint32_t row = 0; row != 3; ++row)
        ids.push_back(sampling::benchToken(9, benchWarmUp(5) + i, row,
                                           t.model.vocabSize));
      EXPECT_EQ(result->experts[i], expertsOf(model, ids)) << "step " << i;
    }
  }
}

TEST_P(ExecutorTest, BenchLeavesNothingBehind) {
  std::vector<float> expected = logitsOf(*t.executor, kIds);
  uint64_t bytes = t.executor->memoryBytes();
  ASSERT_TRUE(
      t.executor->bench({.rows = 8, .context = 70, .steps = 1, .seed = 0})
          .ok());
  EXPECT_EQ(logitsOf(*t.executor, kIds), expected);
  EXPECT_EQ(t.executor->memoryBytes(), bytes);
}

TEST_P(ExecutorTest, BenchStaysWithinTheLimits) {
  auto message = [&](const BenchRequest &request) {
    return std::string(t.executor->bench(request).status().message());
  };
  EXPECT_EQ(message({.rows = 9, .context = 1, .steps = 1, .seed = 0}),
            "batch: found 9, expected 1 to 8, the compiled batch");
  EXPECT_EQ(message({.rows = 1, .context = 0, .steps = 1, .seed = 0}),
            "context: found 0, expected 1 to " +
                std::to_string(t.executor->maxSeq()) + ", the length in use");
  EXPECT_EQ(message({.rows = 1, .context = 1, .steps = 0, .seed = 0}),
            "steps: found 0, expected 1 to 100000000");
}

INSTANTIATE_TEST_SUITE_P(Routings, ExecutorTest, testing::Bool(),
                         [](const auto &info) {
                           return info.param ? "Hash" : "Learned";
                         });

TEST(Sampling, FollowsTheSoftmax) {
  TestModel t = syntheticModel(smallConfig(true));
  std::vector<float> logits = logitsOf(*t.executor, {7});
  double total = 0;
  for (float x : logits)
    total += std::exp(double(x));
  constexpr int kDraws = 500;
  std::vector<int> counts(logits.size());
  BatchRequest request;
  request.temperature = 1;
  for (int i = 0; i != kDraws; ++i) {
    request.seed = uint64_t(i);
    request.rows = {{{7}, 0, 1}};
    ++counts[size_t(t.executor->run(request)->newIds[0][0])];
  }
  double distance = 0;
  for (size_t i = 0; i != logits.size(); ++i)
    distance += std::abs(double(counts[i]) / kDraws -
                         std::exp(double(logits[i])) / total);
  EXPECT_LT(distance / 2, 0.2); // total variation
}

TEST(Pruning, DroppedExpertsAddNothing) {
  ModelConfig model = smallConfig(true);
  HandPlanOptions all;
  for (uint32_t e = 0; e != model.numExperts; ++e)
    all.dropped.push_back(e);
  TestModel none = syntheticModel(model, all);
  TestModel some = syntheticModel(model, {.dropped = {1, 2, 3}});
  std::vector<float> a = logitsOf(*none.executor, kIds),
                     b = logitsOf(*some.executor, kIds);
  ASSERT_EQ(a.size(), b.size());
  EXPECT_NE(a, b);
  for (float x : a)
    EXPECT_TRUE(std::isfinite(x));
}

TEST(Routing, ReportsEveryLayersExpertsAscending) {
  TestModel t = syntheticModel(smallConfig(false));
  std::vector<std::vector<uint32_t>> seen;
  BatchRequest request;
  request.rows = {{{4, 9, 13}, 0, 0}};
  request.onRouting = [&](uint32_t, uint32_t, uint32_t,
                          std::span<const uint32_t> experts) {
    seen.emplace_back(experts.begin(), experts.end());
  };
  ASSERT_TRUE(t.executor->run(request).ok());
  ASSERT_EQ(seen.size(), 3u * t.model.numLayers);
  for (const std::vector<uint32_t> &experts : seen) {
    ASSERT_EQ(experts.size(), 2u);
    EXPECT_LT(experts[0], experts[1]);
    EXPECT_LT(experts[1], t.model.numExperts);
  }
}

TEST(LongRows, PartialAttentionsAgreeWithOneAnother) {
  // Beyond one chunk of positions the same row in one piece and continued.
  TestModel t = syntheticModel(smallConfig(false));
  std::vector<int32_t> ids(600);
  for (size_t i = 0; i != ids.size(); ++i)
    ids[i] = int32_t(i * 7 % t.model.vocabSize);
  std::vector<float> expected = logitsOf(*t.executor, ids);
  t.load({3, cpu::supportedKernels().back()});
  EXPECT_EQ(logitsOf(*t.executor, ids), expected);
}

TEST(Requests, MemoryIsTheSameAfterThem) {
  TestModel t = syntheticModel(smallConfig(true));
  uint64_t before = t.executor->memoryBytes();
  for (int i = 0; i != 20; ++i)
    logitsOf(*t.executor, kIds);
  EXPECT_EQ(t.executor->memoryBytes(), before);
}

TEST(Requests, AreRefusedWithTheNumbers) {
  TestModel t = syntheticModel(smallConfig(true));
  auto message = [&](BatchRequest request) {
    absl::StatusOr<BatchResult> result = t.executor->run(request);
    EXPECT_TRUE(absl::IsInvalidArgument(result.status()));
    return std::string(result.status().message());
  };
  BatchRequest r;
  EXPECT_EQ(message(r), "found 0 rows, expected 1 to 8, the compiled batch");
  r.rows = {{{1}, 0, 0}, {{}, 0, 0}};
  EXPECT_EQ(message(r), "row 1: found no ids, expected at least one");
  r.rows = {{{1, 61}, 0, 0}};
  EXPECT_EQ(message(r), "row 0: found id 61 at position 1, expected 0 to 60");
  r.rows = {{{1, -4}, 0, 0}};
  EXPECT_EQ(message(r), "row 0: found id -4 at position 1, expected 0 to 60");
  r.rows = {{{1, 2}, 2, 0}};
  EXPECT_EQ(message(r), "row 0: found start 2, expected less than the 2 ids");
  r.rows = {{{1, 2}, 0, 699}};
  EXPECT_EQ(message(r), "row 0: found 2 ids and 699 to generate, 701 in all, "
                        "expected at most 700, the length in use");
  r.rows = {{std::vector<int32_t>(701, 1), 0, 0}};
  EXPECT_EQ(message(r), "row 0: found 701 ids, expected at most 700, the "
                        "length in use; shorten the prompt");
  r.rows = {{{1}, 0, 1}};
  r.temperature = -1;
  EXPECT_EQ(message(r), "found temperature -1, expected 0 (greedy) or a "
                        "number from 1e-06 to 1e+06");
  for (float wrong : {1e-40f, 9e-7f, 1.1e6f, 1e38f, INFINITY, NAN}) {
    r.temperature = wrong;
    EXPECT_TRUE(message(r).starts_with("found temperature ")) << message(r);
  }
  r.temperature = 0;
  r.eosId = 61;
  EXPECT_EQ(message(r), "found end id 61, expected -1 (none) to 60");
}

} // namespace
} // namespace grok::test
