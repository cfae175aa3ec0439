// weights.blob while it is written. Disk and hash have threads of their own, so
// that the packer waits for neither.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/bundle/BlobHash.h"
#include "runtime/bundle/Worker.h"

namespace grok {

class BlobFile {
public:
  enum class Order {
    kAscending, // writes come in the order of their offsets
    kAny,       // chunks are hashed once all of their bytes are written
  };

  BlobFile(std::string path, uint64_t bytes, Order order);
  ~BlobFile();
  BlobFile(const BlobFile &) = delete;

  /// A new file with room for the blob; all that is not written is 0.
  absl::Status create();
  /// One that is there. Of the chunks that an earlier run knew, those are kept
  /// that still have their hash; if the order is ascending, up to the first
  /// that is missing. The number of those that have another.
  absl::StatusOr<size_t> reopen(const ChunkHashes &chunks);
  /// Whether bytes lie in chunks that reopen() kept.
  bool holds(uint64_t offset, uint64_t bytes) const;
  /// Announces bytes that will be written, before any is.
  void expect(uint64_t offset, uint64_t bytes);

  /// Bytes a second that the disk takes, measured on the blob's own space
  /// before anything is written.
  absl::StatusOr<double> measure();

  absl::Status write(uint64_t offset, std::span<const uint8_t> bytes);
  /// Takes the hashes of chunks that have become known, all of them on the
  /// disk.
  using Synced = std::function<absl::Status(const ChunkHashes &)>;
  /// Calls `then` once everything that was written so far is on the disk.
  absl::Status sync(Synced then);
  /// Everything is on the disk; the blob's hash.
  absl::StatusOr<std::string> finish();

private:
  struct Run {
    uint64_t offset, bytes;
  };
  /// Bytes of several runs, one after the other: those of a matrix lie apart,
  /// and are too small for a job each.
  struct Piece {
    std::vector<Run> runs;
    std::vector<uint8_t> bytes;
  };
  absl::Status flush();
  std::shared_ptr<Piece> newPiece();
  absl::Status put(const Piece &piece) const;
  void beginWriting(uint64_t offset, uint64_t bytes) const;
  absl::Status giveBackBehind(uint64_t end);
  absl::Status countDown(const Run &run);
  absl::Status hash(const Piece &piece);
  absl::Status hashRun(uint64_t offset, std::span<const uint8_t> bytes);
  absl::Status hashZeros(uint64_t until);
  absl::Status hashWritten(uint64_t chunk);
  absl::StatusOr<std::string> finishHash();
  absl::StatusOr<std::string> finishChunks();
  void noteChunks();
  ChunkHashes takeChunks(uint64_t end);

  const std::string path_;
  const uint64_t bytes_;
  const Order order_;
  int file_ = -1;
  std::mutex freeMutex_;
  std::vector<std::unique_ptr<Piece>> free_; // memory that is used again
  std::shared_ptr<Piece> piece_;             // being filled
  uint64_t written_ = 0;                     // end of what was given last
  ChunkHashes kept_;                         // by reopen()
  std::vector<uint64_t> missing_;            // bytes that a chunk still needs
  uint64_t givenBack_ = 0;      // kAscending; of the writing thread
  std::deque<uint64_t> hashed_; // kAny; chunks that are not given back yet
  BlobHash hash_;               // kAscending; of the hashing thread
  size_t noted_ = 0;            // chunks of hash_ that fresh_ had
  ChunkHashes known_;           // kAny; of the hashing thread
  std::mutex freshMutex_;
  ChunkHashes fresh_;      // that no sync() has taken
  Worker hasher_, writer_; // the second gives to the first
};

} // namespace grok
