// weights.blob while it is written. Disk and hash have threads of their own, so
// that the packer waits for neither.
#pragma once

#include <cstdint>
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
    kAny,       // the hash is taken when all is written
  };

  BlobFile(std::string path, uint64_t bytes, Order order);
  ~BlobFile();
  BlobFile(const BlobFile &) = delete;

  /// A new file with room for the blob; all that is not written is 0.
  absl::Status create();
  /// One that is there, written up to `prefix` if the order is ascending, with
  /// the hashes that are known of its first chunks.
  absl::Status reopen(uint64_t prefix, std::vector<std::string> chunks);

  /// Bytes a second that the disk takes, measured on the blob's own space
  /// before anything is written.
  absl::StatusOr<double> measure();

  absl::Status write(uint64_t offset, std::span<const uint8_t> bytes);
  /// Takes the hashes of chunks that have become known, all of them on the
  /// disk.
  using Synced = std::function<absl::Status(std::span<const std::string>)>;
  /// Calls `then` once everything that was written so far is on the disk.
  absl::Status sync(Synced then);
  /// Everything is on the disk; the blob's hash.
  absl::StatusOr<std::string> finish();

private:
  struct Piece {
    uint64_t offset = 0;
    std::vector<uint8_t> bytes;
  };
  absl::Status flush();
  std::shared_ptr<Piece> newPiece();
  absl::Status put(const Piece &piece) const;
  absl::Status hash(const Piece &piece);
  absl::Status hashZeros(uint64_t until);
  absl::Status hashPrefix(uint64_t bytes);
  absl::StatusOr<std::string> finishHash();
  void noteChunks();
  std::vector<std::string> takeChunks(uint64_t written);

  const std::string path_;
  const uint64_t bytes_;
  const Order order_;
  int file_ = -1;
  std::mutex freeMutex_;
  std::vector<std::unique_ptr<Piece>> free_; // memory that is used again
  std::shared_ptr<Piece> piece_;             // being filled
  uint64_t written_ = 0;                     // end of what was given last
  BlobHash hash_;                            // of the hashing thread
  std::mutex chunksMutex_;
  std::vector<std::string> chunks_; // that hash_ has and no sync() has taken
  uint64_t chunksTaken_ = 0;
  Worker hasher_, writer_;
};

} // namespace grok
