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
    : path_(std::move(path)), bytes_(bytes), order_(order), piece_(newPiece()),
      hasher_(kWaitingPieces), writer_(kWaitingPieces) {}

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

absl::Status BlobFile::reopen(uint64_t prefix) {
  file_ = ::open(path_.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (file_ < 0)
    return systemError(path_, "opening", errno);
  if (order_ == Order::kAny)
    return absl::OkStatus();
  return hasher_.give([this, prefix] { return hashFile(prefix); });
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

absl::Status BlobFile::sync(std::function<absl::Status()> then) {
  if (absl::Status status = flush(); !status.ok())
    return status;
  return writer_.give([this, then = std::move(then)]() -> absl::Status {
    if (::fdatasync(file_) != 0)
      return systemError(path_, "writing", errno);
    return then();
  });
}

absl::StatusOr<std::string> BlobFile::finish() {
  if (absl::Status status = flush(); !status.ok())
    return status;
  if (order_ == Order::kAny) {
    // The hash reads what the system still holds while the rest goes to disk.
    if (absl::Status status = writer_.drain(); !status.ok())
      return status;
    if (absl::Status status = hasher_.give([this] { return hashFile(bytes_); });
        !status.ok())
      return status;
  }
  absl::Status status = writer_.give([this] { return syncFile(file_, path_); });
  if (status.ok())
    status = writer_.drain();
  if (status.ok())
    status = hasher_.drain();
  if (!status.ok())
    return status;
  hashZeros(bytes_);
  if (::close(std::exchange(file_, -1)) != 0)
    return systemError(path_, "writing", errno);
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
  if (piece.offset < hashed_)
    return absl::InternalError(absl::StrCat(
        path_, ": packed byte ", piece.offset, " after byte ", hashed_));
  hashZeros(piece.offset);
  hash_.update(piece.bytes);
  hashed_ += piece.bytes.size();
  return absl::OkStatus();
}

/// What lies between the parts.
void BlobFile::hashZeros(uint64_t until) {
  static constexpr uint8_t kZeros[65536] = {};
  while (hashed_ < until) {
    uint64_t step = std::min<uint64_t>(until - hashed_, sizeof kZeros);
    hash_.update({kZeros, size_t(step)});
    hashed_ += step;
  }
}

absl::Status BlobFile::hashFile(uint64_t bytes) {
  std::vector<uint8_t> buffer(kPieceBytes);
  while (hashed_ < bytes) {
    uint64_t step = std::min<uint64_t>(bytes - hashed_, buffer.size());
    ssize_t got = ::pread(file_, buffer.data(), step, off_t(hashed_));
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      return systemError(path_, "reading", errno);
    if (got == 0)
      return absl::DataLossError(
          absl::StrCat(path_, ": found ", hashed_, " bytes, expected ", bytes,
                       "; another program made it shorter"));
    hash_.update({buffer.data(), size_t(got)});
    hashed_ += uint64_t(got);
  }
  return absl::OkStatus();
}

} // namespace grok
