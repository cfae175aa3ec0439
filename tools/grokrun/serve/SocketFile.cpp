#include "tools/grokrun/serve/SocketFile.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "absl/strings/str_cat.h"
#include "runtime/bundle/FileIO.h"

namespace grok::serve {
namespace {

absl::StatusOr<sockaddr_un> addressOf(const std::string &path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  constexpr size_t kMost = sizeof(address.sun_path) - 1;
  if (path.empty() || path.size() > kMost)
    return absl::InvalidArgumentError(absl::StrCat(
        "--socket: found a path of ", path.size(), " bytes, expected 1 to ",
        kMost, ", which is what a socket's address holds"));
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

absl::StatusOr<Descriptor> newSocket(const std::string &path) {
  Descriptor made(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (made.get() < 0)
    return systemError(path, "making a socket", errno);
  return made;
}

/// Held while a server looks at what is there and takes its place, so that two
/// that start together don't remove each other's socket.
absl::StatusOr<Descriptor> lockDirectory(const std::string &path) {
  size_t slash = path.rfind('/');
  std::string directory =
      slash == path.npos ? "." : path.substr(0, std::max<size_t>(slash, 1));
  Descriptor opened(
      ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (opened.get() < 0)
    return systemError(directory, "opening", errno);
  while (::flock(opened.get(), LOCK_EX) != 0)
    if (errno != EINTR)
      return systemError(directory, "locking", errno);
  return opened;
}

/// 0, or the error's number.
int connect(const Descriptor &socket, const sockaddr_un &address) {
  while (::connect(socket.get(), reinterpret_cast<const sockaddr *>(&address),
                   sizeof address) != 0)
    if (errno != EINTR)
      return errno;
  return 0;
}

/// Removes a socket that nobody listens at.
absl::Status removeStale(const std::string &path, const sockaddr_un &address) {
  struct stat found;
  if (::lstat(path.c_str(), &found) != 0)
    return errno == ENOENT ? absl::OkStatus()
                           : systemError(path, "looking", errno);
  if (!S_ISSOCK(found.st_mode))
    return absl::AlreadyExistsError(
        absl::StrCat(path, ": found a file that is no socket, expected none or "
                           "one that a server left"));
  absl::StatusOr<Descriptor> probe = newSocket(path);
  if (!probe.ok())
    return probe.status();
  // A full backlog is a server too: don't wait in it.
  ::fcntl(probe->get(), F_SETFL, O_NONBLOCK);
  int error = connect(*probe, address);
  if (error == 0 || error == EAGAIN)
    return absl::AlreadyExistsError(absl::StrCat(
        path, ": found a server that listens there, expected none; stop it or "
              "give another path"));
  if (error != ECONNREFUSED)
    return systemError(path, "connecting", error);
  return ::unlink(path.c_str()) == 0 ? absl::OkStatus()
                                     : systemError(path, "removing", errno);
}

} // namespace

/// The file has no more permissions than `mode` at any time.
absl::Status SocketFile::bindTo(const std::string &path,
                                const sockaddr_un &address, mode_t mode) {
  constexpr int kBacklog = 128;
  // What the file gets when it is made; the user's mask may take from it.
  if (::fchmod(socket_.get(), mode) != 0)
    return systemError(path, "setting its permissions", errno);
  TemporariesLock lock;
  if (::bind(socket_.get(), reinterpret_cast<const sockaddr *>(&address),
             sizeof address) != 0)
    return systemError(path, "making the socket", errno);
  file_.hold(path, lock);
  struct stat made;
  if (::lstat(path.c_str(), &made) != 0)
    return systemError(path, "looking", errno);
  device_ = made.st_dev;
  inode_ = made.st_ino;
  if (::chmod(path.c_str(), mode) != 0)
    return systemError(path, "setting its permissions", errno);
  if (::listen(socket_.get(), kBacklog) != 0)
    return systemError(path, "listening", errno);
  return absl::OkStatus();
}

absl::Status SocketFile::open(const std::string &path, mode_t mode) {
  absl::StatusOr<sockaddr_un> address = addressOf(path);
  if (!address.ok())
    return address.status();
  absl::StatusOr<Descriptor> lock = lockDirectory(path);
  if (!lock.ok())
    return lock.status();
  if (absl::Status status = removeStale(path, *address); !status.ok())
    return status;
  absl::StatusOr<Descriptor> made = newSocket(path);
  if (!made.ok())
    return made.status();
  socket_ = *std::move(made);
  ::fcntl(socket_.get(), F_SETFL, O_NONBLOCK);
  absl::Status status = bindTo(path, *address, mode);
  if (!status.ok())
    close();
  return status;
}

void SocketFile::close() {
  if (!file_.path().empty()) {
    TemporariesLock lock;
    struct stat found;
    if (::lstat(file_.path().c_str(), &found) == 0 && found.st_dev == device_ &&
        found.st_ino == inode_)
      ::unlink(file_.path().c_str());
    file_.release(lock);
  }
  socket_.reset();
}

absl::StatusOr<Descriptor> connectTo(const std::string &path) {
  absl::StatusOr<sockaddr_un> address = addressOf(path);
  if (!address.ok())
    return address.status();
  absl::StatusOr<Descriptor> made = newSocket(path);
  if (!made.ok())
    return made;
  int error = connect(*made, *address);
  if (error == 0)
    return made;
  absl::Status status = systemError(path, "connecting", error);
  return absl::Status(status.code(),
                      absl::StrCat(std::string(status.message()),
                                   "; is grokrun serve running there?"));
}

} // namespace grok::serve
