// A stand-in for NVML: a GPU of 1980 MHz that warms by a degree a reading, from
// 40 C to 49 C and again, and is slowed to 1400 MHz by its heat at 49 C. What
// is asked of it is written to the file that GROK_FAKE_NVML_LOG names.
// GROK_FAKE_NVML="lock=4,reset=999,read=3" are results to fail with.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "runtime/nvml/Nvml.h"

using namespace grok::nvml;

namespace {

constexpr unsigned kClock = 1980, kSlowClock = 1400, kHot = 49, kCool = 40;
std::atomic<unsigned> locked{0}, readings{0};

/// The result that a setting asks for; 0 without it.
Result asked(const char *call) {
  const char *settings = std::getenv("GROK_FAKE_NVML");
  const char *found = settings ? std::strstr(settings, call) : nullptr;
  return found ? std::atoi(found + std::strlen(call) + 1) : 0;
}

void log(const char *what, unsigned number) {
  const char *path = std::getenv("GROK_FAKE_NVML_LOG");
  std::FILE *file = path ? std::fopen(path, "a") : nullptr;
  if (!file)
    return;
  std::fprintf(file, "%s %u\n", what, number);
  std::fclose(file);
}

unsigned celsius() { return kCool + readings % (kHot - kCool + 1); }

} // namespace

extern "C" {

const char *nvmlErrorString(Result result) {
  return result == kNotFound ? "Not Found" : "Something Is Wrong";
}
Result nvmlInit_v2() { return asked("init"); }
Result nvmlShutdown() { return 0; }
Result nvmlDeviceGetHandleByPciBusId_v2(const char *address, Device *device) {
  *device = reinterpret_cast<Device>(&locked);
  return std::strcmp(address, "0000:3B:00.0") == 0 ? 0 : kNotFound;
}
Result nvmlDeviceGetClockInfo(Device, int domain, unsigned *mhz) {
  unsigned sm = locked              ? locked.load()
                : celsius() == kHot ? kSlowClock
                                    : kClock;
  *mhz = domain == kSmClock ? sm : 3201;
  return asked("read");
}
Result nvmlDeviceGetTemperature(Device, int, unsigned *degrees) {
  *degrees = celsius();
  return 0;
}
Result nvmlDeviceGetCurrentClocksThrottleReasons(Device,
                                                 unsigned long long *reasons) {
  *reasons = celsius() == kHot ? 0x20 : 1; // thermal, or idle
  ++readings;                              // the last of a reading
  return 0;
}
Result nvmlDeviceSetGpuLockedClocks(Device, unsigned least, unsigned most) {
  Result result = least == most ? asked("lock") : kInvalidArgument;
  locked = result == 0 ? least : 0;
  log(result == 0 ? "locked" : "refused", least);
  return result;
}
#ifndef GROK_FAKE_NVML_OLD
Result nvmlDeviceResetGpuLockedClocks(Device) {
  log("reset", locked);
  locked = 0;
  return asked("reset");
}
#endif

} // extern "C"
