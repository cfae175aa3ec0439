#include "runtime/nvml/Nvml.h"

#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <iterator>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/bundle/SharedLibrary.h"

#define RETURN_IF_ERROR(expression)                                            \
  if (absl::Status status_ = (expression); !status_.ok())                      \
  return status_

namespace grok::nvml {
namespace {

const char *libraryName() {
  const char *name = std::getenv("GROK_NVML");
  return name ? name : "libnvidia-ml.so.1";
}

constexpr const char *kSlowdowns[] = {"gpu_idle",
                                      "application_clocks",
                                      "sw_power_cap",
                                      "hw_slowdown",
                                      "sync_boost",
                                      "sw_thermal_slowdown",
                                      "hw_thermal_slowdown",
                                      "hw_power_brake",
                                      "display_clocks"};

} // namespace

std::vector<std::string> slowdownNames(uint64_t slowdowns) {
  std::vector<std::string> names;
  for (uint32_t bit = 1; bit != 64; ++bit)
    if (slowdowns >> bit & 1)
      names.push_back(bit < std::size(kSlowdowns)
                          ? kSlowdowns[bit]
                          : absl::StrCat("reason ", bit));
  return names;
}

absl::Status Gpu::load(const char *name) {
  absl::StatusOr<void *> library = openLibrary(name);
  if (!library.ok())
    return absl::UnavailableError(
        absl::StrCat("no NVML: ", library.status().message(),
                     "; it comes with the GPU's driver"));
  library_ = *library;
  auto resolve = [&](auto &member, const char *symbol) {
    member = reinterpret_cast<std::decay_t<decltype(member)>>(
        dlsym(library_, symbol));
    return member ? absl::OkStatus()
                  : absl::FailedPreconditionError(absl::StrFormat(
                        "%s: symbol %s not found; the driver is too old", name,
                        symbol));
  };
  RETURN_IF_ERROR(resolve(errorString_, "nvmlErrorString"));
#define GROK_NVML_RESOLVE(member, exported, parameters)                        \
  RETURN_IF_ERROR(resolve(member##_, #exported));
  GROK_NVML_SYMBOLS(GROK_NVML_RESOLVE)
#undef GROK_NVML_RESOLVE
  return absl::OkStatus();
}

absl::Status Gpu::check(Result result, const char *call) const {
  if (result == 0)
    return absl::OkStatus();
  return absl::UnavailableError(absl::StrFormat(
      "NVML: %s failed with %d: %s", call, result, errorString_(result)));
}

absl::StatusOr<std::unique_ptr<Gpu>> Gpu::open(const std::string &pciBusId) {
  std::unique_ptr<Gpu> gpu(new Gpu);
  RETURN_IF_ERROR(gpu->load(libraryName()));
  RETURN_IF_ERROR(gpu->check(gpu->init_(), "nvmlInit"));
  gpu->started_ = true;
  RETURN_IF_ERROR(
      gpu->check(gpu->handleByPciBusId_(pciBusId.c_str(), &gpu->device_),
                 "nvmlDeviceGetHandleByPciBusId"));
  return gpu;
}

/// The library stays open, as the driver does: what it started may outlive us.
Gpu::~Gpu() {
  if (started_)
    shutdown_();
}

absl::StatusOr<Sample> Gpu::sample() const {
  Sample s;
  unsigned long long slowdowns = 0;
  RETURN_IF_ERROR(
      check(clockInfo_(device_, kSmClock, &s.smMhz), "nvmlDeviceGetClockInfo"));
  RETURN_IF_ERROR(check(clockInfo_(device_, kMemoryClock, &s.memoryMhz),
                        "nvmlDeviceGetClockInfo"));
  RETURN_IF_ERROR(check(temperature_(device_, kDieSensor, &s.celsius),
                        "nvmlDeviceGetTemperature"));
  RETURN_IF_ERROR(check(slowdowns_(device_, &slowdowns),
                        "nvmlDeviceGetCurrentClocksThrottleReasons"));
  s.slowdowns = slowdowns;
  return s;
}

absl::StatusOr<std::unique_ptr<ClockLock>> ClockLock::take(const Gpu &gpu,
                                                           uint32_t mhz) {
  Result result = gpu.lockClocks_(gpu.device_, mhz, mhz);
  if (result == kNoPermission)
    return absl::PermissionDeniedError(absl::StrFormat(
        "clocks: found no right to lock them at %d MHz, expected root or a GPU "
        "whose administrator allows it",
        mhz));
  if (result == kInvalidArgument)
    return absl::InvalidArgumentError(
        absl::StrFormat("clocks: found %d MHz, expected a frequency of this "
                        "GPU; nvidia-smi -q -d SUPPORTED_CLOCKS lists them",
                        mhz));
  if (result == kNotSupported)
    return absl::UnimplementedError(
        "clocks: found a GPU whose clocks cannot be locked");
  RETURN_IF_ERROR(gpu.check(result, "nvmlDeviceSetGpuLockedClocks"));
  return std::unique_ptr<ClockLock>(new ClockLock(gpu));
}

absl::Status ClockLock::release() {
  if (!std::exchange(held_, false))
    return absl::OkStatus();
  absl::Status status = gpu_.check(gpu_.resetClocks_(gpu_.device_),
                                   "nvmlDeviceResetGpuLockedClocks");
  return status.ok() ? status
                     : absl::InternalError(
                           absl::StrCat("the clocks are still locked: ",
                                        std::string(status.message()),
                                        "; reset them with nvidia-smi -rgc"));
}

ClockLock::~ClockLock() {
  if (absl::Status status = release(); !status.ok())
    std::fprintf(stderr, "error: %s\n", std::string(status.message()).c_str());
}

} // namespace grok::nvml
