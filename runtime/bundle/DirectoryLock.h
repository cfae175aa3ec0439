// Whether the process that fills a directory still runs.
#pragma once

#include <string>

namespace grok {

/// A lock on a directory, for as long as its process runs: numbers of processes
/// say nothing, since a container has its own, and they are used again.
class DirectoryLock {
public:
  enum class Owner { kThis, kAnother, kUnknown };
  DirectoryLock() = default;
  ~DirectoryLock();
  DirectoryLock(const DirectoryLock &) = delete;
  /// Takes the lock, never waiting. kAnother: another one has it, or has
  /// renamed or removed the directory. kUnknown: the file system has no such
  /// locks, or the directory may not be read.
  Owner take(const std::string &path);

private:
  int directory_ = -1; // open while it is locked
};

} // namespace grok
