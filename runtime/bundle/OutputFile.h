// Single files that a command writes: they appear whole or not at all, and what
// is no regular file is written to as it is.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/bundle/FileIO.h"

namespace grok {

/// Written beside its place as PATH.tmp-PID and renamed by commit(); removed if
/// that isn't called. Symbolic links are followed and stay. A device, a pipe
/// and the like are written to directly, as is an open file of a process
/// (/dev/stdout); a directory is an error.
class OutputFile {
public:
  /// `bytes`: the size that it will have.
  static absl::StatusOr<std::unique_ptr<OutputFile>>
  create(const std::string &path, uint64_t bytes);
  ~OutputFile();
  OutputFile(const OutputFile &) = delete;
  absl::Status write(std::span<const uint8_t> bytes) {
    return writer_.write(bytes);
  }
  absl::Status commit();
  /// Writes what is the whole of it, and commits.
  absl::Status finish(std::string_view text);

private:
  OutputFile() = default;
  std::string path_;
  Temporary staged_; // none: there is nothing to rename or remove
  FileWriter writer_;
};

/// InvalidArgument if writing `output` would change one of `inputs`, which are
/// files and directories of files: if it is one of their files, under whatever
/// name, or lies inside of a directory; or if it lies inside of any bundle.
absl::Status checkApart(const std::string &output,
                        std::initializer_list<std::string> inputs);

/// Whether two outputs are one file, so that the second would take the place of
/// the first: their directory is the same, links followed, and so is the name
/// there.
bool isOneOutput(const std::string &a, const std::string &b);

/// The directories that a file, or a new one of that name, is below, from its
/// own up to the root, links followed; none if its own is not there.
std::vector<std::string> enclosingDirectories(const std::string &file);

/// The whole of an output file.
absl::Status writeTextFile(const std::string &path, std::string_view text);

} // namespace grok
