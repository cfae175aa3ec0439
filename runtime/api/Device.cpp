#include "runtime/api/Device.h"

#include <charconv>
#include <string_view>

#include "absl/strings/str_cat.h"

namespace grok {
namespace {

absl::Status unknownDevice(const std::string &device, const char *expected) {
  return absl::InvalidArgumentError(
      absl::StrCat("device: found '", device, "', expected ", expected));
}

#ifdef GROK_HAVE_CUDA
absl::StatusOr<std::unique_ptr<Executor>>
openCuda(const Bundle &bundle, const LoadLimits &limits, int ordinal) {
  return createCudaExecutor(bundle, limits, ordinal);
}
#else
absl::Status noCuda() {
  return absl::UnavailableError(
      "found a build without CUDA support, expected one with it");
}
absl::StatusOr<std::unique_ptr<Executor>> openCuda(const Bundle &,
                                                   const LoadLimits &, int) {
  return noCuda();
}
#endif

/// True if the reason is the machine's, so that "auto" may take the CPU.
bool deviceDoesNotFit(const absl::Status &status) {
  return absl::IsUnavailable(status) || absl::IsNotFound(status) ||
         absl::IsFailedPrecondition(status) ||
         absl::IsResourceExhausted(status);
}

} // namespace

absl::StatusOr<int> cudaOrdinal(const std::string &device) {
  constexpr std::string_view kPrefix = "cuda:";
  std::string_view text = device;
  int ordinal = 0;
  if (text.substr(0, kPrefix.size()) != kPrefix)
    return unknownDevice(device, "cuda:N");
  text.remove_prefix(kPrefix.size());
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), ordinal);
  if (error != std::errc() || end != text.data() + text.size() || ordinal < 0)
    return unknownDevice(device, "cuda:N with N from 0");
  return ordinal;
}

absl::StatusOr<std::unique_ptr<Executor>>
openExecutor(const Bundle &bundle, const std::string &device,
             const LoadLimits &limits) {
  if (device == "cpu")
    return createCpuExecutor(bundle, limits);
  if (device != "auto") {
    if (device.rfind("cuda", 0) != 0)
      return unknownDevice(device, "auto, cpu or cuda:N");
    absl::StatusOr<int> ordinal = cudaOrdinal(device);
    if (!ordinal.ok())
      return ordinal.status();
    return openCuda(bundle, limits, *ordinal);
  }
  if (bundle.hasFile("decode.ptx")) {
    absl::StatusOr<std::unique_ptr<Executor>> gpu = openCuda(bundle, limits, 0);
    if (gpu.ok() || !deviceDoesNotFit(gpu.status()))
      return gpu;
  }
  return createCpuExecutor(bundle, limits);
}

absl::StatusOr<std::string> probeTarget(const std::string &device) {
  absl::StatusOr<int> ordinal = cudaOrdinal(device);
  if (!ordinal.ok())
    return ordinal.status();
#ifdef GROK_HAVE_CUDA
  return probeCudaTarget(*ordinal);
#else
  return noCuda();
#endif
}

} // namespace grok
