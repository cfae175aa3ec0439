// The part of the CUDA driver API that the runtime uses, declared here so that
// no toolkit is needed: libcuda.so.1 is opened at run time and its symbols are
// resolved once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace grok::cuda {

using Result = int; // CUresult; 0 is success
using Device = int;
using DevicePtr = unsigned long long;
using Context = struct ContextHandle *;
using Module = struct ModuleHandle *;
using Function = struct FunctionHandle *;
using Stream = struct StreamHandle *;

/// Device attributes by their numbers in the driver's ABI.
enum Attribute : int {
  kClockRateKHz = 13,
  kSmCount = 16,
  kMemoryClockKHz = 36,
  kMemoryBusBits = 37,
  kL2Bytes = 38,
  kComputeMajor = 75,
  kComputeMinor = 76,
  kCooperativeLaunch = 95,
  kSharedBytesPerBlock = 97, // with the opt-in
};
inline constexpr int kFunctionDynamicShared =
    8; // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
inline constexpr unsigned kHostAllocMapped = 2; // CU_MEMHOSTALLOC_DEVICEMAP
inline constexpr Result kOutOfMemory = 2, kNoDevice = 100,
                        kUnsupportedPtxVersion = 222, kNotReady = 600;
/// JIT options of cuModuleLoadDataEx.
enum JitOption : int {
  kJitInfoLog = 3,
  kJitInfoLogBytes = 4,
  kJitErrorLog = 5,
  kJitErrorLogBytes = 6
};

/// CUlaunchAttribute and CUlaunchConfig of the driver's ABI.
struct LaunchAttribute {
  int id;
  int padding;
  union {
    int allowed;
    char bytes[64];
  } value;
};
/// A launch's blocks may start when those of the launch before it end; its
/// kernel waits for that one's results by itself.
inline constexpr int kLaunchOverlaps =
    6; // CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
struct LaunchConfig {
  unsigned grid[3], block[3], sharedBytes;
  Stream stream;
  LaunchAttribute *attributes;
  unsigned attributeCount;
};

/// X(member, exported name, parameters): every symbol that is resolved.
#define GROK_CUDA_SYMBOLS(X)                                                   \
  X(init, cuInit, (unsigned))                                                  \
  X(driverGetVersion, cuDriverGetVersion, (int *))                             \
  X(getErrorName, cuGetErrorName, (Result, const char **))                     \
  X(getErrorString, cuGetErrorString, (Result, const char **))                 \
  X(deviceGetCount, cuDeviceGetCount, (int *))                                 \
  X(deviceGet, cuDeviceGet, (Device *, int))                                   \
  X(deviceGetName, cuDeviceGetName, (char *, int, Device))                     \
  X(deviceGetAttribute, cuDeviceGetAttribute, (int *, Attribute, Device))      \
  X(deviceTotalMem, cuDeviceTotalMem_v2, (size_t *, Device))                   \
  X(deviceGetPciBusId, cuDeviceGetPCIBusId, (char *, int, Device))             \
  X(primaryContextRetain, cuDevicePrimaryCtxRetain, (Context *, Device))       \
  X(primaryContextRelease, cuDevicePrimaryCtxRelease_v2, (Device))             \
  X(contextSetCurrent, cuCtxSetCurrent, (Context))                             \
  X(memGetInfo, cuMemGetInfo_v2, (size_t *, size_t *))                         \
  X(memAlloc, cuMemAlloc_v2, (DevicePtr *, size_t))                            \
  X(memFree, cuMemFree_v2, (DevicePtr))                                        \
  X(memHostAlloc, cuMemHostAlloc, (void **, size_t, unsigned))                 \
  X(memFreeHost, cuMemFreeHost, (void *))                                      \
  X(memHostGetDevicePointer, cuMemHostGetDevicePointer_v2,                     \
    (DevicePtr *, void *, unsigned))                                           \
  X(copyToDevice, cuMemcpyHtoD_v2, (DevicePtr, const void *, size_t))          \
  X(copyToHost, cuMemcpyDtoH_v2, (void *, DevicePtr, size_t))                  \
  X(memsetD8, cuMemsetD8_v2, (DevicePtr, unsigned char, size_t))               \
  X(moduleLoad, cuModuleLoadDataEx,                                            \
    (Module *, const void *, unsigned, JitOption *, void **))                  \
  X(moduleUnload, cuModuleUnload, (Module))                                    \
  X(moduleGetFunction, cuModuleGetFunction,                                    \
    (Function *, Module, const char *))                                        \
  X(functionSetAttribute, cuFuncSetAttribute, (Function, int, int))            \
  X(launchKernel, cuLaunchKernel,                                              \
    (Function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,     \
     unsigned, Stream, void **, void **))                                      \
  X(launchCooperative, cuLaunchCooperativeKernel,                              \
    (Function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,     \
     unsigned, Stream, void **))                                               \
  X(contextSynchronize, cuCtxSynchronize, ())                                  \
  X(streamQuery, cuStreamQuery, (Stream))
/// Those that drivers before 11.8 lack: null then.
#define GROK_CUDA_LATER_SYMBOLS(X)                                             \
  X(launchKernelEx, cuLaunchKernelEx,                                          \
    (const LaunchConfig *, Function, void **, void **))

/// The resolved symbols. A library that was opened is never unloaded.
struct DriverApi {
#define GROK_CUDA_MEMBER(member, exported, parameters)                         \
  Result(*member) parameters = nullptr;
  GROK_CUDA_SYMBOLS(GROK_CUDA_MEMBER)
  GROK_CUDA_LATER_SYMBOLS(GROK_CUDA_MEMBER)
#undef GROK_CUDA_MEMBER
  int version = 0; // 1000 * major + 10 * minor of the CUDA version that the
                   // driver supports

  /// Opens a library and calls cuInit. Unavailable when there is no driver or
  /// no device, FailedPrecondition when a symbol is missing because the driver
  /// is too old.
  static absl::StatusOr<DriverApi> open(const char *library);

  /// The process's driver, opened once: libcuda.so.1, or the file that
  /// GROK_CUDA_DRIVER names. Errors as open().
  static absl::StatusOr<const DriverApi *> get();

  /// Ok for 0; else Internal (ResourceExhausted for out of memory) with the
  /// call, the error's name and its text.
  absl::Status check(Result result, const char *call) const;
};

/// Evaluates a driver call and returns its status from the enclosing function
/// on failure.
#define GROK_CUDA_RETURN_IF_ERROR(api, call, ...)                              \
  if (absl::Status grokStatus = (api).check((api).call(__VA_ARGS__), #call);   \
      !grokStatus.ok())                                                        \
  return grokStatus

} // namespace grok::cuda
