// A fixture with the stand-in driver, fresh in every test, and the bundles that
// the test's RUN lines compiled.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "runtime/cuda/CudaExecutor.h"
#include "test/unit/cuda/fake/FakeCuda.h"
#include "gtest/gtest.h"

namespace grok::cuda {

/// What only tests reach.
class CudaExecutorPeer {
public:
  static constexpr uint32_t kEpochLimit = CudaExecutor::kEpochLimit;
  static uint32_t &epoch(CudaExecutor &executor) { return executor.epoch_; }
  static uint32_t &benchLaunchSteps(CudaExecutor &executor) {
    return executor.benchLaunchSteps_;
  }
};

} // namespace grok::cuda

namespace grok::test {

/// NAME.grok of the directory that GROK_TEST_BUNDLES names; a failure of the
/// test if it cannot be opened.
std::shared_ptr<Bundle> openBundle(const std::string &name);
/// The shared object of the stand-in, or of the one that lacks a symbol.
std::string driverPath(bool old = false);

class CudaTest : public testing::Test {
protected:
  void SetUp() override;
  /// Whatever a test took is given back.
  void TearDown() override;

  absl::StatusOr<std::unique_ptr<cuda::CudaExecutor>>
  load(const std::string &bundle, int ordinal = 0);
  /// Loading is refused with this code and a message that has all of `parts`;
  /// nothing is held then.
  void expectRefused(const std::string &bundle, absl::StatusCode code,
                     const std::vector<std::string> &parts, int ordinal = 0);

  FakeCuda *fake = nullptr;
  std::optional<cuda::DriverApi> api;
};

/// The message has all of `parts`.
void expectParts(const absl::Status &status, absl::StatusCode code,
                 const std::vector<std::string> &parts);

} // namespace grok::test
