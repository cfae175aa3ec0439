// Opening the driver.
#include "test/unit/cuda/TestDriver.h"

namespace grok::test {
namespace {

using absl::StatusCode;
using cuda::DriverApi;

using DriverTest = CudaTest;

TEST_F(DriverTest, MissingLibrary) {
  expectParts(DriverApi::open("/absent/libcuda.so.1").status(),
              StatusCode::kUnavailable,
              {"no CUDA driver: /absent/libcuda.so.1: cannot open",
               "install the driver of the GPU, or run on the CPU"});
}

TEST_F(DriverTest, MissingSymbol) {
  expectParts(DriverApi::open(driverPath(true).c_str()).status(),
              StatusCode::kFailedPrecondition,
              {"libgrok-fake-cuda-old.so: symbol cuCtxSynchronize not found; "
               "the CUDA driver is too old"});
}

TEST_F(DriverTest, NoDevice) {
  fake->devices = 0;
  expectParts(DriverApi::open(driverPath().c_str()).status(),
              StatusCode::kUnavailable, {"finds no GPU"});
  // The device went away after the driver was opened.
  expectRefused("synthetic", StatusCode::kUnavailable, {"finds no GPU"});
}

TEST_F(DriverTest, DriverThatDoesNotStart) {
  fake->failAt = fake->calls + 1;
  fake->failWith = 34;
  expectParts(DriverApi::open(driverPath().c_str()).status(),
              StatusCode::kUnavailable,
              {"the CUDA driver does not start", "cuInit",
               "CUDA_ERROR_OF_THE_STAND_IN (34): as the test asked"});
}

TEST_F(DriverTest, OutOfMemoryIsItsOwnStatus) {
  expectParts(
      api->check(cuda::kOutOfMemory, "memAlloc"),
      StatusCode::kResourceExhausted,
      {"CUDA driver: memAlloc failed with CUDA_ERROR_OUT_OF_MEMORY (2)"});
  EXPECT_TRUE(api->check(0, "memAlloc").ok());
}

} // namespace
} // namespace grok::test
