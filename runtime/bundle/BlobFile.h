// weights.blob while it is written: chunk by chunk, hashed and written by
// threads of their own, so that the packer waits for neither.
//
// A chunk is filled in memory, and goes to the disk past the system's cache,
// whose new memory would cost more than the writing. Only if more chunks are
// begun than there is memory for, the rest is written to the file as it comes,
// and read once more for its hash.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/bundle/BlobHash.h"
#include "runtime/bundle/ChunkPool.h"
#include "runtime/bundle/Worker.h"

namespace grok {

class BlobFile {
public:
  /// `chunksInMemory`: how many there may be.
  BlobFile(std::string path, uint64_t bytes, size_t chunksInMemory);
  ~BlobFile();
  BlobFile(const BlobFile &) = delete;

  /// A new file with room for the blob.
  absl::Status create();
  /// One that is there. Of the chunks that an earlier run knew, those are kept
  /// that still have their hash. The number of those that have another.
  absl::StatusOr<size_t> reopen(const ChunkHashes &chunks);
  /// Whether bytes lie in chunks that reopen() kept.
  bool holds(uint64_t offset, uint64_t bytes) const;
  /// Announces bytes that will be written, before any is. All others are 0.
  void expect(uint64_t offset, uint64_t bytes);

  /// Bytes a second that the disk takes, measured on the blob's own space
  /// before anything is written.
  absl::StatusOr<double> measure();

  /// Bytes that were announced; those that are kept are not written again.
  absl::Status write(uint64_t offset, std::span<const uint8_t> bytes);
  /// Takes the hashes of chunks that have become known, all of them on the
  /// disk.
  using Synced = std::function<absl::Status(const ChunkHashes &)>;
  /// Calls `then` once everything that was written so far is on the disk.
  absl::Status sync(Synced then);
  /// Everything is on the disk, and `then`, if any, was called; the blob's
  /// hash.
  absl::StatusOr<std::string> finish(const Synced &then = {});

private:
  /// Bytes for the file, of several runs one after the other: those of a matrix
  /// lie apart, and are too small for a job each.
  struct Run {
    uint64_t offset, bytes;
  };
  struct Piece {
    std::vector<Run> runs;
    ChunkPool::Memory memory;
    uint64_t bytes = 0;
  };

  void openDirect();
  uint64_t chunkBytes(uint64_t chunk) const;
  absl::Status write(uint64_t chunk, uint64_t offset,
                     std::span<const uint8_t> bytes);
  absl::StatusOr<uint8_t *> begin(uint64_t chunk);
  absl::Status end(uint64_t chunk);
  absl::Status pad(uint64_t chunk);
  absl::Status writeZeros(uint64_t chunk);
  absl::Status writeThrough(uint64_t offset, std::span<const uint8_t> bytes);
  absl::Status flush();
  // Of the threads.
  absl::Status putChunk(uint64_t chunk, const uint8_t *memory) const;
  absl::Status putPiece(const Piece &piece) const;
  void beginWriting(uint64_t chunk) const;
  absl::Status hashMemory(uint64_t chunk, const uint8_t *memory);
  absl::Status hashWritten(uint64_t chunk);
  absl::Status note(uint64_t chunk, const absl::StatusOr<std::string> &hash);

  const std::string path_;
  const uint64_t bytes_;
  int file_ = -1;
  int direct_ = -1;  // the same past the system's cache, where that is possible
  ChunkHashes kept_; // by reopen()
  std::vector<uint64_t> missing_; // bytes that a chunk still needs
  std::vector<bool> whole_;       // or kept
  ChunkPool pool_, piecePool_;
  /// Chunks that are being filled; null for those that are written through.
  std::map<uint64_t, ChunkPool::Memory> begun_;
  size_t held_ = 0;             // of them in memory
  Piece piece_;                 // being filled
  std::deque<uint64_t> hashed_; // of the hashing thread; not given back yet
  std::mutex knownMutex_;
  ChunkHashes known_, fresh_; // all, and those that no sync() has taken
  Worker hasher_, writer_;    // the second gives to the first
};

} // namespace grok
