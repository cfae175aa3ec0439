#include "runtime/bundle/BlobFile.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <fcntl.h>
#include <iterator>
#include <unistd.h>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/bundle/FileIO.h"

namespace grok {
namespace {

constexpr size_t kPieceBytes = size_t(512) << 10; // stays in a cache
constexpr size_t kWaitingPieces = 8;              // for each of the two threads
constexpr size_t kWaitingChunks = 64;             // they take no memory
/// Bytes behind those that are written whose memory is still the system's
/// cache's: enough that the disk is never waited for.
constexpr uint64_t kBehindBytes = uint64_t(32) << 20;
constexpr uint64_t kBehindStep = uint64_t(4) << 20;
constexpr size_t kBehindChunks = kBehindBytes / kHashChunkBytes;
constexpr uint64_t kMeasuredBytes = uint64_t(64) << 20;

/// Calls `visit(chunk, count)` for each chunk that some of the bytes lie in,
/// with their number.
template <typename Visit>
void forEachChunk(uint64_t offset, uint64_t bytes, const Visit &visit) {
  for (uint64_t at = offset, end = offset + bytes; at < end;) {
    uint64_t chunk = at / kHashChunkBytes,
             next = std::min(end, (chunk + 1) * kHashChunkBytes);
    visit(chunk, next - at);
    at = next;
  }
}

} // namespace

BlobFile::BlobFile(std::string path, uint64_t bytes, Order order)
    : path_(std::move(path)), bytes_(bytes), order_(order),
      missing_(chunkCount(bytes)),
      hasher_(order == Order::kAny ? kWaitingChunks : kWaitingPieces),
      writer_(kWaitingPieces) {
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

absl::StatusOr<size_t> BlobFile::reopen(const ChunkHashes &chunks) {
  file_ = ::open(path_.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (file_ < 0)
    return systemError(path_, "opening", errno);
  std::vector<uint64_t> numbers;
  for (const auto &[number, hash] : chunks)
    if (number < chunkCount(bytes_))
      numbers.push_back(number);
  absl::StatusOr<std::vector<std::string>> found =
      hashBlobChunks(file_, path_, bytes_, numbers);
  if (!found.ok())
    return found.status();
  size_t changed = 0;
  for (size_t i = 0; i < numbers.size(); ++i)
    if (chunks.at(numbers[i]) != (*found)[i])
      ++changed;
    else if (order_ == Order::kAny || kept_.size() == numbers[i])
      kept_[numbers[i]] = (*found)[i];
  if (order_ == Order::kAny) {
    known_ = kept_;
    return changed;
  }
  std::vector<std::string> first;
  for (const auto &[number, hash] : kept_)
    first.push_back(hash);
  noted_ = first.size();
  hash_ = BlobHash(std::move(first));
  return changed;
}

bool BlobFile::holds(uint64_t offset, uint64_t bytes) const {
  for (uint64_t chunk = offset / kHashChunkBytes;
       chunk * kHashChunkBytes < offset + bytes; ++chunk)
    if (!kept_.count(chunk))
      return false;
  return true;
}

void BlobFile::expect(uint64_t offset, uint64_t bytes) {
  forEachChunk(offset, bytes, [&](uint64_t chunk, uint64_t count) {
    if (!kept_.count(chunk))
      missing_[chunk] += count;
  });
}

absl::StatusOr<double> BlobFile::measure() {
  uint64_t bytes = std::min(bytes_, kMeasuredBytes);
  Piece zeros{{{0, bytes}}, std::vector<uint8_t>(bytes)};
  auto begin = std::chrono::steady_clock::now();
  if (absl::Status status = put(zeros); !status.ok())
    return status;
  if (::fdatasync(file_) != 0)
    return systemError(path_, "writing", errno);
  std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  return double(zeros.bytes.size()) / std::max(took.count(), 1e-9);
}

absl::Status BlobFile::write(uint64_t offset, std::span<const uint8_t> bytes) {
  if (piece_->runs.empty() || written_ != offset)
    piece_->runs.push_back({offset, 0});
  piece_->runs.back().bytes += bytes.size();
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
  return writer_.give([this, piece] {
    absl::Status status = put(*piece);
    if (!status.ok())
      return status;
    for (const Run &run : piece->runs) {
      if (!status.ok())
        break;
      if (order_ == Order::kAny)
        status = countDown(run);
      else
        beginWriting(run.offset, run.bytes);
    }
    if (order_ == Order::kAscending && status.ok())
      status =
          giveBackBehind(piece->runs.back().offset + piece->runs.back().bytes);
    return status;
  });
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
  piece->runs.clear();
  piece->bytes.clear();
  return {piece.release(), [this](Piece *done) {
            std::lock_guard lock(freeMutex_);
            free_.emplace_back(done);
          }};
}

absl::Status BlobFile::sync(Synced then) {
  if (absl::Status status = flush(); !status.ok())
    return status;
  // Bytes that come in order may be hashed before they are written.
  uint64_t end = order_ == Order::kAscending ? written_ / kHashChunkBytes
                                             : chunkCount(bytes_);
  return writer_.give([this, then = std::move(then), end]() -> absl::Status {
    ChunkHashes chunks = takeChunks(end);
    if (::fdatasync(file_) != 0)
      return systemError(path_, "writing", errno);
    return then(chunks);
  });
}

/// The hashes that no one has taken of chunks before chunk `end`.
ChunkHashes BlobFile::takeChunks(uint64_t end) {
  std::lock_guard lock(freshMutex_);
  ChunkHashes rest;
  while (!fresh_.empty() && fresh_.rbegin()->first >= end)
    rest.insert(fresh_.extract(std::prev(fresh_.end())));
  return std::exchange(fresh_, std::move(rest));
}

absl::StatusOr<std::string> BlobFile::finish() {
  absl::Status status = flush();
  if (status.ok() && order_ == Order::kAny)
    status = writer_.drain(); // what is hashed has been written
  if (status.ok())
    status = writer_.give([this] { return syncFile(file_, path_); });
  if (!status.ok())
    return status;
  absl::StatusOr<std::string> hash =
      order_ == Order::kAny ? finishChunks() : finishHash();
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

/// Nothing is ever written to some chunks: they are padding.
absl::StatusOr<std::string> BlobFile::finishChunks() {
  if (absl::Status status = hasher_.drain(); !status.ok())
    return status;
  std::vector<std::string> chunks;
  for (uint64_t chunk = 0; chunk < chunkCount(bytes_); ++chunk) {
    if (!known_.count(chunk))
      if (absl::Status status = hashWritten(chunk); !status.ok())
        return status;
    chunks.push_back(known_.at(chunk));
  }
  return blobHash(chunks);
}

/// Has the chunks hashed that are whole by this run.
absl::Status BlobFile::countDown(const Run &run) {
  absl::Status status;
  forEachChunk(run.offset, run.bytes, [&](uint64_t chunk, uint64_t count) {
    if (missing_[chunk] == 0 || !status.ok())
      return; // kept, and written once more
    missing_[chunk] -= std::min(count, missing_[chunk]);
    if (missing_[chunk])
      return;
    beginWriting(chunk * kHashChunkBytes, kHashChunkBytes);
    status = hasher_.give([this, chunk] { return hashWritten(chunk); });
  });
  return status;
}

absl::Status BlobFile::hashWritten(uint64_t chunk) {
  absl::StatusOr<std::string> hash = hashBlobChunk(file_, path_, bytes_, chunk);
  if (!hash.ok())
    return hash.status();
  known_[chunk] = *hash;
  {
    std::lock_guard lock(freshMutex_);
    fresh_[chunk] = *std::move(hash);
  }
  hashed_.push_back(chunk);
  if (hashed_.size() <= kBehindChunks)
    return absl::OkStatus();
  uint64_t offset = hashed_.front() * kHashChunkBytes;
  hashed_.pop_front();
  return giveBackCache(file_, path_, offset, kHashChunkBytes);
}

absl::Status BlobFile::put(const Piece &piece) const {
  const uint8_t *from = piece.bytes.data();
  for (const auto &[offset, bytes] : piece.runs)
    for (uint64_t done = 0; done < bytes;) {
      ssize_t put = ::pwrite(file_, from, bytes - done, off_t(offset + done));
      if (put < 0 && errno == EINTR)
        continue;
      if (put < 0)
        return systemError(path_, "writing", errno);
      done += uint64_t(put);
      from += put;
    }
  return absl::OkStatus();
}

/// Has the disk begin with bytes to which nothing will be added, so that sync()
/// finds little left to wait for.
void BlobFile::beginWriting(uint64_t offset, uint64_t bytes) const {
  ::sync_file_range(file_, off_t(offset), off_t(bytes), SYNC_FILE_RANGE_WRITE);
}

/// Gives the cache's memory back far enough behind `end`: new memory costs a
/// virtual machine more than what is written to it.
absl::Status BlobFile::giveBackBehind(uint64_t end) {
  absl::Status status;
  for (; status.ok() && givenBack_ + kBehindStep + kBehindBytes <= end;
       givenBack_ += kBehindStep)
    status = giveBackCache(file_, path_, givenBack_, kBehindStep);
  return status;
}

absl::Status BlobFile::hash(const Piece &piece) {
  absl::Status status;
  std::span<const uint8_t> rest = piece.bytes;
  for (const Run &run : piece.runs) {
    if (status.ok())
      status = hashRun(run.offset, rest.first(run.bytes));
    rest = rest.subspan(run.bytes);
  }
  noteChunks();
  return status;
}

absl::Status BlobFile::hashRun(uint64_t offset,
                               std::span<const uint8_t> bytes) {
  // A part that begins in a chunk that was kept is written once more.
  uint64_t known = hash_.bytes() - std::min(hash_.bytes(), offset);
  if (known && hash_.bytes() > kept_.size() * kHashChunkBytes)
    return absl::InternalError(absl::StrCat(path_, ": packed byte ", offset,
                                            " after byte ", hash_.bytes()));
  if (absl::Status status = hashZeros(offset); !status.ok())
    return status;
  return hash_.update(bytes.subspan(std::min<uint64_t>(known, bytes.size())));
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

/// Puts the hashes that hash_ has more by now where sync() finds them.
void BlobFile::noteChunks() {
  std::lock_guard lock(freshMutex_);
  for (const auto &chunks = hash_.chunks(); noted_ < chunks.size(); ++noted_)
    fresh_[noted_] = chunks[noted_];
}

} // namespace grok
