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
#include "runtime/bundle/Sha256.h"
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
  /// One that is there, written up to `prefix` if the order is ascending.
  absl::Status reopen(uint64_t prefix);

  /// Bytes a second that the disk takes, measured on the blob's own space
  /// before anything is written.
  absl::StatusOr<double> measure();

  absl::Status write(uint64_t offset, std::span<const uint8_t> bytes);
  /// Calls `then` once everything that was written so far is on the disk.
  absl::Status sync(std::function<absl::Status()> then);
  /// Everything is on the disk; the SHA-256.
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
  void hashZeros(uint64_t until);
  absl::Status hashFile(uint64_t bytes);

  const std::string path_;
  const uint64_t bytes_;
  const Order order_;
  int file_ = -1;
  std::mutex freeMutex_;
  std::vector<std::unique_ptr<Piece>> free_; // memory that is used again
  std::shared_ptr<Piece> piece_;             // being filled
  Sha256 hash_;
  uint64_t hashed_ = 0; // bytes
  Worker hasher_, writer_;
};

} // namespace grok
