#include "runtime/bundle/Temporaries.h"

#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "runtime/bundle/BundleCheck.h"
#include "runtime/bundle/DirectoryLock.h"
#include "runtime/bundle/FileIO.h"

namespace grok {
namespace {

std::atomic_flag locked;
Temporary *first = nullptr; // under the lock

void takeLock() {
  while (locked.test_and_set(std::memory_order_acquire))
    ::sched_yield();
}

/// Removes the files in a directory. readdir allocates, which neither a handler
/// of signals may do nor a destructor.
void removeFilesIn(const char *path) {
  int directory = ::open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0)
    return;
  alignas(dirent64) char entries[4096];
  long bytes;
  while ((bytes = ::syscall(SYS_getdents64, directory, entries,
                            sizeof(entries))) > 0)
    for (long at = 0; at < bytes;) {
      auto *entry = reinterpret_cast<const dirent64 *>(entries + at);
      ::unlinkat(directory, entry->d_name, 0);
      at += entry->d_reclen;
    }
  ::close(directory);
}

/// Whether a name ends as a temporary's, after ".tmp-": PID or PID-N.
bool isTemporaryEnd(const std::string &text) {
  pid_t pid = 0;
  unsigned number = 0;
  const char *end = text.data() + text.size();
  auto [stop, error] = std::from_chars(text.data(), end, pid);
  if (error != std::errc() || pid <= 0)
    return false;
  if (stop == end)
    return true;
  if (*stop != '-')
    return false;
  auto [last, bad] = std::from_chars(stop + 1, end, number);
  return bad == std::errc() && last == end;
}

/// For a shell, whatever is in the name.
std::string removalOf(const std::string &path) {
  return absl::StrCat("rm -r -- '", absl::StrReplaceAll(path, {{"'", "'\\''"}}),
                      "'");
}

} // namespace

TemporariesLock::TemporariesLock() { takeLock(); }

TemporariesLock::~TemporariesLock() { locked.clear(std::memory_order_release); }

Temporary::~Temporary() {
  if (!path_.empty())
    release(TemporariesLock());
}

void Temporary::hold(std::string path, const TemporariesLock &lock) {
  release(lock);
  path_ = std::move(path);
  next_ = std::exchange(first, this);
}

void Temporary::keep(std::string message, const TemporariesLock &) {
  kept_ = std::move(message);
}

void Temporary::release(const TemporariesLock &) {
  for (Temporary **at = &first; *at; at = &(*at)->next_)
    if (*at == this) {
      *at = next_;
      break;
    }
  path_.clear();
  kept_.clear();
}

void removeTemporary(const char *path) {
  constexpr int kTries =
      100; // other threads may add files until rmdir succeeds
  if (::unlink(path) == 0)
    return;
  for (int i = 0; i != kTries; ++i) {
    removeFilesIn(path);
    if (::rmdir(path) == 0 || errno != ENOTEMPTY)
      return;
  }
}

void removeTemporaries(void (*report)(std::string_view)) {
  takeLock();
  for (const Temporary *t = first; t; t = t->next_)
    if (t->kept_.empty())
      removeTemporary(t->path_.c_str());
    else
      report(t->kept_);
}

std::vector<std::string> findLeftovers(const std::string &given) {
  std::string path = trimSlashes(given);
  size_t slash = path.rfind('/');
  std::string directory = slash == path.npos ? "" : path.substr(0, slash + 1);
  std::string start = path.substr(directory.size()) + ".tmp-";
  std::vector<std::string> left;
  auto names = listDirectory(directory.empty() ? "." : directory);
  if (!names.ok())
    return left; // writing there will tell
  for (const std::string &name : *names) {
    DirectoryLock lock;
    if (name.rfind(start, 0) == 0 &&
        isTemporaryEnd(name.substr(start.size())) &&
        lock.take(directory + name) == DirectoryLock::Owner::kThis)
      left.push_back(directory + name);
  }
  return left;
}

std::string leftoverMessage(const std::string &left) {
  return absl::StrCat(left,
                      ": found what an interrupted run left; remove it with ",
                      removalOf(left));
}

std::string keptMessage(const std::string &kept) {
  return absl::StrCat("remark: ", kept,
                      ": keeps what is packed; the same command goes on with "
                      "it, ",
                      removalOf(kept), " removes it\n");
}

} // namespace grok
