// Requests: what the kernel is asked for, and what becomes of its answers.
#include <cstdlib>

#include "test/unit/cuda/TestDriver.h"

namespace grok::test {
namespace {

using absl::StatusCode;
using cuda::CudaExecutor;
using cuda::CudaExecutorPeer;

class RunTest : public CudaTest {
protected:
  void SetUp() override {
    CudaTest::SetUp();
    bundle = openBundle("blob");
    ASSERT_TRUE(bundle);
    auto created = CudaExecutor::create(*api, *bundle, {}, 0);
    ASSERT_TRUE(created.ok()) << created.status();
    executor = *std::move(created);
    fake->logitsOffset = bundle->plan().findRegion("logits")->offset;
    fake->vocab = bundle->model().vocabSize;
  }
  void TearDown() override {
    executor.reset();
    CudaTest::TearDown();
  }

  std::shared_ptr<Bundle> bundle;
  std::unique_ptr<CudaExecutor> executor;
};

TEST_F(RunTest, OneLaunchARequest) {
  BatchRequest request;
  request.rows = {{{5, 6, 7}, 0, 4}, {{8, 9}, 1, 1}};
  request.eosId = 2;
  request.temperature = 0.5f;
  request.seed = 99;
  absl::StatusOr<BatchResult> result = executor->run(request);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->newIds,
            (std::vector<std::vector<int32_t>>{{3, 4, 5, 6}, {2}}));
  EXPECT_GT(result->seconds, 0);
  EXPECT_EQ(fake->decodes, 1);
  const abi::DecodeParams &p = fake->lastDecode;
  EXPECT_EQ(p.rows, 2u);
  EXPECT_EQ(p.start[1], 1u);
  EXPECT_EQ(p.known[0], 3u);
  EXPECT_EQ(p.limit[0], 7u);
  EXPECT_EQ(p.limit[1], 3u);
  EXPECT_EQ(p.kvRowBlocks, 2u);
  EXPECT_EQ(p.eosId, 2);
  EXPECT_EQ(p.inverseTemperature, 2.0f);
  EXPECT_EQ(p.seed, 99u);
  EXPECT_EQ(p.writeLogits, 0u);
  EXPECT_EQ(p.ids[0], 5);
  EXPECT_EQ(p.ids[p.idStride + 1], 9);
  EXPECT_EQ(p.smCount, 264u); // numbers 1, 3, ... 263
  EXPECT_EQ(p.slotOfSm[0], ~0u);
  EXPECT_EQ(p.slotOfSm[1], 0u);
  EXPECT_EQ(p.slotOfSm[263], 131u);
}

TEST_F(RunTest, LogitsOfEveryPosition) {
  BatchRequest request;
  request.rows = {{{5, 6, 7}, 0, 2}, {{8}, 0, 0}};
  std::vector<std::vector<uint32_t>> seen;
  request.onLogits = [&](uint32_t row, uint32_t position,
                         std::span<const float> logits) {
    EXPECT_EQ(logits.size(), fake->vocab);
    EXPECT_EQ(logits[0], 1000.0f * float(row) + float(position));
    EXPECT_EQ(logits[512 - 1], logits[0] + 511.0f / 1024);
    seen.push_back({row, position});
    return absl::OkStatus();
  };
  absl::StatusOr<BatchResult> result = executor->run(request);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(seen, (std::vector<std::vector<uint32_t>>{
                      {0, 0}, {1, 0}, {0, 1}, {0, 2}, {0, 3}}));
  EXPECT_EQ(result->newIds, (std::vector<std::vector<int32_t>>{{3, 4}, {}}));
  EXPECT_EQ(fake->decodes, 4);
  EXPECT_EQ(fake->lastDecode.writeLogits, 1u);
}

TEST_F(RunTest, EndIdStopsARowPositionByPosition) {
  BatchRequest request;
  request.rows = {{{5, 6, 7}, 0, 9}};
  request.eosId = 4; // the second id that the stand-in generates
  request.onLogits = [](uint32_t, uint32_t, std::span<const float>) {
    return absl::OkStatus();
  };
  absl::StatusOr<BatchResult> result = executor->run(request);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->newIds[0], (std::vector<int32_t>{3, 4}));
}

TEST_F(RunTest, CallersErrorEndsTheRun) {
  BatchRequest request;
  request.rows = {{{5, 6, 7}, 0, 0}};
  request.onLogits = [](uint32_t, uint32_t position, std::span<const float>) {
    return position == 1 ? absl::CancelledError("enough") : absl::OkStatus();
  };
  expectParts(executor->run(request).status(), StatusCode::kCancelled,
              {"enough"});
  EXPECT_EQ(fake->decodes, 2);
}

TEST_F(RunTest, RoutingIsTheCpus) {
  BatchRequest request;
  request.rows = {{{5}, 0, 0}};
  request.onRouting = [](uint32_t, uint32_t, uint32_t,
                         std::span<const uint32_t>) {};
  expectParts(executor->run(request).status(), StatusCode::kUnimplemented,
              {"use --device cpu"});
}

TEST_F(RunTest, BadRequestReachesNoKernel) {
  BatchRequest request;
  request.rows = {{{512}, 0, 0}};
  expectParts(executor->run(request).status(), StatusCode::kInvalidArgument,
              {"found id 512"});
  EXPECT_EQ(fake->decodes, 0);
}

TEST_F(RunTest, WatchdogNamesThePlace) {
  fake->watchdog = 1;
  BatchRequest request;
  request.rows = {{{5}, 0, 1}};
  expectParts(executor->run(request).status(), StatusCode::kInternal,
              {"stuck for 4.1 s in phase gate_up, slot 17, layer 2, step 9"});
  fake->watchdog = 0;
  EXPECT_TRUE(executor->run(request).ok());
}

/// With an environment variable set; its executor is a new one.
class EnvironmentTest : public CudaTest {
protected:
  void TearDown() override {
    unsetenv("GROK_SLOT_ABSENT");
    CudaTest::TearDown();
  }
};

TEST_F(EnvironmentTest, WatchdogEndsAWaitForAnAbsentSlot) {
  setenv("GROK_SLOT_ABSENT", "17", 1);
  auto executor = load("blob");
  ASSERT_TRUE(executor.ok()) << executor.status();
  BatchRequest request;
  request.rows = {{{5}, 0, 1}};
  for (int i = 0; i != 2; ++i) // of every launch
    expectParts(
        (*executor)->run(request).status(), StatusCode::kInternal,
        {"stuck for 4.1 s in phase attention, slot 0, layer 0, step 0"});
  unsetenv("GROK_SLOT_ABSENT");
  executor = load("blob");
  ASSERT_TRUE(executor.ok()) << executor.status();
  EXPECT_TRUE((*executor)->run(request).ok());
}

TEST_F(EnvironmentTest, AbsentSlotThatThereIsNot) {
  for (const char *text : {"132", "x", "-1", ""}) {
    setenv("GROK_SLOT_ABSENT", text, 1);
    expectRefused("blob", StatusCode::kInvalidArgument,
                  {"GROK_SLOT_ABSENT: found '", text,
                   "', expected an integer, 0 to 131"});
  }
}

TEST_F(RunTest, KernelThatDoesNotReport) {
  fake->silent = 1;
  BatchRequest request;
  request.rows = {{{5}, 0, 1}};
  expectParts(executor->run(request).status(), StatusCode::kInternal,
              {"ended without reporting"});
}

TEST_F(RunTest, LengthBeyondTheLimit) {
  fake->extraLength = 1;
  BatchRequest request;
  request.rows = {{{5}, 0, 1}};
  expectParts(executor->run(request).status(), StatusCode::kInternal,
              {"reports 3 ids of row 0, expected 1 to 2"});
}

/// Steps of the stand-in end 100, 101, 102, ... us after each other; the last
/// of them when the launch does.
TEST_F(RunTest, TimesOfTheNewIds) {
  BatchRequest request;
  request.rows = {{{5, 6, 7}, 0, 4}, {{8, 9}, 1, 1}};
  request.wantTimes = true;
  absl::StatusOr<BatchResult> result = executor->run(request);
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_EQ(result->newSeconds.size(), 2u);
  const std::vector<double> &first = result->newSeconds[0];
  ASSERT_EQ(first.size(), 4u);
  EXPECT_LE(first[3], result->seconds);
  EXPECT_NEAR(first[3] - first[2], 101e-6, 1e-12); // the sixth step
  EXPECT_NEAR(first[2] - first[1], 100e-6, 1e-12);
  EXPECT_NEAR(first[1] - first[0], 103e-6, 1e-12);
  // Row 1's first step is the launch's, two before row 0's first id.
  ASSERT_EQ(result->newSeconds[1].size(), 1u);
  EXPECT_NEAR(first[0] - result->newSeconds[1][0], 203e-6, 1e-12);
  EXPECT_EQ(fake->lastDecode.benchSteps, 0u);
}

TEST_F(RunTest, TimesThatTheKernelDidNotNote) {
  BatchRequest request;
  request.rows = {{{5}, 0, 2}};
  ASSERT_TRUE(executor->run(request).ok());
  EXPECT_EQ(fake->lastDecode.steps, nullptr);
  request.wantTimes = true;
  ASSERT_TRUE(executor->run(request).ok());
  fake->timeless = 1;
  expectParts(executor->run(request).status(), StatusCode::kInternal,
              {"reports that step 0 ended at 0 ns"});
  request.onLogits = [](uint32_t, uint32_t, std::span<const float>) {
    return absl::OkStatus();
  };
  expectParts(executor->run(request).status(), StatusCode::kInvalidArgument,
              {"the new ids' times and for logits, expected one of them"});
}

TEST_F(RunTest, MemoryInUseIsTheDevices) {
  absl::StatusOr<uint64_t> bytes = executor->deviceBytesInUse();
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ(*bytes, executor->memoryBytes());
  absl::StatusOr<std::string> address = executor->pciBusId();
  ASSERT_TRUE(address.ok()) << address.status();
  EXPECT_EQ(*address, "0000:3B:00.0");
}

TEST_F(RunTest, MemoryIsTheSameAfterAThousandRequests) {
  BatchRequest request;
  request.rows = {{{5, 6}, 0, 3}, {{7}, 0, 8}};
  uint64_t reported = executor->memoryBytes();
  int64_t held = fake->bytes;
  int live = fake->live(), cleared = fake->clears;
  for (int i = 0; i < 1000; ++i) {
    request.rows[0].maxNew = uint32_t(i % 60);
    ASSERT_TRUE(executor->run(request).ok());
    ASSERT_EQ(fake->live(), live);
  }
  EXPECT_EQ(executor->memoryBytes(), reported);
  EXPECT_EQ(fake->bytes, held);
  EXPECT_EQ(fake->clears, cleared);
}

TEST_F(RunTest, EpochsAndLaunchesAreNeverRepeated) {
  BatchRequest request;
  request.rows = {{{5, 6}, 0, 3}};
  uint32_t layers = bundle->model().numLayers;
  ASSERT_TRUE(executor->run(request).ok());
  EXPECT_EQ(fake->lastDecode.epochBase, 0u);
  EXPECT_EQ(fake->lastDecode.launchId, 1u);
  ASSERT_TRUE(executor->run(request).ok());
  EXPECT_GE(fake->lastDecode.epochBase,
            4 * (layers + 1)); // 4 steps: the last id is not an input
  EXPECT_EQ(fake->lastDecode.launchId, 2u);
}

TEST_F(RunTest, WordsAreClearedBeforeEpochsWrap) {
  BatchRequest request;
  request.rows = {{{5, 6}, 0, 3}};
  int cleared = fake->clears;
  CudaExecutorPeer::epoch(*executor) = CudaExecutorPeer::kEpochLimit - 3;
  uint8_t *word = fake->lastDecode.arena;
  ASSERT_TRUE(executor->run(request).ok());
  word = fake->lastDecode.arena;
  EXPECT_EQ(fake->clears, cleared + 3); // the words, claims, and a turn
  EXPECT_EQ(fake->lastDecode.epochBase, 0u);
  EXPECT_EQ(fake->lastDecode.launchId, 1u);
  word[8] = 1;
  CudaExecutorPeer::epoch(*executor) = CudaExecutorPeer::kEpochLimit - 3;
  ASSERT_TRUE(executor->run(request).ok());
  EXPECT_EQ(word[8], 0);
}

} // namespace
} // namespace grok::test
