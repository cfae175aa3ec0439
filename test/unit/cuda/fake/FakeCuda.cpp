#include "test/unit/cuda/fake/FakeCuda.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <thread>

#include "runtime/cuda/DriverApi.h"

namespace {

using namespace grok::cuda;
using grok::abi::DecodeParams;
using grok::abi::StreamParams;
using grok::abi::TraceEntry;
using grok::abi::Turn;
using grok::test::FakeCuda;

constexpr Result kInvalidValue = 1, kNotInitialized = 3, kNoContext = 201,
                 kNotFound = 500;

/// One of the settings by its name in GROK_FAKE_CUDA; null for none.
template <class F> bool assign(FakeCuda &fake, std::string_view name, F value) {
  const std::pair<const char *, int *> numbers[] = {
      {"driver_version", &fake.driverVersion},
      {"devices", &fake.devices},
      {"major", &fake.major},
      {"minor", &fake.minor},
      {"sm_count", &fake.smCount},
      {"shared_bytes", &fake.sharedBytes},
      {"cooperative", &fake.cooperative},
      {"fail_at", &fake.failAt},
      {"fail_with", &fake.failWith},
      {"fail_frees", &fake.failFrees},
      {"jit_result", &fake.jitResult},
      {"watchdog", &fake.watchdog},
      {"silent", &fake.silent},
      {"timeless", &fake.timeless},
      {"turn_ms", &fake.turnMs},
      {"unended", &fake.unended}};
  for (auto [known, number] : numbers)
    if (name == known) {
      *number = int(value);
      return true;
    }
  if (name == "free_megabytes") {
    fake.freeMegabytes = value;
    return true;
  }
  return false;
}

FakeCuda fromEnvironment() {
  FakeCuda fake;
  const char *text = std::getenv("GROK_FAKE_CUDA");
  std::string_view rest = text ? text : "";
  while (!rest.empty()) {
    std::string_view item = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(item.size() + 1, rest.size()));
    size_t equals = std::min(item.find('='), item.size());
    std::string value(item.substr(std::min(equals + 1, item.size())));
    if (!assign(fake, item.substr(0, equals),
                std::strtol(value.c_str(), nullptr, 10))) {
      std::fprintf(stderr, "GROK_FAKE_CUDA: unknown setting %.*s\n",
                   int(equals), item.data());
      std::abort();
    }
  }
  return fake;
}

FakeCuda &fake() {
  static FakeCuda settings = fromEnvironment();
  return settings;
}

struct Kernel {
  std::string_view name;
};
Kernel kernels[] = {
    {"grok_decode"}, {"grok_fill"}, {"grok_stream"}, {"read_smid"}};
/// Stands for every prefill kernel; it computes nothing.
constexpr std::string_view kPrefill = "grok_prefill_";
Kernel prefillKernel{kPrefill};

std::map<DevicePtr, size_t> &memory() {
  static std::map<DevicePtr, size_t> blocks;
  return blocks;
}
bool initialized = false;
thread_local bool current = false; // a context is current in this thread

bool isAllocated(DevicePtr address, size_t bytes) {
  auto block = memory().upper_bound(address);
  if (block == memory().begin())
    return false;
  --block;
  return address + bytes <= block->first + block->second;
}

/// Counts a call; its result if it fails before it does anything.
Result enter(const char *call, bool needsContext) {
  if (++fake().calls == fake().failAt) {
    std::snprintf(fake().failed, sizeof fake().failed, "%s", call);
    return fake().failWith;
  }
  if (!initialized && std::strcmp(call, "cuInit") != 0)
    return kNotInitialized;
  return needsContext && !current ? kNoContext : 0;
}
#define ENTER(needsContext)                                                    \
  if (Result result = enter(__func__, needsContext))                           \
  return result
/// Of a call that waits for the device.
#define ENTER_AND_WAIT()                                                       \
  ENTER(true);                                                                 \
  if (!comesToIt())                                                            \
  return kNotReady

/// The result of a call that has given something back.
Result freed() { return fake().failFrees ? fake().failWith : 0; }

constexpr uint64_t kStart = 1'700'000'000'000'000'000, kStepNs = 100'000;

/// Steps of a turn: as asked for, or up to the longest row's last choice.
uint32_t stepsOf(const DecodeParams &p, const Turn &turn) {
  uint32_t steps = p.benchSteps;
  for (uint32_t b = 0; b < turn.rows && !p.benchSteps; ++b)
    if (turn.start[b] < turn.known[b])
      steps = std::max(steps, std::max(turn.known[b], turn.limit[b] - 1) -
                                  turn.start[b]);
  return steps;
}

/// Nanoseconds that they take.
uint64_t noteSteps(const DecodeParams &p, const Turn &turn) {
  uint64_t now = kStart;
  for (uint32_t step = 0; step < stepsOf(p, turn); ++step) {
    now += kStepNs + step % 4 * 1000;
    p.steps[step] = {now, 3, 0};
  }
  return now - kStart;
}

/// Every slot notes a qkv, a head and a choice of each step, by a timer that
/// ticks every microsecond and a counter of 2 GHz that soon wraps.
void noteTrace(const DecodeParams &p) {
  for (uint32_t slot = 0; slot < uint32_t(fake().smCount); ++slot) {
    TraceEntry *out = p.trace + uint64_t(slot) * p.traceEntries;
    uint32_t &count = p.traceCounts[slot];
    auto note = [&](uint64_t ns, uint8_t phase, grok::abi::TracePoint point) {
      out[count++] = {kStart + ns / 1000 * 1000, uint32_t(0xffff0000 + 2 * ns),
                      0, phase, uint8_t(point)};
    };
    using enum grok::abi::TracePoint;
    for (uint32_t step = 0; step < p.benchSteps; ++step) {
      uint64_t begin = step * kStepNs + slot * 250;
      note(begin, 0, kBegin);
      note(begin + 10'000, 0, kReady);
      note(begin + 30'000, 0, kEnd);
      note(begin + 30'000, 7, kBegin);
      note(begin + 60'000, 7, kEnd);
      note(begin + 60'000, 8, kBegin);
      note(begin + 70'000, 8, kReady);
      note(begin + 80'000, 8, kEnd);
    }
    count -= fake().unended ? 1 : 0;
  }
}

void stuck(const DecodeParams &p, uint32_t phase, uint32_t slot, uint32_t layer,
           uint32_t step) {
  p.status->phase = phase;
  p.status->slot = slot;
  p.status->layer = layer;
  p.status->step = step;
  std::atomic_ref(p.status->code).store(grok::abi::kWatchdog);
}

void decode(const DecodeParams &p, const Turn &turn) {
  FakeCuda &f = fake();
  ++f.turns;
  f.lastTurn = turn;
  if (f.silent)
    return;
  if (f.watchdog)
    return stuck(p, 5, 17, 2, 9);
  // A slot that cannot be taken: another one waits for its words.
  for (uint32_t slot = 0; slot < uint32_t(f.smCount); ++slot)
    if (p.claims[slot] == turn.number)
      return stuck(p, 1, slot ? 0 : 1, 0, 0);
  for (uint32_t b = 0; b < turn.rows; ++b) {
    bool computes = turn.start[b] < turn.known[b];
    for (uint32_t i = turn.known[b]; computes && i < turn.limit[b]; ++i) {
      p.ids[b * p.idStride + i] = int32_t(i);
      if (!f.old)
        p.hostIds[b * p.idStride + i] = int32_t(i);
    }
    p.status->rowLength[b] =
        (computes ? turn.limit[b] : turn.known[b]) + f.extraLength;
    float *logits = reinterpret_cast<float *>(p.arena + f.logitsOffset) +
                    uint64_t(b) * f.vocab;
    for (uint32_t v = 0; p.writeLogits && computes && v < f.vocab; ++v)
      logits[v] = 1000.0f * float(b) + float(turn.start[b]) + float(v) / 1024;
  }
  if (p.steps && !f.timeless) {
    uint64_t took = noteSteps(p, turn);
    if (!p.benchSteps) // a request's time is the host's
      std::this_thread::sleep_for(std::chrono::nanoseconds(took));
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(f.turnMs));
  if (p.trace)
    noteTrace(p);
  std::atomic_ref(p.status->done).store(turn.number);
}

/// A decode kernel that stays: its thread, and whether that has ended.
std::thread kernel;
std::atomic<bool> kernelEnded;

/// The rows of a launch.
Turn firstTurn(const DecodeParams &p) {
  Turn turn{p.launchId,           p.rows, {}, {}, {}, p.eosId,
            p.inverseTemperature, p.seed};
  std::copy(p.start, std::end(p.start), turn.start);
  std::copy(p.known, std::end(p.known), turn.known);
  std::copy(p.limit, std::end(p.limit), turn.limit);
  return turn;
}

void stay(const DecodeParams &p) {
  for (Turn turn = firstTurn(p);;) {
    decode(p, turn);
    if (fake().silent || p.status->code)
      break;
    uint32_t &number = const_cast<Turn *>(p.mailbox)->number;
    while (std::atomic_ref(number).load() != turn.number + 1)
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    turn = *p.mailbox;
    if (turn.rows == 0)
      break;
    for (uint32_t b = 0; b < turn.rows; ++b)
      std::copy(p.hostIds + b * p.idStride + turn.start[b],
                p.hostIds + b * p.idStride + turn.known[b],
                p.ids + b * p.idStride + turn.start[b]);
  }
  kernelEnded = true;
}

bool staying() {
  if (kernel.joinable() && kernelEnded)
    kernel.join();
  return kernel.joinable();
}

/// Whether a kernel that stays has done the last turn that it was given.
bool reported(const DecodeParams &p) {
  uint32_t &posted = const_cast<Turn *>(p.mailbox)->number;
  return std::atomic_ref(p.status->done).load() >=
         std::max(p.launchId, std::atomic_ref(posted).load());
}

/// Whether the device comes to what waits for it. Where a real call would never
/// return, one of the stand-in's fails after a while.
bool comesToIt() {
  for (int i = 0; staying() && i < 20'000; ++i)
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  return !staying();
}

/// Whether the kernel may read all that it is asked to.
bool stream(const StreamParams &p, unsigned blocks) {
  ++fake().streams;
  fake().lastStream = p;
  return isAllocated(DevicePtr(p.data), blocks * p.bytesPerBlock) &&
         isAllocated(DevicePtr(p.sink), sizeof(uint32_t));
}

} // namespace

extern "C" {

FakeCuda *grokFakeCuda() { return &fake(); }

Result cuInit(unsigned) {
  ENTER(false);
  if (fake().devices == 0)
    return kNoDevice;
  initialized = true;
  return 0;
}

Result cuDriverGetVersion(int *version) {
  ENTER(false);
  *version = fake().driverVersion;
  return 0;
}

Result cuGetErrorName(Result result, const char **name) {
  *name = result == kOutOfMemory ? "CUDA_ERROR_OUT_OF_MEMORY"
                                 : "CUDA_ERROR_OF_THE_STAND_IN";
  return 0;
}

Result cuGetErrorString(Result, const char **text) {
  *text = "as the test asked";
  return 0;
}

Result cuDeviceGetCount(int *count) {
  ENTER(false);
  *count = fake().devices;
  return 0;
}

Result cuDeviceGet(Device *device, int ordinal) {
  ENTER(false);
  *device = ordinal;
  return 0;
}

Result cuDeviceGetName(char *name, int bytes, Device) {
  ENTER(false);
  std::snprintf(name, size_t(bytes), "Stand-In 9000");
  return 0;
}

Result cuDeviceGetAttribute(int *value, Attribute attribute, Device) {
  ENTER(false);
  switch (attribute) {
  case kClockRateKHz:
    *value = 1980000;
    return 0;
  case kSmCount:
    *value = fake().smCount;
    return 0;
  case kMemoryClockKHz:
    *value = 3201000;
    return 0;
  case kMemoryBusBits:
    *value = 6144;
    return 0;
  case kL2Bytes:
    *value = 62914560;
    return 0;
  case kComputeMajor:
    *value = fake().major;
    return 0;
  case kComputeMinor:
    *value = fake().minor;
    return 0;
  case kCooperativeLaunch:
    *value = fake().cooperative;
    return 0;
  case kSharedBytesPerBlock:
    *value = fake().sharedBytes;
    return 0;
  }
  return kInvalidValue;
}

Result cuDeviceTotalMem_v2(size_t *bytes, Device) {
  ENTER(false);
  *bytes = size_t(fake().memoryMegabytes) << 20;
  return 0;
}

Result cuDeviceGetPCIBusId(char *address, int bytes, Device) {
  ENTER(false);
  std::snprintf(address, size_t(bytes), "0000:3B:00.0");
  return 0;
}

Result cuDevicePrimaryCtxRetain(Context *context, Device) {
  ENTER(false);
  ++fake().contexts;
  *context = reinterpret_cast<Context>(&fake());
  return 0;
}

Result cuDevicePrimaryCtxRelease_v2(Device) {
  --fake().contexts;
  return freed();
}

Result cuCtxSetCurrent(Context context) {
  ENTER(false);
  current = context != nullptr;
  return 0;
}

Result cuMemGetInfo_v2(size_t *available, size_t *total) {
  ENTER(true);
  *available = (size_t(fake().freeMegabytes) << 20) - size_t(fake().bytes);
  *total = size_t(fake().memoryMegabytes) << 20;
  return 0;
}

Result cuMemAlloc_v2(DevicePtr *address, size_t bytes) {
  ENTER(true);
  void *block = bytes ? std::calloc(bytes, 1) : nullptr;
  if (!block)
    return bytes ? kOutOfMemory : kInvalidValue;
  *address = reinterpret_cast<DevicePtr>(block);
  memory()[*address] = bytes;
  ++fake().allocations;
  fake().bytes += int64_t(bytes);
  return 0;
}

Result cuMemFree_v2(DevicePtr address) {
  auto block = memory().find(address);
  if (!current || block == memory().end() || !comesToIt())
    return current ? kInvalidValue : kNoContext;
  --fake().allocations;
  fake().bytes -= int64_t(block->second);
  memory().erase(block);
  std::free(reinterpret_cast<void *>(address));
  return freed();
}

Result cuMemHostAlloc(void **address, size_t bytes, unsigned flags) {
  ENTER(true);
  if (flags != kHostAllocMapped)
    return kInvalidValue;
  *address = std::calloc(bytes, 1);
  ++fake().hostAllocations;
  return 0;
}

Result cuMemFreeHost(void *address) {
  if (!current || !comesToIt())
    return kNoContext;
  std::free(address);
  --fake().hostAllocations;
  return freed();
}

Result cuMemHostGetDevicePointer_v2(DevicePtr *address, void *host, unsigned) {
  ENTER(true);
  *address = reinterpret_cast<DevicePtr>(host);
  return 0;
}

Result cuMemcpyHtoD_v2(DevicePtr to, const void *from, size_t bytes) {
  ENTER_AND_WAIT();
  if (!isAllocated(to, bytes))
    return kInvalidValue;
  std::memcpy(reinterpret_cast<void *>(to), from, bytes);
  return 0;
}

Result cuMemcpyDtoH_v2(void *to, DevicePtr from, size_t bytes) {
  ENTER_AND_WAIT();
  if (!isAllocated(from, bytes))
    return kInvalidValue;
  std::memcpy(to, reinterpret_cast<const void *>(from), bytes);
  return 0;
}

Result cuMemsetD8_v2(DevicePtr to, unsigned char value, size_t bytes) {
  ENTER_AND_WAIT();
  if (!isAllocated(to, bytes))
    return kInvalidValue;
  std::memset(reinterpret_cast<void *>(to), value, bytes);
  ++fake().clears;
  fake().lastClear = bytes;
  return 0;
}

Result cuModuleLoadDataEx(Module *module, const void *ptx, unsigned count,
                          JitOption *options, void **values) {
  ENTER(true);
  bool decodes = std::strstr(static_cast<const char *>(ptx), "grok_decode");
  if (decodes && fake().jitResult) {
    for (unsigned i = 0; i < count; ++i)
      if (options[i] == kJitErrorLog)
        std::strcpy(static_cast<char *>(values[i]),
                    "ptxas: line 7: what the compiler did not like");
    return fake().jitResult;
  }
  ++fake().modules;
  *module = reinterpret_cast<Module>(&fake().modules);
  return 0;
}

Result cuModuleUnload(Module) {
  if (!current)
    return kNoContext;
  --fake().modules;
  return freed();
}

Result cuModuleGetFunction(Function *function, Module, const char *name) {
  ENTER(true);
  if (std::string_view(name).starts_with(kPrefill)) {
    *function = reinterpret_cast<Function>(&prefillKernel);
    return 0;
  }
  for (Kernel &kernel : kernels)
    if (kernel.name == name) {
      *function = reinterpret_cast<Function>(&kernel);
      return 0;
    }
  return kNotFound;
}

Result cuFuncSetAttribute(Function, int attribute, int value) {
  ENTER(true);
  return attribute == kFunctionDynamicShared && value <= fake().sharedBytes
             ? 0
             : kInvalidValue;
}

Result cuLaunchKernel(Function function, unsigned blocks, unsigned, unsigned,
                      unsigned threads, unsigned, unsigned, unsigned, Stream,
                      void **parameters, void **) {
  ENTER_AND_WAIT();
  if (reinterpret_cast<Kernel *>(function)->name == kPrefill)
    return 0;
  if (reinterpret_cast<Kernel *>(function)->name == "grok_stream")
    return stream(*static_cast<const StreamParams *>(parameters[0]), blocks)
               ? 0
               : kInvalidValue;
  if (reinterpret_cast<Kernel *>(function)->name != "grok_fill" ||
      threads != grok::abi::kFillThreads)
    return kInvalidValue;
  ++fake().fills;
  return 0;
}

Result cuLaunchCooperativeKernel(Function function, unsigned blocks, unsigned,
                                 unsigned, unsigned, unsigned, unsigned,
                                 unsigned sharedBytes, Stream,
                                 void **parameters) {
  ENTER_AND_WAIT();
  if (int(blocks) != fake().smCount || int(sharedBytes) > fake().sharedBytes)
    return kInvalidValue;
  if (reinterpret_cast<Kernel *>(function)->name == "grok_decode") {
    const auto &p = *static_cast<const DecodeParams *>(parameters[0]);
    ++fake().decodes;
    fake().lastDecode = p;
    if (!p.mailbox) {
      decode(p, firstTurn(p));
      return 0;
    }
    kernelEnded = false;
    kernel = std::thread(stay, p);
    return 0;
  }
  // The numbers of SMs have gaps and come in no order.
  uint32_t *out = *static_cast<uint32_t **>(parameters[0]);
  for (unsigned i = 0; i < blocks; ++i)
    out[i] = 2 * (blocks - 1 - i) + 1;
  return 0;
}

/// It answers after the turn in progress: how often it is asked must not depend
/// on the machine, for every call is failed in turn.
Result cuStreamQuery(Stream) {
  ENTER(true);
  const DecodeParams &p = fake().lastDecode;
  while (staying() && !reported(p))
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  return staying() ? kNotReady : 0;
}

#ifndef GROK_FAKE_CUDA_OLD // a driver from before this function
Result cuCtxSynchronize() {
  ENTER_AND_WAIT();
  return 0;
}
#endif

} // extern "C"
