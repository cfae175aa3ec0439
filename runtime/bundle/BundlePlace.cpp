#include "runtime/bundle/BundlePlace.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/bundle/FileIO.h"
#include "runtime/bundle/Manifest.h"
#include "runtime/bundle/OutputFile.h"

namespace grok {

absl::Status checkReplaceable(const std::string &path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  if (name == "." || name == ".." || name.empty())
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": found a directory without its name, expected "
                           "the name of a bundle; give it by its own, as "
                           "OUT.grok"));
  struct statx info;
  if (::statx(AT_FDCWD, path.c_str(), AT_SYMLINK_NOFOLLOW, 0, &info) == 0 &&
      info.stx_attributes & STATX_ATTR_MOUNT_ROOT)
    return absl::FailedPreconditionError(
        absl::StrCat(path, ": found a mount point, expected a bundle or "
                           "nothing; choose a name inside of it"));
  return absl::OkStatus();
}

absl::StatusOr<bool> findBundle(const std::string &path) {
  struct stat info;
  if (::lstat(path.c_str(), &info) != 0) {
    if (errno == ENOENT)
      return false;
    return systemError(path, "opening", errno);
  }
  constexpr const char *kRemedy =
      ", expected a bundle or nothing; remove it or write elsewhere";
  if (!S_ISDIR(info.st_mode))
    return absl::FailedPreconditionError(absl::StrCat(
        path, ": found ", S_ISLNK(info.st_mode) ? "a symbolic link" : "a file",
        kRemedy));
  std::string file = absl::StrCat(path, "/", kManifestFile);
  absl::StatusOr<std::string> text = readWholeFile(file, 1 << 30);
  if (!text.ok())
    return absl::FailedPreconditionError(absl::StrCat(
        path, ": found a directory without a readable manifest.json", kRemedy));
  absl::StatusOr<Manifest> manifest = readManifest(*text, file);
  if (!manifest.ok())
    return absl::FailedPreconditionError(
        absl::StrCat(path, ": found what is no bundle of this release", kRemedy,
                     " (", manifest.status().message(), ")"));
  // Damaged files may be replaced, files of someone else may not.
  absl::StatusOr<std::vector<std::string>> names = listDirectory(path);
  if (!names.ok())
    return names.status();
  for (const std::string &name : *names) {
    std::string entry = absl::StrCat(path, "/", name);
    if (name != kManifestFile && !manifest->files.count(name))
      return absl::FailedPreconditionError(absl::StrCat(
          entry, ": found a file that is not the bundle's", kRemedy));
    if (absl::Status s = regularFileSize(entry).status(); !s.ok())
      return s;
  }
  return true;
}

absl::Status checkOutsideOfBundles(const std::string &path) {
  for (const std::string &directory : enclosingDirectories(path))
    if (findBundle(directory).value_or(false))
      return absl::InvalidArgumentError(absl::StrCat(
          path, ": found a name inside of the bundle ", directory,
          ", expected an output apart from it; choose another name"));
  return absl::OkStatus();
}

} // namespace grok
