// What is read of a GPU, and its clocks while they are held.
#include "runtime/nvml/Nvml.h"

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "gtest/gtest.h"

namespace grok::nvml {
namespace {

constexpr const char *kAddress = "0000:3B:00.0";

class NvmlTest : public testing::Test {
protected:
  void SetUp() override {
    setenv("GROK_NVML", library("grok-fake-nvml").c_str(), 1);
    setenv("GROK_FAKE_NVML_LOG", log.c_str(), 1);
    unsetenv("GROK_FAKE_NVML");
    std::remove(log.c_str());
  }
  void TearDown() override { std::remove(log.c_str()); }

  static std::string library(const std::string &name) {
    return std::string(std::getenv("GROK_TEST_LIBRARIES")) + "/lib" + name +
           ".so";
  }
  std::unique_ptr<Gpu> gpu() {
    absl::StatusOr<std::unique_ptr<Gpu>> opened = Gpu::open(kAddress);
    EXPECT_TRUE(opened.ok()) << opened.status();
    return opened.ok() ? *std::move(opened) : nullptr;
  }
  std::string logged() {
    std::ifstream file(log);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }
  void expectRefused(const absl::Status &status, absl::StatusCode code,
                     const std::string &part) {
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_NE(std::string(status.message()).find(part), std::string::npos)
        << status;
  }

  const std::string log = testing::TempDir() + "/grok-nvml-test.log";
};

TEST_F(NvmlTest, Reads) {
  std::unique_ptr<Gpu> one = gpu();
  ASSERT_TRUE(one);
  bool slowed = false;
  for (int i = 0; i != 10; ++i) {
    absl::StatusOr<Sample> sample = one->sample();
    ASSERT_TRUE(sample.ok()) << sample.status();
    bool hot = sample->celsius == 49;
    EXPECT_EQ(sample->smMhz, hot ? 1400u : 1980u);
    EXPECT_EQ(sample->memoryMhz, 3201u);
    EXPECT_EQ(slowdownNames(sample->slowdowns),
              hot ? std::vector<std::string>{"sw_thermal_slowdown"}
                  : std::vector<std::string>{});
    slowed |= hot;
  }
  EXPECT_TRUE(slowed);
}

TEST_F(NvmlTest, NamesOfSlowdowns) {
  EXPECT_EQ(slowdownNames(1), std::vector<std::string>{});
  EXPECT_EQ(slowdownNames(0x44 | 1ull << 40),
            (std::vector<std::string>{"sw_power_cap", "hw_thermal_slowdown",
                                      "reason 40"}));
}

TEST_F(NvmlTest, WhatIsNotThere) {
  expectRefused(Gpu::open("0000:00:00.0").status(),
                absl::StatusCode::kUnavailable,
                "nvmlDeviceGetHandleByPciBusId failed with 6: Not Found");
  setenv("GROK_NVML", "/absent.so", 1);
  expectRefused(Gpu::open(kAddress).status(), absl::StatusCode::kUnavailable,
                "no NVML: /absent.so: cannot open");
  setenv("GROK_NVML", library("grok-fake-nvml-old").c_str(), 1);
  expectRefused(Gpu::open(kAddress).status(),
                absl::StatusCode::kFailedPrecondition,
                "symbol nvmlDeviceResetGpuLockedClocks not found");
}

TEST_F(NvmlTest, ReadingFails) {
  std::unique_ptr<Gpu> one = gpu();
  ASSERT_TRUE(one);
  setenv("GROK_FAKE_NVML", "read=15", 1);
  expectRefused(one->sample().status(), absl::StatusCode::kUnavailable,
                "nvmlDeviceGetClockInfo failed with 15");
}

TEST_F(NvmlTest, ClocksAreGivenBack) {
  std::unique_ptr<Gpu> one = gpu();
  ASSERT_TRUE(one);
  {
    absl::StatusOr<std::unique_ptr<ClockLock>> lock =
        ClockLock::take(*one, 1500);
    ASSERT_TRUE(lock.ok()) << lock.status();
    EXPECT_EQ(one->sample()->smMhz, 1500u);
    EXPECT_EQ(logged(), "locked 1500\n");
  }
  EXPECT_EQ(logged(), "locked 1500\nreset 1500\n");
  EXPECT_NE(one->sample()->smMhz, 1500u);
}

TEST_F(NvmlTest, ClocksThatMayNotBeLocked) {
  std::unique_ptr<Gpu> one = gpu();
  ASSERT_TRUE(one);
  const std::tuple<const char *, absl::StatusCode, const char *> cases[] = {
      {"lock=4", absl::StatusCode::kPermissionDenied,
       "found no right to lock them at 1500 MHz, expected root"},
      {"lock=2", absl::StatusCode::kInvalidArgument,
       "found 1500 MHz, expected a frequency of this GPU"},
      {"lock=3", absl::StatusCode::kUnimplemented, "cannot be locked"},
      {"lock=999", absl::StatusCode::kUnavailable,
       "nvmlDeviceSetGpuLockedClocks failed with 999"}};
  for (auto [settings, code, part] : cases) {
    setenv("GROK_FAKE_NVML", settings, 1);
    expectRefused(ClockLock::take(*one, 1500).status(), code, part);
  }
  EXPECT_EQ(logged().find("reset"), std::string::npos);
}

TEST_F(NvmlTest, ClocksThatAreNotGivenBack) {
  std::unique_ptr<Gpu> one = gpu();
  ASSERT_TRUE(one);
  absl::StatusOr<std::unique_ptr<ClockLock>> lock = ClockLock::take(*one, 1500);
  ASSERT_TRUE(lock.ok()) << lock.status();
  setenv("GROK_FAKE_NVML", "reset=999", 1);
  expectRefused((*lock)->release(), absl::StatusCode::kInternal,
                "the clocks are still locked");
  EXPECT_TRUE((*lock)->release().ok()) << "told once";
}

} // namespace
} // namespace grok::nvml
