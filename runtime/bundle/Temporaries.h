// What a command has beside its output until it is done: removed when a signal
// ends the process, and found when nothing could remove it.
#pragma once

#include <string>
#include <vector>

#include "runtime/bundle/SignalsBlocked.h"

namespace grok {

/// While one lives, removeTemporaries() waits, so that a temporary and its
/// record change in one step. The thread's signals are held back; don't nest.
class TemporariesLock {
public:
  TemporariesLock();
  ~TemporariesLock();
  TemporariesLock(const TemporariesLock &) = delete;

private:
  SignalsBlocked blocked_; // until the lock is given back
};

/// The record of a temporary file or a directory of files.
class Temporary {
public:
  Temporary() = default;
  ~Temporary();
  Temporary(const Temporary &) = delete;
  const std::string &path() const { return path_; }
  void hold(std::string path, const TemporariesLock &lock);
  /// It is no temporary any more.
  void release(const TemporariesLock &lock);

private:
  friend void removeTemporaries();
  std::string path_; // empty: none
  Temporary *next_ = nullptr;
};

/// Removes a file, or a directory of files. Takes no memory.
void removeTemporary(const char *path);

/// Removes all that are held. For a signal's handler that ends the process:
/// whoever takes the lock afterwards waits for that end.
void removeTemporaries();

/// Each PATH.tmp-PID that a process left which runs no more.
std::vector<std::string> findLeftovers(const std::string &path);
/// What was found, and how to remove it.
std::string leftoverMessage(const std::string &left);

} // namespace grok
