// What is checked at load, and that a load that fails leaves nothing behind.
#include <thread>

#include "test/unit/cuda/TestDriver.h"

namespace grok::test {
namespace {

using absl::StatusCode;

using LoadTest = CudaTest;

TEST_F(LoadTest, TakesEverythingOnce) {
  auto executor = load("blob");
  ASSERT_TRUE(executor.ok()) << executor.status();
  EXPECT_EQ((*executor)->deviceName(), "Stand-In 9000");
  EXPECT_EQ((*executor)->maxBatch(), 2u);
  EXPECT_EQ((*executor)->maxSeq(), 128u);
  EXPECT_EQ(int64_t((*executor)->memoryBytes()), fake->bytes);
  EXPECT_EQ(fake->modules, 1);
  EXPECT_EQ(fake->fills, 0);
}

TEST_F(LoadTest, SyntheticWeightsAreFilledOnTheDevice) {
  auto executor = load("synthetic");
  ASSERT_TRUE(executor.ok()) << executor.status();
  EXPECT_EQ(fake->fills, 1);
}

TEST_F(LoadTest, FreesOnAnotherThread) {
  auto executor = load("synthetic");
  ASSERT_TRUE(executor.ok()) << executor.status();
  std::thread([&] { executor->reset(); }).join();
  EXPECT_EQ(fake->live(), 0);
}

TEST_F(LoadTest, OutOfMemoryWhileTakingIt) {
  fake->failWith = cuda::kOutOfMemory;
  std::shared_ptr<Bundle> bundle = openBundle("synthetic");
  ASSERT_TRUE(bundle);
  int exhausted = 0;
  for (int call = 1;; ++call) {
    fake->calls = 0;
    fake->failAt = call;
    fake->failed[0] = 0;
    auto executor = cuda::CudaExecutor::create(*api, *bundle, {}, 0);
    if (!fake->failed[0])
      break;
    EXPECT_EQ(executor.status().code(), StatusCode::kResourceExhausted)
        << executor.status();
    EXPECT_EQ(fake->live(), 0) << fake->failed;
    exhausted += std::string(fake->failed) == "cuMemAlloc_v2";
  }
  // Weights, arena, extents, embedding, steps, and the SM's numbers and slots.
  EXPECT_EQ(exhausted, 7);
}

TEST_F(LoadTest, DriverOlderThanTheBundleNeeds) {
  api->version = 11040;
  expectRefused("blob", StatusCode::kFailedPrecondition,
                {"needs a driver for CUDA 12.0, found one for CUDA 11.4; "
                 "update the driver"});
}

TEST_F(LoadTest, OtherArchitecture) {
  fake->major = 8;
  expectRefused(
      "blob", StatusCode::kFailedPrecondition,
      {"compiled for sm_90, the GPU (Stand-In 9000) is sm_80", "retarget"});
  fake->major = 10;
  expectRefused("blob", StatusCode::kFailedPrecondition,
                {"the GPU (Stand-In 9000) is sm_100"});
}

TEST_F(LoadTest, Sm80CodeRunsOnLaterParts) {
  fake->sharedBytes = 166912;
  EXPECT_TRUE(load("sm80").ok());
  fake->major = 7;
  fake->minor = 5;
  expectRefused("sm80", StatusCode::kFailedPrecondition,
                {"compiled for sm_80", "is sm_75"});
}

TEST_F(LoadTest, TooFewSms) {
  fake->smCount = 131;
  expectRefused(
      "blob", StatusCode::kFailedPrecondition,
      {"compiled for 132 SMs, the GPU (Stand-In 9000) has 131; retarget it"});
}

TEST_F(LoadTest, MoreSmsThanSlots) {
  fake->smCount = 144;
  EXPECT_TRUE(load("blob").ok());
}

TEST_F(LoadTest, TooLittleSharedMemory) {
  fake->sharedBytes = 49152;
  expectRefused("blob", StatusCode::kFailedPrecondition,
                {"bytes of shared memory per block, the GPU (Stand-In 9000) "
                 "has 49152; retarget it"});
}

TEST_F(LoadTest, NoCooperativeLaunch) {
  fake->cooperative = 0;
  expectRefused("blob", StatusCode::kFailedPrecondition,
                {"does not launch cooperatively"});
}

TEST_F(LoadTest, TooLittleMemory) {
  fake->freeMegabytes = 100;
  fake->memoryMegabytes = 4096;
  expectRefused("blob", StatusCode::kResourceExhausted,
                {"device memory: needed 2", " MB (weights ", " MB, arena 2",
                 " MB), available 100 MB of 4096 MB", "--max-seq"});
}

TEST_F(LoadTest, NoSuchOrdinal) {
  expectRefused("blob", StatusCode::kInvalidArgument,
                {"device cuda:3: found 1 GPU(s)"}, 3);
}

TEST_F(LoadTest, BundleForTheCpu) {
  expectRefused("cpu", StatusCode::kFailedPrecondition,
                {"compiled for cpu, which has no GPU code"});
}

TEST_F(LoadTest, BundleWithoutWeights) {
  expectRefused("none", StatusCode::kFailedPrecondition,
                {"none.grok: the bundle holds no weights", "grokrun pack"});
}

TEST_F(LoadTest, JitErrorCarriesTheLog) {
  fake->jitResult = 218;
  expectRefused("blob", StatusCode::kInternal,
                {"blob.grok/decode.ptx: ", "(218)",
                 "ptxas: line 7: what the compiler did not like"});
}

TEST_F(LoadTest, PtxNewerThanTheDriver) {
  fake->jitResult = cuda::kUnsupportedPtxVersion;
  expectRefused("blob", StatusCode::kFailedPrecondition,
                {"decode.ptx: the driver, for CUDA 12.8, does not know this "
                 "PTX version; update the driver"});
}

} // namespace
} // namespace grok::test
