// Files of a bundle: read whole, mapped, or written so that they are whole or
// absent.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <unistd.h>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/bundle/DirectoryLock.h"
#include "runtime/bundle/Temporaries.h"

namespace grok {

using ProgressFn = std::function<void(uint64_t done, uint64_t total)>;

/// "WHAT: the error's name; what to do" of an errno. Never Internal or Unknown:
/// what a file system refuses is no fault of ours.
absl::Status fileError(int error, const std::string &what);
/// "PATH: DOING: the system's reason", with a code that fits errno.
absl::Status systemError(const std::string &path, const std::string &doing,
                         int error);

/// A descriptor that closes itself.
struct Descriptor {
  int fd = -1;
  explicit Descriptor(int f) : fd(f) {}
  ~Descriptor() {
    if (fd >= 0)
      ::close(fd);
  }
  Descriptor(const Descriptor &) = delete;
};

/// Bytes of a regular file that is no symbolic link; anything else at `path`
/// is an error that says what it is.
absl::StatusOr<uint64_t> regularFileSize(const std::string &path);

/// A file's text; FailedPrecondition if it has more than `limit` bytes.
absl::StatusOr<std::string> readWholeFile(const std::string &path,
                                          uint64_t limit);

/// Reads some of a file's bytes from byte `at` on, at least one; DataLoss,
/// "found AT bytes, expected EXPECTED", if there are no more.
absl::StatusOr<size_t> readAt(int file, const std::string &path, uint64_t at,
                              std::span<uint8_t> out,
                              const std::string &expected);

/// Passes a file's bytes in order to `sink`, in pieces of a few MiB.
absl::Status
streamFile(const std::string &path,
           const std::function<absl::Status(std::span<const uint8_t>)> &sink);

/// Read-only memory map of a file of `bytes` bytes.
absl::StatusOr<std::span<const uint8_t>> mapFile(const std::string &path,
                                                 uint64_t bytes);
void unmapFile(std::span<const uint8_t> bytes);
/// Takes a mapping's pages out of the process; the system keeps them cached.
void releasePages(std::span<const uint8_t> bytes);

/// Reserves space for a file's `bytes` where the file system can do that.
/// ResourceExhausted with the numbers if there is less.
absl::Status reserveSpace(int file, const std::string &path, uint64_t bytes);
/// Waits until bytes of a file are on the disk, then gives back the memory of
/// the system's cache that holds them.
absl::Status giveBackCache(int file, const std::string &path, uint64_t offset,
                           uint64_t bytes);
/// Everything is on the disk when it returns. A device or a pipe knows no such
/// thing.
absl::Status syncFile(int file, const std::string &path);

/// Names in a directory, sorted, without "." and "..".
absl::StatusOr<std::vector<std::string>> listDirectory(const std::string &path);

/// Calls `make` with PATH.tmp-PID, PATH.tmp-PID-1, ... until the name is free:
/// `make` returns AlreadyExists where it isn't.
absl::Status
createTemporary(const std::string &path,
                const std::function<absl::Status(const std::string &)> &make);

/// A file that is written front to back.
class FileWriter {
public:
  FileWriter() = default;
  ~FileWriter();
  FileWriter(const FileWriter &) = delete;
  /// Creates the file; it must not be there.
  absl::Status create(const std::string &path);
  /// Opens what is there, to add to it: a device, a pipe.
  absl::Status open(const std::string &path);
  /// Reserves space for `bytes` where the file system can do that.
  absl::Status reserve(uint64_t bytes);
  absl::Status write(std::span<const uint8_t> bytes);
  /// Everything is on the disk when it returns.
  absl::Status sync();
  absl::Status close(); // syncs first

private:
  std::string path_;
  int file_ = -1;
};

/// A directory that is filled beside its place and then renamed: PATH.tmp-PID,
/// locked until then.
class StagedDirectory {
public:
  StagedDirectory() = default;
  ~StagedDirectory(); // removes what was not committed
  StagedDirectory(const StagedDirectory &) = delete;
  absl::Status create(const std::string &path);
  /// Takes over what a run that was killed left beside PATH; NotFound if
  /// another run was faster.
  absl::Status adopt(const std::string &path, const std::string &left);
  const std::string &path() const { return staged_.path(); }
  /// It stays where a signal ends the process before it is committed, for a
  /// later run.
  void keepOnSignals();
  /// Puts the directory into its place; `replace`: one is there, which goes
  /// away afterwards. `without`: a file that is removed first, but in one step
  /// with that where a signal comes; empty: none.
  absl::Status commit(bool replace, const std::string &without = "");

private:
  absl::Status removeLast(const std::string &file, const TemporariesLock &lock);
  absl::Status putIntoPlace(bool replace, const TemporariesLock &lock);
  absl::Status moveAside(std::string &old);
  std::string target_;
  Temporary staged_;
  DirectoryLock lock_, replacedLock_; // the second of what is replaced
};

} // namespace grok
