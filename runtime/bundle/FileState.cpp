#include "runtime/bundle/FileState.h"

#include "absl/strings/str_cat.h"

namespace grok {

FileState::FileState(const struct stat &info) : info_(info) {}

std::string FileState::text() const {
  const auto &[seconds, nanoseconds] = info_.st_mtim;
  const auto &[changed, fraction] = info_.st_ctim;
  return absl::StrCat(info_.st_dev, " ", info_.st_ino, " ", info_.st_size, " ",
                      seconds, ".", nanoseconds, " ", changed, ".", fraction);
}

absl::Status FileState::checkUnchanged(const std::string &path) const {
  struct stat now;
  if (::stat(path.c_str(), &now) != 0 || now.st_dev != info_.st_dev ||
      now.st_ino != info_.st_ino || FileState(now).text() == text())
    return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      path, ": found that it changed while it was read, expected it to stay as "
            "it was; run this again once nothing writes to it"));
}

} // namespace grok
