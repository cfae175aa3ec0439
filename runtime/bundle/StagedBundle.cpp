#include "runtime/bundle/StagedBundle.h"

#include <algorithm>
#include <cerrno>
#include <functional>
#include <optional>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/bundle/Sha256.h"

namespace grok {
namespace {

/// Whether a run was killed before it had written its key: a directory with
/// nothing in it, or with an empty journal.
bool isBarelyBegun(const std::string &left) {
  struct stat info;
  if (::lstat(left.c_str(), &info) != 0 || !S_ISDIR(info.st_mode))
    return false;
  absl::StatusOr<std::vector<std::string>> names = listDirectory(left);
  if (!names.ok())
    return false;
  absl::StatusOr<uint64_t> bytes =
      regularFileSize(absl::StrCat(left, "/", PackJournal::kFile));
  return names->empty() || (names->size() == 1 && bytes.ok() && *bytes == 0);
}

/// What of the blob a leftover has; nothing if it is of another key.
std::optional<ChunkHashes>
packedIn(const std::string &left, const std::string &key, uint64_t blobBytes) {
  if (isBarelyBegun(left))
    return ChunkHashes();
  std::optional<ChunkHashes> packed = PackJournal::read(left, key);
  absl::StatusOr<uint64_t> bytes =
      regularFileSize(absl::StrCat(left, "/", kBlobFile));
  if (packed && (!bytes.ok() || *bytes != blobBytes))
    packed->clear();
  return packed;
}

} // namespace

absl::Status StagedBundle::create(const std::string &key, uint64_t blobBytes) {
  if (key.empty())
    return directory_.create(path_);
  takeOver(key, blobBytes);
  if (path().empty())
    if (absl::Status s = directory_.create(path_); !s.ok())
      return s;
  journaled_ = true;
  return prepare(key);
}

absl::Status StagedBundle::commit(bool replace) {
  if (!journaled_)
    return directory_.commit(replace);
  // Closed first: some file systems keep what is open under another name.
  if (absl::Status s = journal_.close(); !s.ok())
    return s;
  return directory_.commit(replace, PackJournal::kFile);
}

void StagedBundle::addBlob(FileRecord record) {
  files_[kBlobFile] = std::move(record);
}

absl::Status StagedBundle::addFile(const std::string &name,
                                   const std::string &text) {
  FileWriter out;
  if (absl::Status s = out.create(place(name)); !s.ok())
    return s;
  if (absl::Status s = out.write(
          {reinterpret_cast<const uint8_t *>(text.data()), text.size()});
      !s.ok())
    return s;
  if (absl::Status s = out.close(); !s.ok())
    return s;
  absl::StatusOr<std::string> hash = sha256(text);
  if (!hash.ok())
    return hash.status();
  files_[name] = {text.size(), *hash};
  return absl::OkStatus();
}

std::string StagedBundle::place(const std::string &name) const {
  return absl::StrCat(path(), "/", name);
}

/// Takes over the leftover that has most of the blob, and removes the others of
/// the same key. Each is renamed first, so that no other run finds it too.
void StagedBundle::takeOver(const std::string &key, uint64_t blobBytes) {
  std::vector<std::pair<size_t, std::string>> own; // chunks that each has
  for (const std::string &left : findLeftovers(path_))
    if (std::optional<ChunkHashes> packed = packedIn(left, key, blobBytes))
      own.emplace_back(packed->size(), left);
  std::ranges::sort(own, std::greater());
  for (const auto &[chunks, left] : own) {
    if (!path().empty()) {
      StagedDirectory removed;
      removed.adopt(path_, left).IgnoreError(); // one that stays is named later
    } else if (directory_.adopt(path_, left).ok()) {
      packed_ = packedIn(path(), key, blobBytes).value_or(ChunkHashes());
    }
  }
}

/// Leaves the journal and what it vouches for. The journal goes last: if this
/// run is killed, the next knows the directory by it.
absl::Status StagedBundle::prepare(const std::string &key) {
  absl::StatusOr<std::vector<std::string>> names = listDirectory(path());
  if (!names.ok())
    return names.status();
  bool hasJournal = false;
  for (const std::string &name : *names) {
    hasJournal |= name == PackJournal::kFile;
    bool kept =
        name == PackJournal::kFile || (name == kBlobFile && !packed_.empty());
    if (kept)
      continue;
    if (absl::Status s = removeFile(name); !s.ok())
      return s;
  }
  if (!packed_.empty())
    return journal_.open(directory_);
  if (hasJournal)
    if (absl::Status s = removeFile(PackJournal::kFile); !s.ok())
      return s;
  return journal_.create(directory_, key);
}

absl::Status StagedBundle::removeFile(const std::string &name) {
  if (::unlink(place(name).c_str()) != 0)
    return systemError(place(name), "removing", errno);
  return absl::OkStatus();
}

} // namespace grok
