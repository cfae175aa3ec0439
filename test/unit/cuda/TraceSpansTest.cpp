// Spans from entries made by hand.
#include "runtime/cuda/TraceSpans.h"

#include "test/unit/cuda/TestDriver.h"

namespace grok::test {
namespace {

using absl::StatusCode;
using enum abi::TracePoint;

abi::TraceEntry entry(uint64_t ns, uint32_t clock, abi::TracePoint point,
                      uint8_t phase = 0, uint16_t layer = 0) {
  return {ns, clock, layer, phase, uint8_t(point)};
}

void expectRefused(std::vector<abi::TraceEntry> entries,
                   const std::string &part) {
  std::vector<uint32_t> counts = {uint32_t(entries.size())};
  expectParts(cuda::traceSpans(entries, counts).status(), StatusCode::kInternal,
              {part});
}

TEST(TraceSpans, TheCycleCounterTellsWhatLiesBetweenTicks) {
  // 2 GHz, and a timer that ticks every 1024 ns.
  std::vector<abi::TraceEntry> entries;
  for (uint64_t ns = 0; ns < 100'000; ns += 100)
    entries.push_back(entry(ns / 1024 * 1024, uint32_t(2 * ns),
                            ns / 100 % 2 ? kEnd : kBegin));
  std::vector<uint32_t> counts = {uint32_t(entries.size())};
  auto spans = cuda::traceSpans(entries, counts);
  ASSERT_TRUE(spans.ok()) << spans.status();
  ASSERT_EQ(spans->size(), 500u);
  for (size_t i = 0; i != 500; ++i) {
    EXPECT_NEAR((*spans)[i].begin, double(i) * 200e-9, 200e-9);
    EXPECT_NEAR((*spans)[i].end - (*spans)[i].begin, 100e-9, 1e-9);
  }
}

TEST(TraceSpans, TheCycleCounterMayWrap) {
  std::vector<abi::TraceEntry> entries = {
      entry(1000, 0xffffff00, kBegin, 3, 7),
      entry(2000, 0xffffff00 + 1500, kReady, 3, 7),
      entry(3000, 0xffffff00 + 3000, kEnd, 3, 7)};
  auto spans = cuda::traceSpans(entries, std::vector<uint32_t>{3});
  ASSERT_TRUE(spans.ok()) << spans.status();
  ASSERT_EQ(spans->size(), 1u);
  const TraceSpan &span = spans->front();
  EXPECT_EQ(span.layer, 7u);
  EXPECT_EQ(span.phase, 3u);
  EXPECT_NEAR(span.begin, 0, 1e-12);
  EXPECT_NEAR(span.ready, 1000e-9, 1e-12);
  EXPECT_NEAR(span.end, 2000e-9, 1e-12);
}

TEST(TraceSpans, WithoutATickEverythingIsAtOnce) {
  std::vector<abi::TraceEntry> entries = {entry(5000, 10, kBegin),
                                          entry(5000, 400, kEnd)};
  auto spans = cuda::traceSpans(entries, std::vector<uint32_t>{2});
  ASSERT_TRUE(spans.ok()) << spans.status();
  EXPECT_EQ(spans->front().begin, 0);
  EXPECT_EQ(spans->front().end, 0);
}

TEST(TraceSpans, APhaseThatWaitsForNothingIsReadyAtOnce) {
  std::vector<abi::TraceEntry> entries = {
      entry(0, 0, kBegin),
      entry(0, 0, kEnd), // of slot 0, which has two more
      entry(0, 0, kBegin),
      entry(0, 0, kBegin),
      entry(2000, 9000, kBegin),
      entry(3000, 11000, kEnd),
      entry(3000, 11000, kBegin, 8),
      entry(4000, 13000, kEnd, 8)};
  auto spans = cuda::traceSpans(entries, std::vector<uint32_t>{2, 4});
  ASSERT_TRUE(spans.ok()) << spans.status();
  ASSERT_EQ(spans->size(), 3u);
  EXPECT_EQ((*spans)[1].slot, 1u);
  EXPECT_NEAR((*spans)[1].begin, 2e-6, 1e-12);
  EXPECT_EQ((*spans)[1].ready, (*spans)[1].begin);
  EXPECT_EQ((*spans)[2].phase, 8u);
}

TEST(TraceSpans, NothingIsNoSpans) {
  auto spans = cuda::traceSpans({}, std::vector<uint32_t>{0, 0});
  ASSERT_TRUE(spans.ok()) << spans.status();
  EXPECT_TRUE(spans->empty());
}

TEST(TraceSpans, ShowsTheFirstOfSeveralWaits) {
  std::vector<abi::TraceEntry> entries = {
      entry(0, 0, kBegin), entry(1000, 2000, kReady), entry(3000, 6000, kReady),
      entry(5000, 10000, kEnd)};
  auto spans = cuda::traceSpans(entries, std::vector<uint32_t>{4});
  ASSERT_TRUE(spans.ok()) << spans.status();
  ASSERT_EQ(spans->size(), 1u);
  EXPECT_NEAR((*spans)[0].ready, 1e-6, 1e-12);
  EXPECT_NEAR((*spans)[0].end, 5e-6, 1e-12);
}

TEST(TraceSpans, RefusesWhatIsOutOfOrder) {
  expectRefused({entry(0, 0, kEnd)},
                "the trace of slot 0: found point 2 of phase 0 in layer 0 at "
                "entry 0, expected a phase to begin");
  expectRefused({entry(0, 0, kBegin), entry(0, 0, kBegin)},
                "at entry 1, expected the phase that has begun to go on");
  expectRefused({entry(0, 0, kBegin), entry(0, 0, kEnd, 1)},
                "found point 2 of phase 1");
  expectRefused({entry(0, 0, kBegin), entry(0, 0, kEnd, 0, 1)},
                "phase 0 in layer 1 at entry 1");
  expectRefused({entry(0, 0, kBegin), entry(0, 0, kReady), entry(0, 0, kEnd),
                 entry(0, 0, kReady)},
                "found point 1 of phase 0 in layer 0 at entry 3");
  expectRefused({entry(0, 0, kBegin), entry(0, 0, kReady), entry(0, 0, kReady)},
                "stops inside a phase after 3 entries");
  expectRefused({entry(0, 0, kBegin), entry(0, 0, abi::TracePoint(3))},
                "found point 3");
  expectRefused({entry(0, 0, kBegin, 9)}, "phase 9");
  expectRefused({entry(0, 0, kBegin)}, "stops inside a phase after 1 entries");
}

TEST(TraceSpans, RefusesMoreEntriesThanThereAre) {
  std::vector<abi::TraceEntry> entries(4);
  expectParts(cuda::traceSpans(entries, std::vector<uint32_t>{1, 3}).status(),
              StatusCode::kInternal,
              {"the trace of slot 1: found 3 entries, expected at most 2"});
}

} // namespace
} // namespace grok::test
