// Memory for chunks of a blob that are being filled, hashed or written, used
// again and again: a system gives new memory page by page.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace grok {

class ChunkPool {
public:
  /// Of kHashChunkBytes, at the start of a page; back in the pool when the last
  /// one lets go of it, of any thread.
  using Memory = std::shared_ptr<uint8_t>;

  /// `most`: chunks that are out at a time.
  explicit ChunkPool(size_t most);
  ChunkPool(const ChunkPool &) = delete;

  /// What an earlier chunk left in it is still there. Waits while all is out,
  /// unless `held` chunks are and the caller holds them itself: null then.
  Memory take(size_t held);

private:
  struct Free {
    void operator()(uint8_t *memory) const;
  };
  using Owned = std::unique_ptr<uint8_t, Free>;
  static Owned allocate();
  void giveBack(Owned memory);

  const size_t most_;
  std::mutex mutex_;
  std::condition_variable changed_;
  size_t out_ = 0;
  std::vector<Owned> free_;
};

} // namespace grok
