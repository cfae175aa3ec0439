#include "runtime/bundle/ChunkPool.h"

#include <cstdlib>
#include <new>
#include <utility>

#include <sys/mman.h>

#include "runtime/bundle/BlobHash.h"

namespace grok {
namespace {

constexpr size_t kLargePageBytes = size_t(2) << 20;

} // namespace

void ChunkPool::Free::operator()(uint8_t *memory) const { std::free(memory); }

ChunkPool::ChunkPool(size_t most) : most_(most) {
  free_.reserve(most); // what gives memory back must not need any
}

ChunkPool::Memory ChunkPool::take(size_t held) {
  Owned memory;
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return out_ < most_ || out_ == held; });
    if (out_ == most_)
      return nullptr;
    if (free_.empty()) {
      memory = allocate();
    } else {
      memory = std::move(free_.back());
      free_.pop_back();
    }
    ++out_;
  }
  return {memory.release(), [this](uint8_t *done) { giveBack(Owned(done)); }};
}

ChunkPool::Owned ChunkPool::allocate() {
  Owned memory(static_cast<uint8_t *>(
      std::aligned_alloc(kLargePageBytes, kHashChunkBytes)));
  if (!memory)
    throw std::bad_alloc();
  // Only advice: small pages do as well.
  ::madvise(memory.get(), kHashChunkBytes, MADV_HUGEPAGE);
  return memory;
}

void ChunkPool::giveBack(Owned memory) {
  std::lock_guard lock(mutex_);
  --out_;
  free_.push_back(std::move(memory));
  changed_.notify_all();
}

} // namespace grok
