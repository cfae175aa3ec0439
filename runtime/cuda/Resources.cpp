#include "runtime/cuda/Resources.h"

#include <array>

#include "absl/strings/str_format.h"

namespace grok::cuda {

absl::StatusOr<ContextOwner> ContextOwner::retain(const DriverApi &api,
                                                  int ordinal) {
  int count = 0;
  GROK_CUDA_RETURN_IF_ERROR(api, deviceGetCount, &count);
  if (count == 0)
    return absl::UnavailableError(
        "the CUDA driver finds no GPU; run on the CPU");
  if (ordinal < 0 || ordinal >= count)
    return absl::InvalidArgumentError(absl::StrFormat(
        "device cuda:%d: found %d GPU(s), expected an ordinal below that",
        ordinal, count));
  Device device = 0;
  GROK_CUDA_RETURN_IF_ERROR(api, deviceGet, &device, ordinal);
  Context context = nullptr;
  GROK_CUDA_RETURN_IF_ERROR(api, primaryContextRetain, &context, device);
  ContextOwner owner(api, device, context);
  if (absl::Status status = owner.makeCurrent(); !status.ok())
    return status;
  return owner;
}

ContextOwner::~ContextOwner() {
  if (context_)
    api_->primaryContextRelease(device_);
}

absl::Status ContextOwner::makeCurrent() const {
  return api_->check(api_->contextSetCurrent(context_), "contextSetCurrent");
}

absl::StatusOr<DeviceBuffer> DeviceBuffer::allocate(const DriverApi &api,
                                                    uint64_t bytes) {
  DeviceBuffer buffer;
  GROK_CUDA_RETURN_IF_ERROR(api, memAlloc, &buffer.address_, bytes);
  buffer.api_ = &api;
  buffer.bytes_ = bytes;
  return buffer;
}

DeviceBuffer &DeviceBuffer::operator=(DeviceBuffer &&other) noexcept {
  std::swap(api_, other.api_);
  std::swap(address_, other.address_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

DeviceBuffer::~DeviceBuffer() {
  if (api_)
    api_->memFree(address_);
}

absl::StatusOr<MappedBuffer> MappedBuffer::allocate(const DriverApi &api,
                                                    uint64_t bytes) {
  MappedBuffer buffer;
  GROK_CUDA_RETURN_IF_ERROR(api, memHostAlloc, &buffer.host_, bytes,
                            kHostAllocMapped);
  buffer.api_ = &api;
  GROK_CUDA_RETURN_IF_ERROR(api, memHostGetDevicePointer, &buffer.device_,
                            buffer.host_, 0);
  return buffer;
}

MappedBuffer &MappedBuffer::operator=(MappedBuffer &&other) noexcept {
  std::swap(api_, other.api_);
  std::swap(host_, other.host_);
  std::swap(device_, other.device_);
  return *this;
}

MappedBuffer::~MappedBuffer() {
  if (api_)
    api_->memFreeHost(host_);
}

absl::StatusOr<ModuleOwner> ModuleOwner::load(const DriverApi &api,
                                              const std::string &ptx,
                                              std::string_view name) {
  std::array<char, 16384> info{}, error{};
  std::array<JitOption, 4> options = {kJitInfoLog, kJitInfoLogBytes,
                                      kJitErrorLog, kJitErrorLogBytes};
  std::array<void *, 4> values = {
      info.data(), reinterpret_cast<void *>(info.size()), error.data(),
      reinterpret_cast<void *>(error.size())};
  ModuleOwner owner;
  Result result = api.moduleLoad(&owner.module_, ptx.c_str(), options.size(),
                                 options.data(), values.data());
  if (result == kUnsupportedPtxVersion)
    return absl::FailedPreconditionError(
        absl::StrFormat("%s: the driver, for CUDA %d.%d, does not know this "
                        "PTX version; update the driver",
                        name, api.version / 1000, api.version % 1000 / 10));
  if (absl::Status status = api.check(result, "moduleLoad"); !status.ok())
    return absl::Status(
        status.code(),
        absl::StrFormat("%s: %s; the driver's compiler says: %s%s", name,
                        status.message(), error.data(), info.data()));
  owner.api_ = &api;
  return owner;
}

ModuleOwner &ModuleOwner::operator=(ModuleOwner &&other) noexcept {
  std::swap(api_, other.api_);
  std::swap(module_, other.module_);
  return *this;
}

ModuleOwner::~ModuleOwner() {
  if (api_)
    api_->moduleUnload(module_);
}

absl::StatusOr<Function> ModuleOwner::function(const char *name) const {
  Function function = nullptr;
  if (absl::Status status =
          api_->check(api_->moduleGetFunction(&function, module_, name),
                      "moduleGetFunction");
      !status.ok())
    return absl::Status(status.code(), absl::StrFormat("kernel %s: %s", name,
                                                       status.message()));
  return function;
}

} // namespace grok::cuda
