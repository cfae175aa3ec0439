// What a file was like when somebody opened it: by that a later look tells
// whether it was written to meanwhile.
#pragma once

#include <string>
#include <sys/stat.h>

#include "absl/status/status.h"

namespace grok {

class FileState {
public:
  FileState() = default;
  explicit FileState(const struct stat &info);
  /// Text that differs once the file was written to, or another has its name:
  /// the time of its last change cannot be set back.
  std::string text() const;
  /// FailedPrecondition if the same file is still at `path` and was written to.
  /// One that was replaced by renaming or removed stays whole for whoever has
  /// it open.
  absl::Status checkUnchanged(const std::string &path) const;

private:
  struct stat info_ = {};
};

} // namespace grok
