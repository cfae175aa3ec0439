// A decode kernel that stays: what it is told, when it must leave, and what
// becomes of its failures. The stand-in fails what would wait for it for ever.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "runtime/bundle/Manifest.h"
#include "test/unit/cuda/TestDriver.h"

namespace grok::test {
namespace {

using absl::StatusCode;
using cuda::CudaExecutor;
using cuda::CudaExecutorPeer;
using Ids = std::vector<std::vector<int32_t>>;

class ResidentTest : public CudaTest {
protected:
  void TearDown() override {
    executor.reset();
    CudaTest::TearDown();
  }

  void stay(const std::string &name) {
    auto loaded = load(name);
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    executor = *std::move(loaded);
    ASSERT_TRUE(executor->stayResident().ok());
  }

  static BatchRequest alone(RowRequest row) {
    BatchRequest request;
    request.rows = {std::move(row)};
    return request;
  }
  /// The new ids of every row; none after an error.
  Ids run(BatchRequest request) {
    absl::StatusOr<BatchResult> result = executor->run(request);
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? result->newIds : Ids{};
  }
  Ids run(std::vector<int32_t> ids, uint32_t maxNew, uint32_t start = 0,
          uint32_t decodeFrom = ~0u) {
    return run(alone({std::move(ids), start, maxNew, decodeFrom}));
  }

  std::unique_ptr<CudaExecutor> executor;
};

TEST_F(ResidentTest, OneLaunchForManyRequests) {
  stay("blob");
  EXPECT_EQ(run({5, 6, 7}, 3), (Ids{{3, 4, 5}}));
  const int clears = fake->clears;
  for (int i = 0; i != 100; ++i)
    ASSERT_EQ(run({8, 9}, 2), (Ids{{2, 3}}));
  EXPECT_EQ(fake->decodes, 1);
  EXPECT_EQ(fake->turns, 101);
  EXPECT_EQ(fake->clears, clears);
}

TEST_F(ResidentTest, AnotherNumberOfRowsIsLaunched) {
  stay("blob");
  BatchRequest two;
  two.rows = {{{8, 9}, 1, 4}, {{10}, 0, 1}};
  EXPECT_EQ(run({5, 6, 7}, 3), (Ids{{3, 4, 5}}));
  EXPECT_EQ(run(two), (Ids{{2, 3, 4, 5}, {1}}));
  EXPECT_EQ(run(two), (Ids{{2, 3, 4, 5}, {1}}));
  EXPECT_EQ(fake->decodes, 2);
  EXPECT_EQ(fake->turns, 3);
}

TEST_F(ResidentTest, EachTurnHasItsOwnParameters) {
  stay("blob");
  BatchRequest before;
  before.rows = {{{5, 6, 7}, 0, 3}, {{5}, 0, 1}};
  run(before);
  BatchRequest request;
  request.rows = {{{8, 9}, 1, 4}, {{10}, 0, 1}};
  request.eosId = 2;
  request.temperature = 0.5f;
  request.seed = 99;
  EXPECT_EQ(run(request), (Ids{{2, 3, 4, 5}, {1}}));
  const abi::Turn &turn = fake->lastTurn;
  EXPECT_EQ(turn.number, 2u);
  EXPECT_EQ(turn.rows, 2u);
  EXPECT_EQ(turn.start[0], 1u);
  EXPECT_EQ(turn.known[0], 2u);
  EXPECT_EQ(turn.limit[0], 6u);
  EXPECT_EQ(turn.eosId, 2);
  EXPECT_EQ(turn.inverseTemperature, 2.0f);
  EXPECT_EQ(turn.seed, 99u);
  const abi::DecodeParams &p = fake->lastDecode;
  EXPECT_EQ(p.ids[0], 5); // before the row's start
  EXPECT_EQ(p.ids[1], 9);
  EXPECT_EQ(p.ids[p.idStride], 10);
}

TEST_F(ResidentTest, TimesOfTheNewIds) {
  stay("blob");
  run({5}, 1);
  BatchRequest request = alone({{5, 6, 7}, 0, 3});
  request.wantTimes = true;
  absl::StatusOr<BatchResult> result = executor->run(request);
  ASSERT_TRUE(result.ok()) << result.status();
  const std::vector<double> &seconds = result->newSeconds[0];
  ASSERT_EQ(seconds.size(), 3u);
  EXPECT_LE(seconds[2], result->seconds);
  EXPECT_NEAR(seconds[2] - seconds[1], 100e-6, 1e-12); // the fifth step
  EXPECT_EQ(fake->decodes, 1);
}

TEST_F(ResidentTest, LogitsAreLaunched) {
  stay("blob");
  run({5}, 1);
  BatchRequest request = alone({{5, 6}, 0, 0});
  request.onLogits = [](uint32_t, uint32_t, std::span<const float>) {
    return absl::OkStatus();
  };
  run(request);
  EXPECT_EQ(fake->decodes, 3);
  EXPECT_EQ(fake->lastDecode.mailbox, nullptr);
  run({5}, 1);
  run({5}, 1);
  EXPECT_EQ(fake->decodes, 4);
}

TEST_F(ResidentTest, PromptsOfABundleWithPrefillAreLaunched) {
  stay("prefill");
  run({5, 6, 7}, 2);
  run({5, 6, 7, 3, 4}, 2, 4, 3);
  EXPECT_EQ(fake->decodes, 1);
  run({5, 6, 7}, 2);
  EXPECT_EQ(fake->decodes, 2);
  run({5, 6, 7}, 2, 0, 0); // prefill has no part in it
  EXPECT_EQ(fake->decodes, 2);
  EXPECT_EQ(fake->turns, 4);
}

TEST_F(ResidentTest, OtherUsesOfTheDevice) {
  stay("prefill");
  run({5, 6, 7}, 2);
  EXPECT_TRUE(executor->deviceBytesInUse().ok()); // beside it
  EXPECT_TRUE(executor->streamingCeiling().ok());
  run({5, 6, 7}, 2);
  EXPECT_TRUE(executor->matrixRate().ok());
  run({5, 6, 7}, 2);
  EXPECT_TRUE(
      executor->bench({.rows = 1, .context = 7, .steps = 3, .seed = 5}).ok());
}

TEST_F(ResidentTest, WordsAreClearedBeforeEpochsWrap) {
  stay("blob");
  run({5}, 1);
  const int clears = fake->clears;
  CudaExecutorPeer::epoch(*executor) = CudaExecutorPeer::kEpochLimit - 3;
  run({5, 6}, 3);
  EXPECT_GT(fake->clears, clears);
  EXPECT_EQ(fake->decodes, 2);
  EXPECT_EQ(fake->lastDecode.epochBase, 0u);
  EXPECT_EQ(fake->lastTurn.number, 1u);
  run({5, 6}, 3);
  EXPECT_EQ(fake->decodes, 2);
}

TEST_F(ResidentTest, WatchdogOfALaterTurn) {
  stay("blob");
  run({5}, 1);
  fake->watchdog = 1;
  expectParts(executor->run(alone({{5}, 0, 1})).status(), StatusCode::kInternal,
              {"stuck for 4.1 s in phase gate_up, slot 17, layer 2, step 9"});
  fake->watchdog = 0;
  run({5}, 1);
  EXPECT_EQ(fake->decodes, 2);
}

TEST_F(ResidentTest, KernelThatEndsInALaterTurn) {
  stay("blob");
  run({5}, 1);
  fake->silent = 1;
  expectParts(executor->run(alone({{5}, 0, 1})).status(), StatusCode::kInternal,
              {"ended without reporting"});
}

/// The kernel of an older bundle has generated ids on the device only.
TEST_F(ResidentTest, OlderBundlesAreLaunched) {
  namespace fs = std::filesystem;
  const std::string older = openBundle("blob")->path() + ".4.grok",
                    manifest = older + "/manifest.json",
                    from = "\"format_version\": 6";
  fs::remove_all(older);
  fs::copy(openBundle("blob")->path(), older, fs::copy_options::recursive);
  std::ifstream in(manifest);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  text.replace(text.find(from), from.size(), "\"format_version\": 4");
  std::ofstream(manifest) << *sealManifest(text);
  fake->old = 1;
  auto loaded = load("blob.grok.4");
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  executor = *std::move(loaded);
  EXPECT_EQ(run({5, 6, 7}, 3), (Ids{{3, 4, 5}}));
  expectParts(executor->stayResident(), StatusCode::kFailedPrecondition,
              {"found kernels that cannot stay, from before bundle format 5; "
               "retarget it to its target"});
}

TEST_F(ResidentTest, AnotherThreadMayFreeIt) {
  stay("blob");
  std::thread([this] { run({5}, 1); }).join();
  std::thread([this] { executor.reset(); }).join();
}

TEST_F(ResidentTest, BadRequestLeavesItThere) {
  stay("blob");
  run({5}, 1);
  EXPECT_FALSE(executor->run(alone({{512}, 0, 0})).ok());
  run({5}, 1);
  EXPECT_EQ(fake->decodes, 1);
}

} // namespace
} // namespace grok::test
