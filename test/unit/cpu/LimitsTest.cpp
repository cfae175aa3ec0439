// GROK_MAX_SEQ_LEN and GROK_KV_CACHE_BUFFER_MB.
#include <cstdlib>

#include "runtime/Executor.h"
#include "test/unit/cpu/TestModel.h"
#include "gtest/gtest.h"

namespace grok::test {
namespace {

constexpr uint64_t kMb = 1 << 20;

class LimitsTest : public testing::Test {
protected:
  LimitsTest() {
    model = smallConfig(true);
    model.numLayers = 24;
    model.numKvHeads = 6;
    model.headDim = 64;
    model.maxPositions = 8192;
    plan = handPlan(model, {.maxSeq = 1024});
  }
  ~LimitsTest() override {
    unsetenv("GROK_MAX_SEQ_LEN");
    unsetenv("GROK_KV_CACHE_BUFFER_MB");
  }
  absl::StatusOr<LoadLimits> resolve(const char *length, const char *megabytes,
                                     uint32_t elementBytes = 2) {
    if (length)
      setenv("GROK_MAX_SEQ_LEN", length, 1);
    if (megabytes)
      setenv("GROK_KV_CACHE_BUFFER_MB", megabytes, 1);
    return resolveLimits({}, model, plan, elementBytes);
  }
  std::string error(const char *length, const char *megabytes) {
    absl::StatusOr<LoadLimits> limits = resolve(length, megabytes);
    EXPECT_TRUE(absl::IsInvalidArgument(limits.status()));
    return std::string(limits.status().message());
  }
  ModelConfig model;
  PlanTables plan; // 8 rows of 1024 take 288 MiB in 16 bits
};

TEST_F(LimitsTest, DefaultToWhatWasCompiled) {
  absl::StatusOr<LoadLimits> limits = resolve(nullptr, nullptr);
  ASSERT_TRUE(limits.ok());
  EXPECT_EQ(limits->maxSeq, 1024u);
  EXPECT_EQ(limits->kvBytes, 400 * kMb);
}

TEST_F(LimitsTest, WiderEntriesTakeTheSmallestReserveThatHoldsThem) {
  absl::StatusOr<LoadLimits> limits = resolve(nullptr, nullptr, 4);
  ASSERT_TRUE(limits.ok());
  EXPECT_EQ(limits->kvBytes, 600 * kMb);
}

TEST_F(LimitsTest, CanBothBeLowered) {
  absl::StatusOr<LoadLimits> limits = resolve("500", "200");
  ASSERT_TRUE(limits.ok()) << limits.status();
  EXPECT_EQ(limits->maxSeq, 500u);
  EXPECT_EQ(limits->kvBytes, 200 * kMb);
}

TEST_F(LimitsTest, TheReserveMustBeAMultipleOf200) {
  EXPECT_EQ(error(nullptr, "300"),
            "GROK_KV_CACHE_BUFFER_MB: found 300, expected a multiple of 200");
}

TEST_F(LimitsTest, TheReserveMustHoldBatchTimesLength) {
  EXPECT_EQ(error(nullptr, "200"),
            "KV cache reserve: found 200 MB (209715200 bytes), expected at "
            "least 301989888 bytes for batch 8 times length 1024 (400 MB); "
            "raise GROK_KV_CACHE_BUFFER_MB or lower GROK_MAX_SEQ_LEN");
}

TEST_F(LimitsTest, NeitherCanBeRaised) {
  EXPECT_EQ(error("1025", nullptr),
            "GROK_MAX_SEQ_LEN: found 1025, expected at most 1024, the length "
            "that the bundle was compiled for; it can only be lowered");
  EXPECT_EQ(error("1024", "600"),
            "KV cache reserve: found 600 MB, expected at most 400 MB, the "
            "compiled reserve; it can only be lowered");
}

TEST_F(LimitsTest, BothMustBePositiveIntegers) {
  EXPECT_EQ(error("many", nullptr),
            "GROK_MAX_SEQ_LEN: found 'many', expected a positive integer");
  EXPECT_EQ(error("12.5", nullptr),
            "GROK_MAX_SEQ_LEN: found '12.5', expected a positive integer");
  EXPECT_EQ(error("1024", "0"),
            "GROK_KV_CACHE_BUFFER_MB: found '0', expected a positive integer");
  EXPECT_EQ(error("1024", "-200"),
            "GROK_KV_CACHE_BUFFER_MB: found '-200', expected a positive "
            "integer");
}

} // namespace
} // namespace grok::test
