// A description of the GPU that is there, in the form of a targets/ file.
#include <cctype>

#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"
#include "runtime/Executor.h"
#include "runtime/cuda/Resources.h"

namespace grok {

absl::StatusOr<std::string> probeCudaTarget(int ordinal) {
  absl::StatusOr<const cuda::DriverApi *> found = cuda::DriverApi::get();
  if (!found.ok())
    return found.status();
  const cuda::DriverApi &api = **found;
  absl::StatusOr<cuda::ContextOwner> context =
      cuda::ContextOwner::retain(api, ordinal);
  if (!context.ok())
    return context.status();
  char name[256] = {};
  GROK_CUDA_RETURN_IF_ERROR(api, deviceGetName, name, sizeof name,
                            context->device());
  size_t memory = 0;
  GROK_CUDA_RETURN_IF_ERROR(api, deviceTotalMem, &memory, context->device());
  int major = 0, minor = 0, sms = 0, shared = 0, l2 = 0, clock = 0,
      memoryClock = 0, busBits = 0;
  const std::pair<int *, cuda::Attribute> attributes[] = {
      {&major, cuda::kComputeMajor},
      {&minor, cuda::kComputeMinor},
      {&sms, cuda::kSmCount},
      {&shared, cuda::kSharedBytesPerBlock},
      {&l2, cuda::kL2Bytes},
      {&clock, cuda::kClockRateKHz},
      {&memoryClock, cuda::kMemoryClockKHz},
      {&busBits, cuda::kMemoryBusBits}};
  for (auto [value, attribute] : attributes)
    GROK_CUDA_RETURN_IF_ERROR(api, deviceGetAttribute, value, attribute,
                              context->device());

  bool hopper = major == 9 && minor == 0;
  if (major * 10 + minor < 80)
    return absl::FailedPreconditionError(
        absl::StrFormat("the GPU (%s) is sm_%d%d, expected sm_80 or later",
                        name, major, minor));
  std::string id;
  for (const char *c = name; *c; ++c)
    id += std::isalnum(static_cast<unsigned char>(*c))
              ? char(std::tolower(static_cast<unsigned char>(*c)))
              : '-';
  nlohmann::json target = {
      {"name", id},
      {"source", absl::StrFormat("probed: %s; times, efficiency and stream "
                                 "curve as measured on an H200",
                                 name)},
      {"sm", hopper ? 90 : 80},
      {"arch", hopper ? "sm_90a" : "sm_80"},
      {"ptx_version", hopper ? "8.0" : "7.1"},
      {"min_driver", hopper ? 12000 : 11010},
      {"sm_count", sms},
      {"shared_bytes_per_block", shared},
      {"memory_bytes", memory},
      {"l2_bytes", l2},
      {"bandwidth_gb_s", int64_t(2.0 * memoryClock * busBits / 8 / 1e6 +
                                 0.5)}, // double data rate
      {"clock_mhz", clock / 1000},
      {"bank_count", hopper ? 8 : 12},
      {"bank_align", 2097152},
      {"hand_over_us", 1.1},
      {"hand_over_stream_us", 2},
      {"launch_us", 7.5},
      {"launch_max_us", 55},
      {"stream_efficiency", 0.954},
      {"stream_curve",
       {{0.2045, 0.666}, {0.25, 0.745}, {0.5, 0.889}, {0.75, 0.932}, {1, 1}}},
      {"shared_bytes_per_cycle", 128},
  };
  return target.dump(2) + "\n";
}

} // namespace grok
