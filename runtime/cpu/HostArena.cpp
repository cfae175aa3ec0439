#include "runtime/cpu/HostArena.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_format.h"

namespace grok::cpu {

absl::StatusOr<HostArena> HostArena::map(uint64_t bytes) {
  void *data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED)
    return absl::ResourceExhaustedError(absl::StrFormat(
        "cannot map %d bytes of memory: %s", bytes, std::strerror(errno)));
  madvise(data, bytes,
          MADV_HUGEPAGE); // a hint; refusing it changes nothing but speed
  HostArena arena;
  arena.data_ = static_cast<uint8_t *>(data);
  arena.bytes_ = bytes;
  return arena;
}

HostArena::HostArena(HostArena &&other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)) {}

HostArena &HostArena::operator=(HostArena &&other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

HostArena::~HostArena() {
  if (data_)
    munmap(data_, bytes_);
}

} // namespace grok::cpu
