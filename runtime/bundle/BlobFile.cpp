#include "runtime/bundle/BlobFile.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/bundle/FileIO.h"

namespace grok {
namespace {

constexpr uint64_t kPieceBytes = uint64_t(1) << 20; // stays in a cache
constexpr size_t kPieces = 4;
constexpr size_t kWaitingJobs = 64; // memory is what bounds them
constexpr uint64_t kMeasuredChunks = 4;
/// Chunks that were read for their hash and are still in the system's cache, so
/// that the disk is not waited for.
constexpr size_t kBehindChunks = 2;
/// What offsets and sizes must be multiples of to go past the system's cache.
constexpr uint64_t kDirectBytes = 4096;

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

BlobFile::BlobFile(std::string path, uint64_t bytes, size_t chunksInMemory)
    : path_(std::move(path)), bytes_(bytes), missing_(chunkCount(bytes)),
      whole_(chunkCount(bytes)), pool_(chunksInMemory), piecePool_(kPieces),
      hasher_(kWaitingJobs), writer_(kWaitingJobs) {}

BlobFile::~BlobFile() {
  // The threads use the files until they are done; what they say is lost.
  writer_.drain().IgnoreError();
  hasher_.drain().IgnoreError();
  for (int file : {direct_, file_})
    if (file >= 0)
      ::close(file);
}

absl::Status BlobFile::create() {
  file_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file_ < 0)
    return systemError(path_, "creating", errno);
  if (absl::Status status = reserveSpace(file_, path_, bytes_); !status.ok())
    return status;
  if (::ftruncate(file_, off_t(bytes_)) != 0)
    return systemError(path_, "making room", errno);
  openDirect();
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
  for (size_t i = 0; i < numbers.size(); ++i)
    if (chunks.at(numbers[i]) == (*found)[i]) {
      kept_[numbers[i]] = (*found)[i];
      whole_[numbers[i]] = true;
    }
  known_ = kept_;
  openDirect();
  return numbers.size() - kept_.size();
}

/// Not every file system has such a way; all have the other.
void BlobFile::openDirect() {
  direct_ = ::open(path_.c_str(), O_WRONLY | O_DIRECT | O_CLOEXEC | O_NOFOLLOW);
}

bool BlobFile::holds(uint64_t offset, uint64_t bytes) const {
  bool all = true;
  forEachChunk(offset, bytes, [&](uint64_t chunk, uint64_t) {
    all = all && kept_.count(chunk);
  });
  return all;
}

void BlobFile::expect(uint64_t offset, uint64_t bytes) {
  forEachChunk(offset, bytes, [&](uint64_t chunk, uint64_t count) {
    if (!kept_.count(chunk))
      missing_[chunk] += count;
  });
}

absl::StatusOr<double> BlobFile::measure() {
  ChunkPool::Memory zeros = pool_.take(held_);
  std::memset(zeros.get(), 0, chunkBytes(0));
  auto begin = std::chrono::steady_clock::now();
  uint64_t bytes = 0;
  for (uint64_t chunk = 0;
       chunk < std::min(kMeasuredChunks, chunkCount(bytes_)); ++chunk) {
    if (absl::Status status = putChunk(chunk, zeros.get()); !status.ok())
      return status;
    bytes += chunkBytes(chunk);
  }
  if (::fdatasync(file_) != 0)
    return systemError(path_, "writing", errno);
  std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  return double(bytes) / std::max(took.count(), 1e-9);
}

absl::Status BlobFile::write(uint64_t offset, std::span<const uint8_t> bytes) {
  absl::Status status;
  forEachChunk(offset, bytes.size(), [&](uint64_t chunk, uint64_t count) {
    std::span<const uint8_t> part = bytes.first(count);
    bytes = bytes.subspan(count);
    if (status.ok() && !kept_.count(chunk))
      status = write(chunk, offset % kHashChunkBytes, part);
    offset += count;
  });
  return status;
}

absl::Status BlobFile::write(uint64_t chunk, uint64_t offset,
                             std::span<const uint8_t> bytes) {
  if (missing_[chunk] < bytes.size())
    return absl::InternalError(absl::StrCat(path_, ": packed ", bytes.size(),
                                            " bytes into chunk ", chunk,
                                            ", which needs ", missing_[chunk]));
  absl::StatusOr<uint8_t *> memory = begin(chunk);
  absl::Status status = memory.status();
  if (status.ok() && *memory)
    std::memcpy(*memory + offset, bytes.data(), bytes.size());
  else if (status.ok())
    status = writeThrough(chunk * kHashChunkBytes + offset, bytes);
  missing_[chunk] -= bytes.size();
  return status.ok() && missing_[chunk] == 0 ? end(chunk) : status;
}

uint64_t BlobFile::chunkBytes(uint64_t chunk) const {
  return std::min(kHashChunkBytes, bytes_ - chunk * kHashChunkBytes);
}

/// Where a chunk is filled; null if it is written through.
absl::StatusOr<uint8_t *> BlobFile::begin(uint64_t chunk) {
  auto [place, isNew] = begun_.try_emplace(chunk);
  ChunkPool::Memory &memory = place->second;
  if (!isNew)
    return memory.get();
  memory = pool_.take(held_);
  held_ += memory != nullptr;
  if (missing_[chunk] == chunkBytes(chunk))
    return memory.get();
  if (memory)
    std::memset(memory.get(), 0, chunkBytes(chunk));
  else if (absl::Status status = writeZeros(chunk); !status.ok())
    return status;
  return memory.get();
}

/// An earlier run may have left something between the parts.
absl::Status BlobFile::writeZeros(uint64_t chunk) {
  static constexpr uint8_t kZeros[65536] = {};
  absl::Status status;
  for (uint64_t at = 0; at < chunkBytes(chunk) && status.ok();
       at += sizeof kZeros)
    status = writeThrough(
        chunk * kHashChunkBytes + at,
        {kZeros, size_t(std::min(chunkBytes(chunk) - at, sizeof kZeros))});
  return status;
}

/// Has a chunk written and hashed that is whole.
absl::Status BlobFile::end(uint64_t chunk) {
  whole_[chunk] = true;
  ChunkPool::Memory memory = begun_.extract(chunk).mapped();
  if (!memory) {
    if (absl::Status status = flush(); !status.ok())
      return status;
    return writer_.give([this, chunk] {
      beginWriting(chunk);
      return hasher_.give([this, chunk] { return hashWritten(chunk); });
    });
  }
  --held_;
  return writer_.give([this, chunk, memory = std::move(memory)] {
    absl::Status status = putChunk(chunk, memory.get());
    return status.ok() ? hasher_.give([this, chunk, memory] {
      return hashMemory(chunk, memory.get());
    })
                       : status;
  });
}

absl::Status BlobFile::writeThrough(uint64_t offset,
                                    std::span<const uint8_t> bytes) {
  while (!bytes.empty()) {
    if (!piece_.memory)
      piece_.memory = piecePool_.take(0);
    std::span<const uint8_t> part = bytes.first(
        std::min<uint64_t>(bytes.size(), kPieceBytes - piece_.bytes));
    std::memcpy(piece_.memory.get() + piece_.bytes, part.data(), part.size());
    piece_.runs.push_back({offset, part.size()});
    piece_.bytes += part.size();
    offset += part.size();
    bytes = bytes.subspan(part.size());
    if (piece_.bytes == kPieceBytes)
      if (absl::Status status = flush(); !status.ok())
        return status;
  }
  return absl::OkStatus();
}

absl::Status BlobFile::flush() {
  if (!piece_.bytes)
    return absl::OkStatus();
  return writer_.give(
      [this, piece = std::exchange(piece_, {})] { return putPiece(piece); });
}

absl::Status BlobFile::sync(Synced then) {
  if (absl::Status status = flush(); !status.ok())
    return status;
  return writer_.give([this, then = std::move(then)]() -> absl::Status {
    ChunkHashes chunks;
    {
      std::lock_guard lock(knownMutex_);
      chunks = std::exchange(fresh_, {});
    }
    if (::fdatasync(file_) != 0)
      return systemError(path_, "writing", errno);
    return then(chunks);
  });
}

absl::StatusOr<std::string> BlobFile::finish(const Synced &then) {
  absl::Status status;
  for (uint64_t chunk = 0; chunk < chunkCount(bytes_) && status.ok(); ++chunk)
    if (!whole_[chunk])
      status = pad(chunk);
  if (status.ok())
    status = writer_.give([this] { return syncFile(file_, path_); });
  if (status.ok())
    status = writer_.drain();
  if (status.ok())
    status = hasher_.drain();
  if (status.ok() && then)
    status = then(std::exchange(fresh_, {}));
  if (!status.ok())
    return status;
  if (::close(std::exchange(file_, -1)) != 0)
    return systemError(path_, "writing", errno);
  std::vector<std::string> hashes;
  for (const auto &[chunk, hash] : known_)
    hashes.push_back(hash);
  return blobHash(hashes);
}

/// Nothing is ever written to some chunks.
absl::Status BlobFile::pad(uint64_t chunk) {
  if (missing_[chunk])
    return absl::InternalError(absl::StrCat(
        path_, ": chunk ", chunk, " still needs ", missing_[chunk], " bytes"));
  absl::StatusOr<uint8_t *> memory = begin(chunk);
  return memory.ok() ? end(chunk) : memory.status();
}

/// So that the disk is not waited for when the chunk has been hashed.
void BlobFile::beginWriting(uint64_t chunk) const {
  ::sync_file_range(file_, off_t(chunk * kHashChunkBytes),
                    off_t(chunkBytes(chunk)), SYNC_FILE_RANGE_WRITE);
}

absl::Status BlobFile::putChunk(uint64_t chunk, const uint8_t *memory) const {
  const uint64_t begin = chunk * kHashChunkBytes, bytes = chunkBytes(chunk);
  bool direct = direct_ >= 0 && bytes % kDirectBytes == 0;
  for (uint64_t done = 0; done < bytes;) {
    ssize_t put = ::pwrite(direct ? direct_ : file_, memory + done,
                           bytes - done, off_t(begin + done));
    if (put < 0 && errno == EINTR)
      continue;
    if (put < 0 && errno == EINVAL && direct) {
      direct = false; // this disk wants more of an alignment
      continue;
    }
    if (put < 0)
      return systemError(path_, "writing", errno);
    done += uint64_t(put);
    direct = direct && done % kDirectBytes == 0;
  }
  return direct ? absl::OkStatus() : giveBackCache(file_, path_, begin, bytes);
}

absl::Status BlobFile::putPiece(const Piece &piece) const {
  const uint8_t *from = piece.memory.get();
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

absl::Status BlobFile::hashMemory(uint64_t chunk, const uint8_t *memory) {
  Sha256 hash;
  hash.update({memory, chunkBytes(chunk)});
  return note(chunk, hash.finish());
}

absl::Status BlobFile::hashWritten(uint64_t chunk) {
  absl::Status status = note(chunk, hashBlobChunk(file_, path_, bytes_, chunk));
  hashed_.push_back(chunk);
  if (!status.ok() || hashed_.size() <= kBehindChunks)
    return status;
  chunk = hashed_.front();
  hashed_.pop_front();
  return giveBackCache(file_, path_, chunk * kHashChunkBytes,
                       chunkBytes(chunk));
}

absl::Status BlobFile::note(uint64_t chunk,
                            const absl::StatusOr<std::string> &hash) {
  if (!hash.ok())
    return hash.status();
  std::lock_guard lock(knownMutex_);
  known_[chunk] = fresh_[chunk] = *hash;
  return absl::OkStatus();
}

} // namespace grok
