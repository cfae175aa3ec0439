#include "runtime/bundle/OutputFile.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <filesystem>
#include <linux/magic.h>
#include <optional>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "runtime/bundle/BundlePlace.h"

namespace grok {
namespace {

namespace fs = std::filesystem;

/// What is at an output's path.
struct Place {
  std::string path;    // symbolic links followed
  bool direct = false; // to be written to as it is
  mode_t mode = 0;     // of the file that is there; 0: there is none
};

std::string directoryOf(const std::string &path) {
  size_t slash = path.rfind('/');
  return slash == path.npos ? "./" : path.substr(0, slash + 1);
}

/// Whether a link is one of /proc/PID/fd, which leads to an open file and not
/// to a name.
bool isOpenFileLink(const std::string &link) {
  struct statfs info;
  return ::statfs(directoryOf(link).c_str(), &info) == 0 &&
         info.f_type == PROC_SUPER_MAGIC;
}

absl::StatusOr<std::string> readLink(const std::string &link) {
  char text[PATH_MAX];
  ssize_t length = ::readlink(link.c_str(), text, sizeof(text));
  if (length < 0)
    return systemError(link, "following the symbolic link", errno);
  std::string to(text, size_t(length));
  return to.rfind('/', 0) == 0 ? to : directoryOf(link) + to;
}

absl::StatusOr<Place> findPlace(const std::string &path) {
  constexpr int kMaxLinks = 40; // Linux follows no more
  Place place{path};
  for (int links = 0; links <= kMaxLinks; ++links) {
    struct stat info;
    if (::lstat(place.path.c_str(), &info) != 0) {
      if (errno == ENOENT)
        return place;
      return systemError(path, "opening", errno);
    }
    if (S_ISDIR(info.st_mode))
      return absl::InvalidArgumentError(absl::StrCat(
          path, ": found a directory, expected a file or a new name"));
    place.direct = S_ISLNK(info.st_mode) ? isOpenFileLink(place.path)
                                         : !S_ISREG(info.st_mode);
    if (!S_ISLNK(info.st_mode))
      place.mode = info.st_mode & 0777;
    if (!S_ISLNK(info.st_mode) || place.direct)
      return place;
    absl::StatusOr<std::string> to = readLink(place.path);
    if (!to.ok())
      return to.status();
    place.path = *std::move(to);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      path, ": found symbolic links that lead in a circle, expected a file or "
            "a new name"));
}

/// What a file is, whatever its name.
struct Identity {
  dev_t device;
  ino_t inode;
  bool operator==(const Identity &) const = default;
};

std::optional<Identity> identify(const fs::path &path) {
  struct stat info;
  if (::stat(path.c_str(), &info) != 0)
    return std::nullopt;
  return Identity{info.st_dev, info.st_ino};
}

/// Whether one of a directory's files, or what a link there leads to, is
/// `file`.
bool holds(const fs::path &directory, Identity file) {
  constexpr auto kSkip = fs::directory_options::skip_permission_denied;
  std::error_code error;
  for (fs::recursive_directory_iterator at(directory, kSkip, error), end;
       !error && at != end; at.increment(error))
    if (identify(at->path()) == file)
      return true;
  return false;
}

/// Whether a file, or a new one of that name, is below `directory`.
bool liesIn(const std::string &file, Identity directory) {
  return std::ranges::any_of(enclosingDirectories(file), [&](const auto &at) {
    return identify(at) == directory;
  });
}

bool isPartOf(const Place &place, const std::string &input) {
  const std::optional<Identity> whole = identify(input),
                                file = identify(place.path);
  if (!whole)
    return false; // no file: whoever reads it will tell
  return file == whole || liesIn(place.path, *whole) ||
         (file && holds(input, *file));
}

/// A path by which an output that is there later can be known before.
fs::path canonicalPlace(const std::string &path) {
  std::error_code error;
  return fs::weakly_canonical(directoryOf(path), error) /
         fs::path(path).filename();
}

} // namespace

bool isOneOutput(const std::string &a, const std::string &b) {
  absl::StatusOr<Place> first = findPlace(a), second = findPlace(b);
  return first.ok() && second.ok() &&
         canonicalPlace(first->path) == canonicalPlace(second->path);
}

std::vector<std::string> enclosingDirectories(const std::string &file) {
  std::vector<std::string> found;
  std::error_code error;
  fs::path at = fs::canonical(directoryOf(file), error);
  if (error)
    return found;
  for (; at != at.root_path(); at = at.parent_path())
    found.push_back(at.string());
  found.push_back(at.string());
  return found;
}

absl::Status checkApart(const std::string &output,
                        std::initializer_list<std::string> inputs) {
  if (output.empty())
    return absl::OkStatus();
  absl::StatusOr<Place> place = findPlace(output);
  if (!place.ok())
    return place.status();
  if (place->direct)
    return absl::OkStatus();
  for (const std::string &input : inputs)
    if (isPartOf(*place, input))
      return absl::InvalidArgumentError(absl::StrCat(
          output, ": found a file of the input ", input,
          ", expected an output apart from it; choose another name"));
  return checkOutsideOfBundles(place->path);
}

absl::StatusOr<std::unique_ptr<OutputFile>>
OutputFile::create(const std::string &path, uint64_t bytes) {
  if (path.empty())
    return absl::InvalidArgumentError(
        "found an empty name of an output file, expected a path");
  absl::StatusOr<Place> place = findPlace(path);
  if (!place.ok())
    return place.status();
  std::unique_ptr<OutputFile> file(new OutputFile);
  file->path_ = place->path;
  if (place->direct) {
    if (absl::Status s = file->writer_.open(path); !s.ok())
      return s;
    return file;
  }
  absl::Status created = createTemporary(place->path, [&](auto &staged) {
    TemporariesLock lock;
    absl::Status status = file->writer_.create(staged);
    if (status.ok())
      file->staged_.hold(staged, lock);
    return status;
  });
  if (!created.ok())
    return created;
  if (absl::Status s = file->writer_.reserve(bytes); !s.ok())
    return s;
  const std::string &staged = file->staged_.path();
  if (place->mode && ::chmod(staged.c_str(), place->mode) != 0)
    return systemError(staged, "setting the permissions", errno);
  return file;
}

OutputFile::~OutputFile() {
  if (!staged_.path().empty())
    ::unlink(staged_.path().c_str());
}

absl::Status OutputFile::commit() {
  if (absl::Status s = writer_.close(); !s.ok())
    return s;
  if (staged_.path().empty())
    return absl::OkStatus();
  TemporariesLock lock;
  if (std::rename(staged_.path().c_str(), path_.c_str()) != 0)
    return systemError(path_, "renaming the finished file", errno);
  staged_.release(lock);
  return absl::OkStatus();
}

absl::Status OutputFile::finish(std::string_view text) {
  if (absl::Status s =
          write({reinterpret_cast<const uint8_t *>(text.data()), text.size()});
      !s.ok())
    return s;
  return commit();
}

absl::Status writeTextFile(const std::string &path, std::string_view text) {
  absl::StatusOr<std::unique_ptr<OutputFile>> file =
      OutputFile::create(path, text.size());
  if (!file.ok())
    return file.status();
  return (*file)->finish(text);
}

} // namespace grok
