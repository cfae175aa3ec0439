// Every driver call fails in turn: it is reported, nothing is left behind, and
// the next load works.
#include <functional>

#include "test/unit/cuda/TestDriver.h"

namespace grok::test {
namespace {

using absl::StatusCode;
using cuda::CudaExecutor;

class FaultTest : public CudaTest {
protected:
  using Use = std::function<absl::Status(CudaExecutor &)>;

  /// Opens the driver, loads the bundle and uses it.
  absl::Status all(const Bundle &bundle, const Use &use) {
    absl::StatusOr<cuda::DriverApi> driver =
        cuda::DriverApi::open(driverPath().c_str());
    if (!driver.ok())
      return driver.status();
    auto executor = CudaExecutor::create(*driver, bundle, {}, 0);
    if (!executor.ok())
      return executor.status();
    absl::Status status = use(**executor);
    fake->failAt = 0; // from here on things are given back
    return status;
  }

  /// `calls`: how many there are at least.
  void failEveryCall(const std::string &name, int calls, const Use &use) {
    std::shared_ptr<Bundle> bundle = openBundle(name);
    ASSERT_TRUE(bundle);
    int failures = 0;
    for (int call = 1;; ++call) {
      *fake = FakeCuda{};
      fake->failAt = call;
      absl::Status status = all(*bundle, use);
      if (!fake->failed[0])
        break; // there are no more calls
      ++failures;
      // Without cuInit there is no driver at all.
      expectParts(status,
                  call == 1 ? StatusCode::kUnavailable : StatusCode::kInternal,
                  {"CUDA_ERROR_OF_THE_STAND_IN (999): as the test asked"});
      EXPECT_EQ(fake->live(), 0) << fake->failed;
      *fake = FakeCuda{};
      EXPECT_TRUE(all(*bundle, use).ok()) << "after " << call;
    }
    EXPECT_GE(failures, calls);
  }
};

BatchRequest twoRows() {
  BatchRequest request;
  request.rows = {{{1, 2, 3}, 0, 2}, {{4, 5}, 0, 1}};
  return request;
}

TEST_F(FaultTest, Generating) {
  failEveryCall("synthetic", 35, [](CudaExecutor &executor) {
    return executor.run(twoRows()).status();
  });
}

TEST_F(FaultTest, LogitsOfACopiedBlob) {
  failEveryCall("blob", 35, [](CudaExecutor &executor) {
    BatchRequest request = twoRows();
    request.onLogits = [](uint32_t, uint32_t, std::span<const float>) {
      return absl::OkStatus();
    };
    return executor.run(request).status();
  });
}

TEST_F(FaultTest, Prefill) {
  failEveryCall("prefill", 90, [](CudaExecutor &executor) {
    return executor.run(twoRows()).status();
  });
}

/// Turns take so long that the driver is asked after the kernel.
TEST_F(FaultTest, Resident) {
  failEveryCall("prefill", 100, [&](CudaExecutor &executor) {
    fake->turnMs = 2;
    absl::Status status = executor.stayResident();
    BatchRequest request = twoRows();
    for (int turn = 0; turn != 3; ++turn) {
      status.Update(executor.run(request).status());
      request.rows[0].decodeFrom = request.rows[1].decodeFrom = 0;
    }
    request.onLogits = [](uint32_t, uint32_t, std::span<const float>) {
      return absl::OkStatus();
    };
    status.Update(executor.run(request).status());
    return status;
  });
}

TEST_F(FaultTest, Bench) {
  const BenchRequest request{.rows = 1, .context = 7, .steps = 3, .seed = 5};
  failEveryCall("blob", 35, [&](CudaExecutor &executor) {
    return executor.bench(request).status();
  });
}

TEST_F(FaultTest, StreamingCeiling) {
  failEveryCall("synthetic", 40, [](CudaExecutor &executor) {
    return executor.streamingCeiling().status();
  });
}

TEST_F(FaultTest, Trace) {
  const BenchRequest request{.rows = 1, .context = 7, .steps = 3, .seed = 5};
  failEveryCall("blob", 40, [&](CudaExecutor &executor) {
    return executor.trace(request).status();
  });
}

TEST_F(FaultTest, MatrixRate) {
  failEveryCall("prefill", 90, [](CudaExecutor &executor) {
    return executor.matrixRate().status();
  });
}

/// A GPU that has fallen off the bus fails in everything, giving back too.
TEST_F(FaultTest, FreesThatFail) {
  std::shared_ptr<Bundle> bundle = openBundle("prefill");
  ASSERT_TRUE(bundle);
  fake->failFrees = 1;
  EXPECT_TRUE(all(*bundle, [](CudaExecutor &executor) {
                return executor.run(twoRows()).status();
              }).ok());
  EXPECT_EQ(fake->live(), 0);
}

} // namespace
} // namespace grok::test
