// A file's bytes, mapped read-only.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/bundle/FileState.h"

namespace grok {

class MappedFile {
public:
  /// NotFound if there is no such file, InvalidArgument if it is no regular
  /// file, PermissionDenied or Unavailable with the system's reason otherwise.
  static absl::StatusOr<MappedFile> open(const std::string &path);

  MappedFile(MappedFile &&other) noexcept;
  MappedFile &operator=(MappedFile &&other) noexcept;
  ~MappedFile();

  const std::string &path() const { return path_; }
  std::span<const uint8_t> bytes() const { return bytes_; }
  /// As it was when it was opened.
  const FileState &state() const { return state_; }

  /// Has the system begin to read bytes from the disk, just these.
  void readAhead(uint64_t offset, uint64_t bytes) const;
  /// Gives the pages that were read back to the system; the bytes stay valid
  /// and are read from the file again when they are touched.
  void evict() const;

private:
  MappedFile(std::string path, const FileState &state,
             std::span<const uint8_t> bytes)
      : path_(std::move(path)), state_(state), bytes_(bytes) {}

  std::string path_;
  FileState state_;
  std::span<const uint8_t> bytes_;
};

} // namespace grok
