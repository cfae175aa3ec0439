#include "runtime/bundle/DirectoryLock.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "runtime/bundle/FileIO.h"

namespace grok {

DirectoryLock::~DirectoryLock() {
  if (directory_ >= 0)
    ::close(directory_);
}

DirectoryLock::Owner DirectoryLock::take(const std::string &path) {
  Descriptor opened(
      ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (opened.fd < 0)
    return errno == ENOENT ? Owner::kAnother : Owner::kUnknown;
  if (::flock(opened.fd, LOCK_EX | LOCK_NB) != 0)
    return errno == EWOULDBLOCK ? Owner::kAnother : Owner::kUnknown;
  // Whoever had the lock may have renamed or removed the directory since it was
  // opened.
  struct stat held, there;
  if (::fstat(opened.fd, &held) != 0 || ::lstat(path.c_str(), &there) != 0 ||
      held.st_dev != there.st_dev || held.st_ino != there.st_ino)
    return Owner::kAnother;
  std::swap(directory_, opened.fd);
  return Owner::kThis;
}

} // namespace grok
