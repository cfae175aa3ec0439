// Owners of what the driver hands out; each frees in its destructor, in the
// context that is current then.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "runtime/cuda/DriverApi.h"

namespace grok::cuda {

/// The device's primary context, current in the calling thread while in use.
class ContextOwner {
public:
  static absl::StatusOr<ContextOwner> retain(const DriverApi &api, int ordinal);
  ContextOwner(ContextOwner &&other) noexcept
      : api_(other.api_), device_(other.device_),
        context_(std::exchange(other.context_, nullptr)) {}
  ContextOwner &operator=(ContextOwner &&) = delete;
  ~ContextOwner();
  Device device() const { return device_; }
  absl::Status makeCurrent() const;

private:
  ContextOwner(const DriverApi &api, Device device, Context context)
      : api_(&api), device_(device), context_(context) {}
  const DriverApi *api_;
  Device device_;
  Context context_;
};

/// Device memory.
class DeviceBuffer {
public:
  DeviceBuffer() = default;
  static absl::StatusOr<DeviceBuffer> allocate(const DriverApi &api,
                                               uint64_t bytes);
  DeviceBuffer(DeviceBuffer &&other) noexcept { *this = std::move(other); }
  DeviceBuffer &operator=(DeviceBuffer &&other) noexcept;
  ~DeviceBuffer();
  DevicePtr address() const { return address_; }
  uint64_t bytes() const { return bytes_; }
  template <class T> T *as(uint64_t offset = 0) const {
    return reinterpret_cast<T *>(address_ + offset);
  }

private:
  const DriverApi *api_ = nullptr;
  DevicePtr address_ = 0;
  uint64_t bytes_ = 0;
};

/// Host memory that the device can read and write.
class MappedBuffer {
public:
  MappedBuffer() = default;
  static absl::StatusOr<MappedBuffer> allocate(const DriverApi &api,
                                               uint64_t bytes);
  MappedBuffer(MappedBuffer &&other) noexcept { *this = std::move(other); }
  MappedBuffer &operator=(MappedBuffer &&other) noexcept;
  ~MappedBuffer();
  template <class T> T *host() const { return static_cast<T *>(host_); }
  template <class T> T *device() const {
    return reinterpret_cast<T *>(device_);
  }

private:
  const DriverApi *api_ = nullptr;
  void *host_ = nullptr;
  DevicePtr device_ = 0;
};

/// A module compiled from PTX by the driver; the error of a failed load carries
/// the JIT's log.
class ModuleOwner {
public:
  ModuleOwner() = default;
  static absl::StatusOr<ModuleOwner>
  load(const DriverApi &api, const std::string &ptx, std::string_view name);
  ModuleOwner(ModuleOwner &&other) noexcept { *this = std::move(other); }
  ModuleOwner &operator=(ModuleOwner &&other) noexcept;
  ~ModuleOwner();
  absl::StatusOr<Function> function(const char *name) const;

private:
  const DriverApi *api_ = nullptr;
  Module module_ = nullptr;
};

} // namespace grok::cuda
