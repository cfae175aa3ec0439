#include "runtime/cuda/DriverApi.h"

#include <cstdlib>
#include <dlfcn.h>

#include "absl/strings/str_format.h"
#include "runtime/bundle/SharedLibrary.h"

namespace grok::cuda {
namespace {

/// Fills in `api` from an open library.
absl::Status start(DriverApi &api, void *library, const char *name) {
#define GROK_CUDA_RESOLVE(member, exported, parameters)                        \
  api.member =                                                                 \
      reinterpret_cast<Result(*) parameters>(dlsym(library, #exported));       \
  if (!api.member)                                                             \
    return absl::FailedPreconditionError(                                      \
        absl::StrFormat("%s: symbol %s not found; the CUDA driver is too old", \
                        name, #exported));
  GROK_CUDA_SYMBOLS(GROK_CUDA_RESOLVE)
#undef GROK_CUDA_RESOLVE
#define GROK_CUDA_FIND(member, exported, parameters)                           \
  api.member =                                                                 \
      reinterpret_cast<Result(*) parameters>(dlsym(library, #exported));
  GROK_CUDA_LATER_SYMBOLS(GROK_CUDA_FIND)
#undef GROK_CUDA_FIND
  if (Result result = api.init(0); result == kNoDevice)
    return absl::UnavailableError(
        "the CUDA driver finds no GPU; run on the CPU");
  else if (result != 0)
    return absl::UnavailableError(
        absl::StrFormat("the CUDA driver does not start: %s",
                        api.check(result, "cuInit").message()));
  return api.check(api.driverGetVersion(&api.version), "driverGetVersion");
}

const char *driverName() {
  const char *name = std::getenv("GROK_CUDA_DRIVER");
  return name ? name : "libcuda.so.1";
}

} // namespace

absl::StatusOr<DriverApi> DriverApi::open(const char *name) {
  absl::StatusOr<void *> library = openLibrary(name);
  if (!library.ok())
    return absl::UnavailableError(absl::StrFormat(
        "no CUDA driver: %s; install the driver of the GPU, or run on the CPU",
        library.status().message()));
  DriverApi api;
  if (absl::Status status = start(api, *library, name); !status.ok()) {
    dlclose(*library);
    return status;
  }
  return api;
}

absl::StatusOr<const DriverApi *> DriverApi::get() {
  static const absl::StatusOr<DriverApi> api = open(driverName());
  if (!api.ok())
    return api.status();
  return &*api;
}

absl::Status DriverApi::check(Result result, const char *call) const {
  if (result == 0)
    return absl::OkStatus();
  const char *name = nullptr, *text = nullptr;
  if (getErrorName(result, &name) != 0 || !name)
    name = "unknown error";
  if (getErrorString(result, &text) != 0 || !text)
    text = "no description";
  std::string message = absl::StrFormat(
      "CUDA driver: %s failed with %s (%d): %s", call, name, result, text);
  return result == kOutOfMemory ? absl::ResourceExhaustedError(message)
                                : absl::InternalError(message);
}

} // namespace grok::cuda
