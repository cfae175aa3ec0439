#include "runtime/bundle/FileIO.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"

namespace grok {
namespace {

constexpr size_t kPieceBytes = 4 << 20;

const char *kindName(mode_t mode) {
  if (S_ISDIR(mode))
    return "a directory";
  if (S_ISLNK(mode))
    return "a symbolic link";
  return "a special file";
}

constexpr const char *kRaiseFileLimit =
    "; raise the limit, ulimit -f, or choose another file system";

/// What to do about an error, where its name does not say so.
const char *remedyFor(int error) {
  switch (error) {
  case ELOOP:
    return "; make the link in it lead to what it should, not to itself";
  case EACCES:
  case EPERM:
    return "; give yourself the right to it or choose another place";
  case EROFS:
    return "; choose another place";
  case ENAMETOOLONG:
    return "; choose a shorter one";
  case ENOSPC:
  case EDQUOT:
    return "; free some space or choose another place";
  case EFBIG:
    return kRaiseFileLimit;
  case EIO:
    return "; the disk may be failing, look at the system's log";
  case ESTALE:
    return "; mount its file system again";
  case EMFILE:
    return "; raise the limit, ulimit -n";
  default:
    return "";
  }
}

absl::StatusOr<size_t> readSome(int fd, const std::string &path, char *out,
                                size_t bytes) {
  while (true) {
    ssize_t got = ::read(fd, out, bytes);
    if (got >= 0)
      return size_t(got);
    if (errno != EINTR)
      return systemError(path, "reading", errno);
  }
}

absl::Status syncDirectory(const std::string &path) {
  Descriptor d(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // Some file systems know no fsync of directories; that is no fault.
  if (d.fd < 0 || (::fsync(d.fd) != 0 && errno != EINVAL))
    return systemError(path, "writing to disk", errno);
  return absl::OkStatus();
}

std::string parentOf(const std::string &path) {
  size_t slash = path.rfind('/');
  if (slash == path.npos)
    return ".";
  return slash ? path.substr(0, slash) : "/";
}

} // namespace

absl::Status fileError(int error, const std::string &what) {
  absl::Status status = absl::ErrnoToStatus(error, what);
  // Abseil has no code for the rest; a file system's fault is never ours.
  absl::StatusCode code = status.code() == absl::StatusCode::kUnknown ||
                                  status.code() == absl::StatusCode::kInternal
                              ? absl::StatusCode::kFailedPrecondition
                              : status.code();
  return absl::Status(
      code, absl::StrCat(std::string(status.message()), remedyFor(error)));
}

absl::Status systemError(const std::string &path, const std::string &doing,
                         int error) {
  return fileError(error, absl::StrCat(path, ": ", doing));
}

absl::StatusOr<size_t> readAt(int file, const std::string &path, uint64_t at,
                              std::span<uint8_t> out,
                              const std::string &expected) {
  ssize_t got;
  do
    got = ::pread(file, out.data(), out.size(), off_t(at));
  while (got < 0 && errno == EINTR);
  if (got < 0)
    return systemError(path, "reading", errno);
  if (got == 0)
    return absl::DataLossError(
        absl::StrCat(path, ": found ", at, " bytes, expected ", expected,
                     "; another program made it shorter"));
  return size_t(got);
}

absl::StatusOr<uint64_t> regularFileSize(const std::string &path) {
  struct stat info;
  if (::lstat(path.c_str(), &info) != 0)
    return systemError(path, "opening", errno);
  if (!S_ISREG(info.st_mode))
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": found ", kindName(info.st_mode), ", expected a file"));
  return uint64_t(info.st_size);
}

absl::StatusOr<std::string> readWholeFile(const std::string &path,
                                          uint64_t limit) {
  absl::StatusOr<uint64_t> bytes = regularFileSize(path);
  if (!bytes.ok())
    return bytes.status();
  if (*bytes > limit)
    return absl::FailedPreconditionError(absl::StrCat(
        path, ": found ", *bytes, " bytes, expected at most ", limit));
  Descriptor d(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  if (d.fd < 0)
    return systemError(path, "opening", errno);
  std::string text(size_t(*bytes), '\0');
  for (size_t at = 0; at < text.size();) {
    absl::StatusOr<size_t> got =
        readSome(d.fd, path, text.data() + at, text.size() - at);
    if (!got.ok())
      return got.status();
    if (*got == 0)
      return absl::FailedPreconditionError(
          absl::StrCat(path, ": became shorter while it was read"));
    at += *got;
  }
  return text;
}

absl::Status
streamFile(const std::string &path,
           const std::function<absl::Status(std::span<const uint8_t>)> &sink) {
  Descriptor d(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  if (d.fd < 0)
    return systemError(path, "opening", errno);
  ::posix_fadvise(d.fd, 0, 0, POSIX_FADV_SEQUENTIAL);
  std::vector<uint8_t> piece(kPieceBytes);
  while (true) {
    absl::StatusOr<size_t> got = readSome(
        d.fd, path, reinterpret_cast<char *>(piece.data()), piece.size());
    if (!got.ok())
      return got.status();
    if (*got == 0)
      return absl::OkStatus();
    if (absl::Status status = sink({piece.data(), *got}); !status.ok())
      return status;
  }
}

absl::StatusOr<std::span<const uint8_t>> mapFile(const std::string &path,
                                                 uint64_t bytes) {
  if (bytes == 0)
    return std::span<const uint8_t>();
  Descriptor d(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  if (d.fd < 0)
    return systemError(path, "opening", errno);
  struct stat info;
  if (::fstat(d.fd, &info) != 0)
    return systemError(path, "opening", errno);
  if (uint64_t(info.st_size) != bytes)
    return absl::FailedPreconditionError(absl::StrCat(
        path, ": found ", info.st_size, " bytes, expected ", bytes));
  void *at = ::mmap(nullptr, size_t(bytes), PROT_READ, MAP_SHARED, d.fd, 0);
  if (at == MAP_FAILED)
    return systemError(path, "mapping", errno);
  return std::span(static_cast<const uint8_t *>(at), size_t(bytes));
}

void unmapFile(std::span<const uint8_t> bytes) {
  if (!bytes.empty())
    ::munmap(const_cast<uint8_t *>(bytes.data()), bytes.size());
}

void releasePages(std::span<const uint8_t> bytes) {
  if (!bytes.empty())
    ::madvise(const_cast<uint8_t *>(bytes.data()), bytes.size(), MADV_DONTNEED);
}

absl::StatusOr<std::vector<std::string>>
listDirectory(const std::string &path) {
  DIR *directory = ::opendir(path.c_str());
  if (!directory)
    return systemError(path, "opening", errno);
  std::vector<std::string> names;
  while (dirent *entry = ::readdir(directory)) {
    std::string name = entry->d_name;
    if (name != "." && name != "..")
      names.push_back(name);
  }
  ::closedir(directory);
  std::sort(names.begin(), names.end());
  return names;
}

FileWriter::~FileWriter() {
  if (file_ >= 0)
    ::close(file_);
}

absl::Status
createTemporary(const std::string &path,
                const std::function<absl::Status(const std::string &)> &make) {
  constexpr int kMaxNames = 1000; // more are no accident
  std::string name = absl::StrCat(path, ".tmp-", ::getpid());
  absl::Status status = make(name);
  for (int n = 1; n != kMaxNames && absl::IsAlreadyExists(status); ++n)
    status = make(absl::StrCat(name, "-", n));
  const std::string directory = parentOf(path);
  if (absl::IsNotFound(status) && ::access(directory.c_str(), F_OK) != 0)
    return absl::NotFoundError(
        absl::StrCat(path, ": found no directory ", directory,
                     " to write it in, expected one; create it or choose "
                     "another place"));
  return status;
}

absl::Status FileWriter::create(const std::string &path) {
  path_ = path;
  file_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file_ < 0)
    return systemError(path, "creating", errno);
  return absl::OkStatus();
}

absl::Status FileWriter::open(const std::string &path) {
  path_ = path;
  file_ = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (file_ < 0)
    return systemError(path, "opening", errno);
  return absl::OkStatus();
}

absl::Status reserveSpace(int file, const std::string &path, uint64_t bytes) {
  struct statvfs fs;
  uint64_t available =
      ::fstatvfs(file, &fs) == 0 ? uint64_t(fs.f_bavail) * fs.f_frsize : bytes;
  int error = 0;
  // Where the system cannot reserve, the number of free blocks must do.
  if (bytes > available)
    error = ENOSPC;
  else if (bytes && ::fallocate(file, 0, 0, off_t(bytes)) != 0)
    error = errno;
  if (error == ENOSPC)
    return absl::ResourceExhaustedError(
        absl::StrCat(path, ": needs ", bytes, " bytes, ", available,
                     " are available on the disk", remedyFor(error)));
  if (error == EFBIG)
    return absl::ResourceExhaustedError(absl::StrCat(
        path, ": needs ", bytes, " bytes, more than a file may have here",
        kRaiseFileLimit));
  return absl::OkStatus();
}

absl::Status syncFile(int file, const std::string &path) {
  if (::fsync(file) == 0 || errno == EINVAL || errno == EROFS)
    return absl::OkStatus();
  return systemError(path, "writing", errno);
}

absl::Status giveBackCache(int file, const std::string &path, uint64_t offset,
                           uint64_t bytes) {
  constexpr unsigned kWritten = SYNC_FILE_RANGE_WAIT_BEFORE |
                                SYNC_FILE_RANGE_WRITE |
                                SYNC_FILE_RANGE_WAIT_AFTER;
  // An error of the disk is reported once: no later fsync says it again.
  if (::sync_file_range(file, off_t(offset), off_t(bytes), kWritten) != 0 &&
      errno != ENOSYS)
    return systemError(path, "writing", errno);
  ::posix_fadvise(file, off_t(offset), off_t(bytes), POSIX_FADV_DONTNEED);
  return absl::OkStatus();
}

absl::Status FileWriter::reserve(uint64_t bytes) {
  return reserveSpace(file_, path_, bytes);
}

absl::Status FileWriter::write(std::span<const uint8_t> bytes) {
  while (!bytes.empty()) {
    ssize_t put = ::write(file_, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR)
      continue;
    if (put < 0)
      return systemError(path_, "writing", errno);
    bytes = bytes.subspan(size_t(put));
  }
  return absl::OkStatus();
}

absl::Status FileWriter::sync() { return syncFile(file_, path_); }

absl::Status FileWriter::close() {
  absl::Status status = sync();
  bool closed = ::close(file_) == 0;
  file_ = -1;
  if (status.ok() && !closed)
    return systemError(path_, "writing", errno);
  return status;
}

StagedDirectory::~StagedDirectory() {
  if (!path().empty())
    removeTemporary(path().c_str());
}

absl::Status StagedDirectory::create(const std::string &path) {
  target_ = path;
  return createTemporary(path, [&](const std::string &staged) {
    TemporariesLock lock;
    if (::mkdir(staged.c_str(), 0777) != 0)
      return systemError(staged, "creating", errno);
    // Before the lock is taken, another run may take it for a leftover.
    if (lock_.take(staged) == DirectoryLock::Owner::kAnother) {
      ::rmdir(staged.c_str());
      return absl::AlreadyExistsError(staged);
    }
    staged_.hold(staged, lock);
    return absl::OkStatus();
  });
}

void StagedDirectory::keepOnSignals() {
  std::string message = keptMessage(path());
  TemporariesLock lock;
  staged_.keep(std::move(message), lock);
}

absl::Status StagedDirectory::adopt(const std::string &path,
                                    const std::string &left) {
  target_ = path;
  if (lock_.take(left) != DirectoryLock::Owner::kThis)
    return absl::NotFoundError(left);
  return createTemporary(path, [&](const std::string &staged) {
    TemporariesLock lock;
    if (::renameat2(AT_FDCWD, left.c_str(), AT_FDCWD, staged.c_str(),
                    RENAME_NOREPLACE) != 0)
      return systemError(staged, "creating", errno);
    staged_.hold(staged, lock);
    return absl::OkStatus();
  });
}

absl::Status StagedDirectory::commit(bool replace, const std::string &without) {
  {
    TemporariesLock lock;
    absl::Status status = removeLast(without, lock);
    if (status.ok())
      status = syncDirectory(path()); // so that no power failure undoes it
    if (status.ok())
      status = putIntoPlace(replace, lock);
    if (!status.ok())
      return status;
  }
  return syncDirectory(parentOf(target_));
}

absl::Status StagedDirectory::removeLast(const std::string &file,
                                         const TemporariesLock &lock) {
  staged_.keep("", lock);
  std::string place = absl::StrCat(path(), "/", file);
  if (!file.empty() && ::unlink(place.c_str()) != 0)
    return systemError(place, "removing", errno);
  return absl::OkStatus();
}

/// Where names cannot be exchanged. Under the name of a temporary, so that what
/// a killed run leaves of it is named by the next.
absl::Status StagedDirectory::moveAside(std::string &old) {
  return createTemporary(target_, [&](const std::string &name) {
    if (::mkdir(name.c_str(), 0777) != 0)
      return systemError(name, "creating", errno);
    old = name;
    if (::rename(target_.c_str(), name.c_str()) == 0)
      return absl::OkStatus();
    int error = errno;
    ::rmdir(name.c_str());
    return systemError(target_, "replacing", error);
  });
}

/// What goes away afterwards is the temporary then.
absl::Status StagedDirectory::putIntoPlace(bool replace,
                                           const TemporariesLock &lock) {
  if (replace) // so that no other run takes it for a leftover
    replacedLock_.take(target_);
  if (replace && ::renameat2(AT_FDCWD, path().c_str(), AT_FDCWD,
                             target_.c_str(), RENAME_EXCHANGE) == 0)
    return absl::OkStatus();
  std::string old;
  if (replace)
    if (absl::Status status = moveAside(old); !status.ok())
      return status;
  if (::rename(path().c_str(), target_.c_str()) != 0) {
    int error = errno;
    if (replace)
      ::rename(old.c_str(), target_.c_str());
    if (error == ENOTEMPTY || error == EEXIST)
      return absl::AlreadyExistsError(absl::StrCat(
          target_, ": found what another process has put there meanwhile, "
                   "expected nothing; run this again to replace it"));
    return systemError(target_, "putting into place", error);
  }
  staged_.release(lock);
  if (replace)
    staged_.hold(old, lock);
  return absl::OkStatus();
}

} // namespace grok
