// Bench launches, the streaming ceiling and traces, as the host asks for them.
#include "runtime/bundle/Fragment.h"
#include "test/unit/cuda/TestDriver.h"

namespace grok::test {
namespace {

using absl::StatusCode;
using cuda::CudaExecutorPeer;

class BenchTest : public CudaTest {
protected:
  void SetUp() override {
    CudaTest::SetUp();
    auto loaded = load("blob");
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    executor = *std::move(loaded);
    held = fake->live();
  }
  void TearDown() override {
    EXPECT_EQ(fake->live(), held);
    executor.reset();
    CudaTest::TearDown();
  }

  const BenchRequest request{.rows = 2, .context = 100, .steps = 8, .seed = 5};
  std::unique_ptr<cuda::CudaExecutor> executor;
  int held = 0;
};

TEST_F(BenchTest, StepsAfterTheFirstOnes) {
  absl::StatusOr<BenchResult> result = executor->bench(request);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(fake->decodes, 1);
  const abi::DecodeParams &p = fake->lastDecode;
  EXPECT_EQ(p.rows, 2u);
  EXPECT_EQ(p.benchSteps, 28u); // 20 warm up
  EXPECT_EQ(p.benchSeed, 5u);
  for (uint32_t b : {0u, 1u}) {
    EXPECT_EQ(p.start[b], 99u);
    EXPECT_EQ(p.known[b], 100u);
    EXPECT_EQ(p.limit[b], 100u);
  }
  EXPECT_EQ(p.trace, nullptr);
  ASSERT_EQ(result->stepSeconds.size(), 8u);
  EXPECT_EQ(result->experts, std::vector<uint32_t>(8, 3));
  for (size_t i = 0; i != 8; ++i)
    EXPECT_NEAR(result->stepSeconds[i], 100e-6 + double(i % 4) * 1e-6, 1e-12);
}

TEST_F(BenchTest, EpochsAreUsedForEveryStep) {
  ASSERT_TRUE(executor->bench(request).ok());
  EXPECT_EQ(CudaExecutorPeer::epoch(*executor),
            28 * (openBundle("blob")->model().numLayers + 1));
}

TEST_F(BenchTest, ManyStepsAreSeveralLaunches) {
  CudaExecutorPeer::benchLaunchSteps(*executor) = 23;
  absl::StatusOr<BenchResult> result = executor->bench(request);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(fake->decodes, 3); // of 3, 3 and 2 steps
  EXPECT_EQ(fake->lastDecode.benchSteps, 22u);
  EXPECT_EQ(fake->lastDecode.benchSeed, 5 + 2 * abi::kMaxBatch);
  EXPECT_EQ(result->stepSeconds.size(), 8u);
}

TEST_F(BenchTest, TheCacheOfTheRowsIsCleared) {
  std::shared_ptr<Bundle> bundle = openBundle("blob");
  BatchRequest any;
  any.rows = {{{1}, 0, 1}};
  ASSERT_TRUE(executor->run(any).ok());
  uint8_t *kv =
      fake->lastDecode.arena + bundle->plan().findRegion("kv")->offset;
  uint64_t row = kvBytes(bundle->model(), 1, 128, sizeof(uint16_t));
  std::fill_n(kv, 2 * row, uint8_t(0xff));
  BenchRequest half = request;
  half.context = 64;
  ASSERT_TRUE(executor->bench(half).ok());
  for (uint64_t begin : {uint64_t(0), row}) {
    EXPECT_EQ(kv[begin], 0);
    EXPECT_EQ(kv[begin + row / 2 - 1], 0);
    EXPECT_EQ(kv[begin + row / 2], 0xff);
  }
}

TEST_F(BenchTest, StepsThatWereNotNoted) {
  fake->timeless = 1;
  expectParts(executor->bench(request).status(), StatusCode::kInternal,
              {"reports that step 0 ended at 0 ns, expected at least 1"});
}

TEST_F(BenchTest, BadRequestReachesNoKernel) {
  auto refused = [&](auto spoil, const char *message) {
    BenchRequest bad = request;
    spoil(bad);
    expectParts(executor->bench(bad).status(), StatusCode::kInvalidArgument,
                {message});
    expectParts(executor->trace(bad).status(), StatusCode::kInvalidArgument,
                {message});
  };
  refused([](auto &r) { r.rows = 3; },
          "batch: found 3, expected 1 to 2, the compiled batch");
  refused([](auto &r) { r.rows = 0; }, "batch: found 0, expected 1 to 2");
  refused([](auto &r) { r.context = 129; },
          "context: found 129, expected 1 to 128, the length in use");
  refused([](auto &r) { r.steps = 0; },
          "steps: found 0, expected 1 to 100000000");
  EXPECT_EQ(fake->decodes, 0);
}

TEST_F(BenchTest, StuckKernelNamesThePlace) {
  fake->watchdog = 1;
  expectParts(executor->bench(request).status(), StatusCode::kInternal,
              {"stuck for 4.1 s in phase gate_up"});
}

TEST_F(BenchTest, CeilingStreamsFourGibibytesOfWholeFragments) {
  absl::StatusOr<double> ceiling = executor->streamingCeiling();
  ASSERT_TRUE(ceiling.ok()) << ceiling.status();
  EXPECT_GT(*ceiling, 0);
  EXPECT_EQ(fake->lastStream.bytesPerBlock % kFragmentBytes, 0u);
  EXPECT_EQ(fake->lastStream.bytesPerBlock,
            (4ull << 30) / 132 / kFragmentBytes * kFragmentBytes);
  EXPECT_GT(fake->streams, 1);
}

TEST_F(BenchTest, TraceOfEverySlot) {
  absl::StatusOr<std::vector<TraceSpan>> spans = executor->trace(request);
  ASSERT_TRUE(spans.ok()) << spans.status();
  EXPECT_EQ(fake->modules, 1); // the traced one is gone again
  ASSERT_EQ(spans->size(), 132u * 8 * 3);
  const TraceSpan &first = spans->front(), &last = spans->back();
  EXPECT_EQ(first.begin, 0);
  EXPECT_NEAR(first.ready, 10e-6, 1e-9);
  EXPECT_NEAR(first.end, 30e-6, 1e-9);
  EXPECT_EQ(last.slot, 131u);
  EXPECT_EQ(last.phase, 8u);
  // Each slot's line may be off by a tick.
  EXPECT_NEAR(last.begin, 7 * 100e-6 + 131 * 0.25e-6 + 60e-6, 1e-6);
}

TEST_F(BenchTest, TraceIsShort) {
  BenchRequest many = request;
  many.steps = 65;
  expectParts(executor->trace(many).status(), StatusCode::kInvalidArgument,
              {"steps of a trace: found 65, expected 1 to 64"});
}

TEST_F(BenchTest, TraceThatStops) {
  fake->unended = 1;
  expectParts(executor->trace(request).status(), StatusCode::kInternal,
              {"the trace of slot 0 stops inside a phase after 63 entries"});
}

TEST_F(BenchTest, TraceNeedsItsKernel) {
  auto without = load("synthetic");
  ASSERT_TRUE(without.ok()) << without.status();
  expectParts((*without)->trace(request).status(),
              StatusCode::kFailedPrecondition,
              {"synthetic.grok: found no trace.ptx, expected it; compile the "
               "model with grokc compile --trace"});
}

TEST_F(BenchTest, EveryFailingCallIsReportedAndLeavesNothing) {
  auto all = [&]() -> absl::Status {
    if (absl::Status s = executor->bench(request).status(); !s.ok())
      return s;
    if (absl::Status s = executor->trace(request).status(); !s.ok())
      return s;
    return executor->streamingCeiling().status();
  };
  int failures = 0;
  for (int call = 1;; ++call) {
    fake->calls = 0;
    fake->failAt = call;
    fake->failed[0] = 0;
    absl::Status status = all();
    if (!fake->failed[0])
      break;
    ++failures;
    EXPECT_EQ(status.code(), StatusCode::kInternal) << fake->failed << status;
    EXPECT_EQ(fake->live(), held) << fake->failed;
  }
  fake->failAt = 0;
  EXPECT_GT(failures, 30);
  EXPECT_TRUE(all().ok());
}

} // namespace
} // namespace grok::test
