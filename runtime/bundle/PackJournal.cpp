#include "runtime/bundle/PackJournal.h"

#include <cerrno>
#include <string_view>
#include <unistd.h>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace grok {
namespace {

// A line with the key, then a line for each note: only whole lines count.
constexpr size_t kNoteBytes = 21;
constexpr uint64_t kMaxBytes = uint64_t(1) << 26;

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
  return file_.open(path_);
}

absl::Status PackJournal::note(uint64_t parts) {
  if (absl::Status status =
          file_.write(bytesOf(absl::StrFormat("%020u\n", parts)));
      !status.ok())
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

std::optional<uint64_t> PackJournal::read(const std::string &directory,
                                          const std::string &key) {
  absl::StatusOr<std::string> text =
      readWholeFile(absl::StrCat(directory, "/", kFile), kMaxBytes);
  if (!text.ok() || text->compare(0, key.size() + 1, key + "\n") != 0)
    return std::nullopt;
  size_t notes = (text->size() - key.size() - 1) / kNoteBytes;
  uint64_t parts = 0;
  if (notes == 0 ||
      !absl::SimpleAtoi(text->substr(key.size() + 1 + (notes - 1) * kNoteBytes,
                                     kNoteBytes - 1),
                        &parts))
    return std::nullopt;
  return parts;
}

} // namespace grok
