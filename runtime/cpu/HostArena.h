// All memory of the CPU executor, mapped once when it is loaded.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"

namespace grok::cpu {

/// Zero-filled pages, given back on destruction.
class HostArena {
public:
  /// ResourceExhausted, with the number of bytes, if the system refuses.
  static absl::StatusOr<HostArena> map(uint64_t bytes);
  HostArena() = default;
  HostArena(HostArena &&other) noexcept;
  HostArena &operator=(HostArena &&other) noexcept;
  ~HostArena();

  uint8_t *data() const { return data_; }
  uint64_t bytes() const { return bytes_; }

private:
  uint8_t *data_ = nullptr;
  uint64_t bytes_ = 0;
};

/// Hands out parts of an arena that does not exist yet: first all sizes, then
/// the pointers.
class ArenaLayout {
public:
  /// Offset of `count` floats, on a cache line of their own.
  uint64_t floats(uint64_t count) { return take(count * sizeof(float)); }
  uint64_t take(uint64_t bytes) {
    uint64_t offset = total_;
    total_ = (total_ + bytes + 63) / 64 * 64;
    return offset;
  }
  uint64_t total() const { return total_; }

private:
  uint64_t total_ = 0;
};

} // namespace grok::cpu
