// NVML, the GPU's management library: clocks, temperature and what slows the
// clocks. Opened at run time; nothing but ClockLock changes the device.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace grok::nvml {

using Result = int; // nvmlReturn_t; 0 is success
using Device = struct DeviceHandle *;

/// Results by their numbers in NVML's ABI.
inline constexpr Result kInvalidArgument = 2, kNotSupported = 3,
                        kNoPermission = 4, kNotFound = 6;
/// Clock domains.
inline constexpr int kSmClock = 1, kMemoryClock = 2;
/// The sensor on the die.
inline constexpr int kDieSensor = 0;

/// X(member, exported name, parameters): every symbol that is resolved.
#define GROK_NVML_SYMBOLS(X)                                                   \
  X(init, nvmlInit_v2, ())                                                     \
  X(shutdown, nvmlShutdown, ())                                                \
  X(handleByPciBusId, nvmlDeviceGetHandleByPciBusId_v2,                        \
    (const char *, Device *))                                                  \
  X(clockInfo, nvmlDeviceGetClockInfo, (Device, int, unsigned *))              \
  X(temperature, nvmlDeviceGetTemperature, (Device, int, unsigned *))          \
  X(slowdowns, nvmlDeviceGetCurrentClocksThrottleReasons,                      \
    (Device, unsigned long long *))                                            \
  X(lockClocks, nvmlDeviceSetGpuLockedClocks, (Device, unsigned, unsigned))    \
  X(resetClocks, nvmlDeviceResetGpuLockedClocks, (Device))

/// What was read of a GPU at one moment.
struct Sample {
  uint32_t smMhz = 0, memoryMhz = 0;
  uint32_t celsius = 0;
  uint64_t slowdowns = 0; // bits of slowdownNames
};

/// NVML's words for what holds the clocks down, without "GPU idle", which is
/// no slowdown; an unknown bit is "reason N".
std::vector<std::string> slowdownNames(uint64_t slowdowns);

/// One GPU as NVML sees it. Reading is safe from several threads.
class Gpu {
public:
  /// By its PCI bus address. The library is libnvidia-ml.so.1, or the file that
  /// GROK_NVML names. Unavailable without it or without such a GPU,
  /// FailedPrecondition if a symbol is missing because the driver is too old.
  static absl::StatusOr<std::unique_ptr<Gpu>> open(const std::string &pciBusId);
  ~Gpu();
  Gpu(const Gpu &) = delete;
  absl::StatusOr<Sample> sample() const;

private:
  friend class ClockLock;
  Gpu() = default;
  absl::Status load(const char *library);
  absl::Status check(Result result, const char *call) const;

#define GROK_NVML_MEMBER(member, exported, parameters)                         \
  Result(*member##_) parameters = nullptr;
  GROK_NVML_SYMBOLS(GROK_NVML_MEMBER)
#undef GROK_NVML_MEMBER
  const char *(*errorString_)(Result) = nullptr;
  void *library_ = nullptr;
  bool started_ = false;
  Device device_ = nullptr;
};

/// Holds the SM clock at one frequency while it lives. Afterwards the GPU picks
/// its clocks by itself again: NVML does not tell whether somebody had locked
/// them before.
class ClockLock {
public:
  /// PermissionDenied without the right to, InvalidArgument for a frequency
  /// that the GPU does not have, Unimplemented where clocks cannot be locked.
  static absl::StatusOr<std::unique_ptr<ClockLock>> take(const Gpu &gpu,
                                                         uint32_t mhz);
  ~ClockLock();
  ClockLock(const ClockLock &) = delete;
  /// Gives the clocks back now. Internal if the GPU refuses.
  absl::Status release();

private:
  explicit ClockLock(const Gpu &gpu) : gpu_(gpu) {}
  const Gpu &gpu_;
  bool held_ = true;
};

} // namespace grok::nvml
