// Small text files that a person wrote: configs, target descriptions, ids,
// histograms.
#pragma once

#include <cerrno>
#include <cstdio>
#include <memory>
#include <string>
#include <sys/stat.h>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "runtime/bundle/FileIO.h"

namespace grok {

/// The file's bytes. fileError if it cannot be read, InvalidArgument if it is
/// larger than `limit`.
inline absl::StatusOr<std::string>
readTextFile(const std::string &path, size_t limit = size_t(1) << 30) {
  std::unique_ptr<FILE, int (*)(FILE *)> file(std::fopen(path.c_str(), "rb"),
                                              &std::fclose);
  if (!file)
    return fileError(errno, path);
  auto tooLarge = [&] {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": found more than ", limit, " bytes, expected fewer"));
  };
  // What is no regular file has no size, and is read as far as it may go.
  struct stat info;
  if (::fstat(::fileno(file.get()), &info) == 0 && info.st_size > 0 &&
      size_t(info.st_size) > limit)
    return tooLarge();
  std::string text;
  char buffer[65536];
  while (size_t got = std::fread(buffer, 1, sizeof buffer, file.get())) {
    text.append(buffer, got);
    if (text.size() > limit)
      return tooLarge();
  }
  if (std::ferror(file.get()))
    return fileError(errno, path);
  return text;
}

} // namespace grok
