#include "runtime/bundle/Temporaries.h"

#include <atomic>
#include <cerrno>
#include <charconv>
#include <csignal>
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

/// The process of a temporary's name after ".tmp-": PID or PID-N; 0: none.
pid_t processOf(const std::string &text) {
  pid_t pid = 0;
  unsigned number = 0;
  const char *end = text.data() + text.size();
  auto [stop, error] = std::from_chars(text.data(), end, pid);
  if (error != std::errc() || pid <= 0)
    return 0;
  if (stop == end)
    return pid;
  if (*stop != '-')
    return 0;
  auto [last, bad] = std::from_chars(stop + 1, end, number);
  return bad == std::errc() && last == end ? pid : 0;
}

bool isRunning(pid_t pid) {
  return pid != ::getpid() && (::kill(pid, 0) == 0 || errno != ESRCH);
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

void Temporary::release(const TemporariesLock &) {
  for (Temporary **at = &first; *at; at = &(*at)->next_)
    if (*at == this) {
      *at = next_;
      break;
    }
  path_.clear();
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

void removeTemporaries() {
  takeLock();
  for (const Temporary *t = first; t; t = t->next_)
    removeTemporary(t->path_.c_str());
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
    pid_t pid =
        name.rfind(start, 0) == 0 ? processOf(name.substr(start.size())) : 0;
    if (!pid || isRunning(pid))
      continue;
    left.push_back(directory + name);
  }
  return left;
}

std::string leftoverMessage(const std::string &left) {
  return absl::StrCat(left, ": found what an interrupted run left, process ",
                      processOf(left.substr(left.rfind(".tmp-") + 5)),
                      " which runs no more here; remove it with rm -r '",
                      absl::StrReplaceAll(left, {{"'", "'\\''"}}), "'");
}

} // namespace grok
