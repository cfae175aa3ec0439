// The hash of a blob: the SHA-256 of the lower-case hex SHA-256s of its chunks,
// one after the other. Chunks are hashed side by side, and what was hashed
// stays hashed when packing goes on after a kill.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/bundle/Sha256.h"

namespace grok {

/// Bytes of a chunk; the last one may be shorter.
inline constexpr uint64_t kHashChunkBytes = uint64_t(16) << 20;

/// Of bytes that come in order.
class BlobHash {
public:
  BlobHash() = default;
  /// Goes on behind chunks whose hashes are known.
  explicit BlobHash(std::vector<std::string> chunks);

  absl::Status update(std::span<const uint8_t> bytes);
  uint64_t bytes() const { return bytes_; }
  /// Of the whole chunks so far.
  const std::vector<std::string> &chunks() const { return chunks_; }
  absl::StatusOr<std::string> finish();

private:
  absl::Status endChunk();

  std::vector<std::string> chunks_;
  std::unique_ptr<Sha256> chunk_; // the one that is not whole
  uint64_t bytes_ = 0;
};

/// Of chunks' hashes.
absl::StatusOr<std::string> blobHash(std::span<const std::string> chunks);

/// Of a file of `bytes` bytes, on all cores. `progress` gets the bytes that are
/// done, from one thread at a time. An error if the file is shorter.
absl::StatusOr<std::string>
hashBlobFile(const std::string &path, uint64_t bytes,
             const std::function<void(uint64_t)> &progress = {});
/// The same of one that is open for reading; `path` is for messages.
absl::StatusOr<std::string>
hashBlobFile(int file, const std::string &path, uint64_t bytes,
             const std::function<void(uint64_t)> &progress = {});

} // namespace grok
