#include "runtime/bundle/PackJournal.h"

#include <cerrno>
#include <string_view>
#include <unistd.h>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/bundle/Sha256.h"

namespace grok {
namespace {

// A line with the key, then a line for each note: the parts, and a blank and a
// hash for each chunk. Only whole lines count; one that ends with a '-' is
// none.
constexpr size_t kPartsDigits = 20;
constexpr uint64_t kMaxBytes = uint64_t(1) << 28;

/// Adds what a line notes; false if it is none.
bool addNote(std::string_view line, PackJournal::Packed &packed) {
  constexpr size_t kEach = kHashDigits + 1;
  uint64_t parts = 0;
  if (line.size() < kPartsDigits || line.ends_with('-') ||
      (line.size() - kPartsDigits) % kEach ||
      !absl::SimpleAtoi(absl::string_view(line.data(), kPartsDigits), &parts))
    return false;
  packed.parts = parts;
  for (size_t at = kPartsDigits; at < line.size(); at += kEach)
    packed.chunks.emplace_back(line.substr(at + 1, kHashDigits));
  return true;
}

std::span<const uint8_t> bytesOf(std::string_view text) {
  return {reinterpret_cast<const uint8_t *>(text.data()), text.size()};
}

} // namespace

absl::Status PackJournal::create(const std::string &directory,
                                 const std::string &key) {
  path_ = absl::StrCat(directory, "/", kFile);
  if (absl::Status status = file_.create(path_); !status.ok())
    return status;
  return file_.write(bytesOf(key + "\n"));
}

absl::Status PackJournal::open(const std::string &directory) {
  path_ = absl::StrCat(directory, "/", kFile);
  if (absl::Status status = file_.open(path_); !status.ok())
    return status;
  return file_.write(bytesOf("-\n")); // ends a line that is not whole
}

absl::Status PackJournal::note(uint64_t parts,
                               std::span<const std::string> chunks) {
  std::string line = absl::StrFormat("%020u", parts);
  for (const std::string &chunk : chunks)
    absl::StrAppend(&line, " ", chunk);
  if (absl::Status status = file_.write(bytesOf(line + "\n")); !status.ok())
    return status;
  return file_.sync();
}

absl::Status PackJournal::remove() {
  if (absl::Status status = file_.close(); !status.ok())
    return status;
  if (::unlink(path_.c_str()) != 0)
    return systemError(path_, "removing", errno);
  return absl::OkStatus();
}

std::optional<PackJournal::Packed>
PackJournal::read(const std::string &directory, const std::string &key) {
  absl::StatusOr<std::string> text =
      readWholeFile(absl::StrCat(directory, "/", kFile), kMaxBytes);
  if (!text.ok() || text->compare(0, key.size() + 1, key + "\n") != 0)
    return std::nullopt;
  Packed packed;
  bool noted = false;
  std::string_view rest = std::string_view(*text).substr(key.size() + 1);
  for (size_t end; (end = rest.find('\n')) != rest.npos;
       rest.remove_prefix(end + 1))
    noted |= addNote(rest.substr(0, end), packed);
  return noted ? std::optional(packed) : std::nullopt;
}

} // namespace grok
