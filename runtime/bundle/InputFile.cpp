#include "runtime/bundle/InputFile.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "runtime/bundle/FileIO.h"

namespace grok {
namespace {

absl::Status checkRegular(const std::string &path, mode_t mode) {
  if (S_ISREG(mode))
    return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": found a ",
                   S_ISDIR(mode) ? "directory" : "pipe, socket or device",
                   ", expected a file; write its content to one first"));
}

absl::Status tooLarge(const std::string &path, uint64_t limit) {
  return absl::InvalidArgumentError(absl::StrCat(
      path, ": found more than ", limit, " bytes, expected fewer"));
}

/// Up to the end, which may have moved since the size was asked for.
absl::StatusOr<std::string> readToEnd(int file, const std::string &path,
                                      uint64_t limit) {
  constexpr size_t kPieceBytes = 1 << 20;
  std::string text;
  while (true) {
    const size_t at = text.size();
    text.resize(at + kPieceBytes);
    ssize_t got;
    do
      got = ::read(file, text.data() + at, kPieceBytes);
    while (got < 0 && errno == EINTR);
    if (got < 0)
      return fileError(errno, path);
    text.resize(at + size_t(got));
    if (got == 0)
      return text;
    if (text.size() > limit)
      return tooLarge(path, limit);
  }
}

} // namespace

// Asked before it is opened, since opening a device can do something.
absl::Status checkInputFile(const std::string &path) {
  struct stat info;
  if (::stat(path.c_str(), &info) != 0)
    return fileError(errno, path);
  return checkRegular(path, info.st_mode);
}

absl::StatusOr<std::string> readInputFile(const std::string &path,
                                          uint64_t limit) {
  if (absl::Status status = checkInputFile(path); !status.ok())
    return status;
  // O_NONBLOCK: what took its place meanwhile must not be waited for.
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info;
  if (file.fd < 0 || ::fstat(file.fd, &info) != 0)
    return fileError(errno, path);
  if (absl::Status status = checkRegular(path, info.st_mode); !status.ok())
    return status;
  if (uint64_t(info.st_size) > limit)
    return tooLarge(path, limit);
  return readToEnd(file.fd, path, limit);
}

} // namespace grok
