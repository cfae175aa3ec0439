// The hash of a blob: the SHA-256 of the lower-case hex SHA-256s of its chunks,
// one after the other. Chunks are hashed side by side, and what was hashed
// stays hashed when packing goes on after a kill.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/bundle/Sha256.h"

namespace grok {

/// Bytes of a chunk; the last one may be shorter.
inline constexpr uint64_t kHashChunkBytes = uint64_t(16) << 20;

/// By the chunk's number.
using ChunkHashes = std::map<uint64_t, std::string>;

/// Of chunks' hashes.
absl::StatusOr<std::string> blobHash(std::span<const std::string> chunks);

/// Chunks of a blob of `bytes` bytes.
constexpr uint64_t chunkCount(uint64_t bytes) {
  return bytes / kHashChunkBytes + (bytes % kHashChunkBytes != 0);
}
/// One chunk of a blob of `bytes` bytes that is open for reading; `path` is for
/// messages. An error if the file is shorter.
absl::StatusOr<std::string> hashBlobChunk(int file, const std::string &path,
                                          uint64_t bytes, uint64_t chunk);
/// Several, in their order, on all cores. `progress` gets the bytes that are
/// done, from one thread at a time.
absl::StatusOr<std::vector<std::string>>
hashBlobChunks(int file, const std::string &path, uint64_t bytes,
               std::span<const uint64_t> chunks,
               const std::function<void(uint64_t)> &progress = {});

/// Of a file of `bytes` bytes, on all cores. `progress` gets the bytes that are
/// done, from one thread at a time. An error if the file is shorter.
absl::StatusOr<std::string>
hashBlobFile(const std::string &path, uint64_t bytes,
             const std::function<void(uint64_t)> &progress = {});

} // namespace grok
