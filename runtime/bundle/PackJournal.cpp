#include "runtime/bundle/PackJournal.h"

#include <algorithm>
#include <string_view>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/bundle/Sha256.h"

namespace grok {
namespace {

// A line with the key, then a line for each note: number and hash of each
// chunk. Only whole lines count; one that ends with a '-' is none.
constexpr size_t kNumberDigits = 10;
constexpr size_t kEach = kNumberDigits + 1 + kHashDigits + 1; // with blanks
constexpr uint64_t kMaxBytes = uint64_t(1) << 28;

/// Adds what a line notes, if it is a note.
void addNote(std::string_view line, ChunkHashes &chunks) {
  if ((line.size() + 1) % kEach || line.ends_with('-'))
    return;
  for (; !line.empty(); line.remove_prefix(std::min(kEach, line.size()))) {
    uint64_t number = 0;
    if (!absl::SimpleAtoi(absl::string_view(line.data(), kNumberDigits),
                          &number))
      return;
    chunks[number] = line.substr(kNumberDigits + 1, kHashDigits);
  }
}

std::span<const uint8_t> bytesOf(std::string_view text) {
  return {reinterpret_cast<const uint8_t *>(text.data()), text.size()};
}

std::string placeIn(const std::string &directory) {
  return absl::StrCat(directory, "/", PackJournal::kFile);
}

} // namespace

absl::Status PackJournal::create(StagedDirectory &directory,
                                 const std::string &key) {
  directory_ = &directory;
  if (absl::Status status = file_.create(placeIn(directory.path()));
      !status.ok())
    return status;
  if (absl::Status status = file_.write(bytesOf(key + "\n")); !status.ok())
    return status;
  return file_.sync();
}

absl::Status PackJournal::open(StagedDirectory &directory) {
  directory_ = &directory;
  if (absl::Status status = file_.open(placeIn(directory.path())); !status.ok())
    return status;
  directory.keepOnSignals();
  return file_.write(bytesOf("-\n")); // ends a line that is not whole
}

absl::Status PackJournal::note(const ChunkHashes &chunks) {
  if (chunks.empty())
    return absl::OkStatus();
  std::string line;
  for (const auto &[number, hash] : chunks)
    absl::StrAppendFormat(&line, "%s%0*u %s", line.empty() ? "" : " ",
                          kNumberDigits, number, hash);
  if (absl::Status status = file_.write(bytesOf(line + "\n")); !status.ok())
    return status;
  if (absl::Status status = file_.sync(); !status.ok())
    return status;
  directory_->keepOnSignals();
  return absl::OkStatus();
}

std::optional<ChunkHashes> PackJournal::read(const std::string &directory,
                                             const std::string &key) {
  absl::StatusOr<std::string> text =
      readWholeFile(placeIn(directory), kMaxBytes);
  if (!text.ok() || text->compare(0, key.size() + 1, key + "\n") != 0)
    return std::nullopt;
  ChunkHashes chunks;
  std::string_view rest = std::string_view(*text).substr(key.size() + 1);
  for (size_t end; (end = rest.find('\n')) != rest.npos;
       rest.remove_prefix(end + 1))
    addNote(rest.substr(0, end), chunks);
  return chunks;
}

} // namespace grok
