#include "runtime/bundle/BlobFile.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <fcntl.h>
#include <unistd.h>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/bundle/FileIO.h"

namespace grok {
namespace {

constexpr size_t kPieceBytes = size_t(1) << 20; // stays in a cache
constexpr size_t kWaitingPieces = 6;            // for each of the two threads
constexpr uint64_t kMeasuredBytes = uint64_t(64) << 20;

} // namespace

BlobFile::BlobFile(std::string path, uint64_t bytes, Order order)
    : path_(std::move(path)), bytes_(bytes), order_(order),
      hasher_(kWaitingPieces), writer_(kWaitingPieces) {
  // All pieces there can be: what frees one must not need memory.
  free_.reserve(2 * (kWaitingPieces + 2));
  piece_ = newPiece();
}

BlobFile::~BlobFile() {
  // The threads use the file until they are done; what they say is lost.
  writer_.drain().IgnoreError();
  hasher_.drain().IgnoreError();
  if (file_ >= 0)
    ::close(file_);
}

absl::Status BlobFile::create() {
  file_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file_ < 0)
    return systemError(path_, "creating", errno);
  if (absl::Status status = reserveSpace(file_, path_, bytes_); !status.ok())
    return status;
  if (::ftruncate(file_, off_t(bytes_)) != 0)
    return systemError(path_, "making room", errno);
  return absl::OkStatus();
}

absl::Status BlobFile::reopen(uint64_t prefix,
                              std::vector<std::string> chunks) {
  file_ = ::open(path_.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (file_ < 0)
    return systemError(path_, "opening", errno);
  if (order_ == Order::kAny)
    return absl::OkStatus();
  chunksTaken_ = chunks.size();
  hash_ = BlobHash(std::move(chunks));
  return hasher_.give([this, prefix] { return hashPrefix(prefix); });
}

absl::StatusOr<double> BlobFile::measure() {
  Piece zeros;
  zeros.bytes.resize(std::min(bytes_, kMeasuredBytes));
  auto begin = std::chrono::steady_clock::now();
  if (absl::Status status = put(zeros); !status.ok())
    return status;
  if (::fdatasync(file_) != 0)
    return systemError(path_, "writing", errno);
  std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  return double(zeros.bytes.size()) / std::max(took.count(), 1e-9);
}

absl::Status BlobFile::write(uint64_t offset, std::span<const uint8_t> bytes) {
  if (piece_->offset + piece_->bytes.size() != offset)
    if (absl::Status status = flush(); !status.ok())
      return status;
  if (piece_->bytes.empty())
    piece_->offset = offset;
  piece_->bytes.insert(piece_->bytes.end(), bytes.begin(), bytes.end());
  written_ = offset + bytes.size();
  return piece_->bytes.size() < kPieceBytes ? absl::OkStatus() : flush();
}

absl::Status BlobFile::flush() {
  if (piece_->bytes.empty())
    return absl::OkStatus();
  auto piece = std::exchange(piece_, newPiece());
  if (order_ == Order::kAscending)
    if (absl::Status status =
            hasher_.give([this, piece] { return hash(*piece); });
        !status.ok())
      return status;
  return writer_.give([this, piece] { return put(*piece); });
}

/// Both threads may hold it; it is free again when the last one is done.
std::shared_ptr<BlobFile::Piece> BlobFile::newPiece() {
  std::unique_ptr<Piece> piece;
  {
    std::lock_guard lock(freeMutex_);
    if (!free_.empty()) {
      piece = std::move(free_.back());
      free_.pop_back();
    }
  }
  if (!piece)
    piece = std::make_unique<Piece>();
  piece->offset = 0;
  piece->bytes.clear();
  return {piece.release(), [this](Piece *done) {
            std::lock_guard lock(freeMutex_);
            free_.emplace_back(done);
          }};
}

absl::Status BlobFile::sync(Synced then) {
  if (absl::Status status = flush(); !status.ok())
    return status;
  return writer_.give(
      [this, then = std::move(then), written = written_]() -> absl::Status {
        if (::fdatasync(file_) != 0)
          return systemError(path_, "writing", errno);
        return then(takeChunks(written));
      });
}

/// The hashes that no one has taken of chunks before byte `written`.
std::vector<std::string> BlobFile::takeChunks(uint64_t written) {
  std::lock_guard lock(chunksMutex_);
  uint64_t whole = written / kHashChunkBytes;
  size_t count = size_t(std::min<uint64_t>(
      chunks_.size(), whole > chunksTaken_ ? whole - chunksTaken_ : 0));
  std::vector<std::string> taken(chunks_.begin(),
                                 chunks_.begin() + ptrdiff_t(count));
  chunks_.erase(chunks_.begin(), chunks_.begin() + ptrdiff_t(count));
  chunksTaken_ += count;
  return taken;
}

absl::StatusOr<std::string> BlobFile::finish() {
  absl::Status status = flush();
  if (status.ok() && order_ == Order::kAny)
    status = writer_.drain(); // the hash reads the file
  if (status.ok())
    status = writer_.give([this] { return syncFile(file_, path_); });
  if (!status.ok())
    return status;
  absl::StatusOr<std::string> hash =
      order_ == Order::kAny ? hashBlobFile(file_, path_, bytes_) : finishHash();
  status = writer_.drain();
  if (::close(std::exchange(file_, -1)) != 0 && status.ok())
    status = systemError(path_, "writing", errno);
  return status.ok() ? hash : status;
}

absl::StatusOr<std::string> BlobFile::finishHash() {
  if (absl::Status status = hasher_.drain(); !status.ok())
    return status;
  if (absl::Status status = hashZeros(bytes_); !status.ok())
    return status;
  return hash_.finish();
}

absl::Status BlobFile::put(const Piece &piece) const {
  for (size_t done = 0; done < piece.bytes.size();) {
    ssize_t put =
        ::pwrite(file_, piece.bytes.data() + done, piece.bytes.size() - done,
                 off_t(piece.offset + done));
    if (put < 0 && errno == EINTR)
      continue;
    if (put < 0)
      return systemError(path_, "writing", errno);
    done += size_t(put);
  }
  return absl::OkStatus();
}

absl::Status BlobFile::hash(const Piece &piece) {
  if (piece.offset < hash_.bytes())
    return absl::InternalError(absl::StrCat(
        path_, ": packed byte ", piece.offset, " after byte ", hash_.bytes()));
  absl::Status status = hashZeros(piece.offset);
  if (status.ok())
    status = hash_.update(piece.bytes);
  noteChunks();
  return status;
}

/// What lies between the parts.
absl::Status BlobFile::hashZeros(uint64_t until) {
  static constexpr uint8_t kZeros[65536] = {};
  absl::Status status;
  while (hash_.bytes() < until && status.ok())
    status = hash_.update({kZeros, size_t(std::min<uint64_t>(
                                       until - hash_.bytes(), sizeof kZeros))});
  return status;
}

/// What an earlier run has written, behind the chunks whose hashes are known.
absl::Status BlobFile::hashPrefix(uint64_t bytes) {
  std::vector<uint8_t> buffer(kPieceBytes);
  while (hash_.bytes() < bytes) {
    uint64_t step = std::min<uint64_t>(bytes - hash_.bytes(), buffer.size());
    absl::StatusOr<size_t> got =
        readAt(file_, path_, hash_.bytes(), std::span(buffer).first(step),
               absl::StrCat(bytes));
    if (!got.ok())
      return got.status();
    if (absl::Status status = hash_.update({buffer.data(), *got}); !status.ok())
      return status;
  }
  noteChunks();
  return absl::OkStatus();
}

/// Puts the hashes that hash_ has more by now where sync() finds them.
void BlobFile::noteChunks() {
  std::lock_guard lock(chunksMutex_);
  const std::vector<std::string> &known = hash_.chunks();
  chunks_.insert(chunks_.end(),
                 known.begin() + ptrdiff_t(chunksTaken_ + chunks_.size()),
                 known.end());
}

} // namespace grok
