#include "runtime/bundle/BlobHash.h"

#include <algorithm>
#include <cerrno>
#include <deque>
#include <fcntl.h>
#include <mutex>
#include <numeric>
#include <thread>
#include <utility>

#include "absl/strings/str_join.h"
#include "runtime/bundle/FileIO.h"
#include "runtime/bundle/Worker.h"

namespace grok {
namespace {

constexpr size_t kReadBytes = size_t(1) << 20; // stays in a cache
constexpr uint64_t kMostThreads = 8;           // what memory gives

} // namespace

absl::StatusOr<std::string> blobHash(std::span<const std::string> chunks) {
  return sha256(absl::StrJoin(chunks, ""));
}

absl::StatusOr<std::string> hashBlobChunk(int file, const std::string &path,
                                          uint64_t bytes, uint64_t chunk) {
  const uint64_t begin = chunk * kHashChunkBytes,
                 end = std::min(bytes, begin + kHashChunkBytes);
  std::vector<uint8_t> buffer(std::min<uint64_t>(end - begin, kReadBytes));
  Sha256 hash;
  for (uint64_t at = begin; at < end;) {
    uint64_t step = std::min<uint64_t>(end - at, buffer.size());
    absl::StatusOr<size_t> got =
        readAt(file, path, at, std::span(buffer).first(step), "more");
    if (!got.ok())
      return got.status();
    hash.update({buffer.data(), *got});
    at += *got;
  }
  return hash.finish();
}

absl::StatusOr<std::vector<std::string>>
hashBlobChunks(int file, const std::string &path, uint64_t bytes,
               std::span<const uint64_t> chunks,
               const std::function<void(uint64_t)> &progress) {
  std::vector<std::string> hashes(chunks.size());
  std::mutex mutex; // of what is done
  uint64_t done = 0;
  const uint64_t threads =
      std::clamp<uint64_t>(std::thread::hardware_concurrency(), 1,
                           std::min<uint64_t>(kMostThreads, chunks.size() + 1));
  std::deque<Worker> workers;
  for (uint64_t i = 0; i < threads; ++i)
    workers.emplace_back(1);
  absl::Status status;
  for (uint64_t i = 0; i < chunks.size() && status.ok(); ++i)
    status = workers[i % threads].give([&, i]() -> absl::Status {
      absl::StatusOr<std::string> hash =
          hashBlobChunk(file, path, bytes, chunks[i]);
      if (!hash.ok())
        return hash.status();
      hashes[i] = *std::move(hash);
      std::lock_guard lock(mutex);
      done += std::min(kHashChunkBytes, bytes - chunks[i] * kHashChunkBytes);
      if (progress)
        progress(done);
      return absl::OkStatus();
    });
  for (Worker &worker : workers)
    if (absl::Status drained = worker.drain(); status.ok())
      status = drained;
  if (!status.ok())
    return status;
  return hashes;
}

absl::StatusOr<std::string>
hashBlobFile(const std::string &path, uint64_t bytes,
             const std::function<void(uint64_t)> &progress) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  if (file.fd < 0)
    return systemError(path, "opening", errno);
  std::vector<uint64_t> all(chunkCount(bytes));
  std::iota(all.begin(), all.end(), 0);
  absl::StatusOr<std::vector<std::string>> chunks =
      hashBlobChunks(file.fd, path, bytes, all, progress);
  return chunks.ok() ? blobHash(*chunks) : chunks.status();
}

} // namespace grok
