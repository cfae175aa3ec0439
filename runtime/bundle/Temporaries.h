// What a command has beside its output until it is done: removed when a signal
// ends the process, and found when nothing could remove it.
#pragma once

#include <string>
#include <string_view>
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
  /// It stays where a signal ends the process, which says `message` then;
  /// empty: it goes again.
  void keep(std::string message, const TemporariesLock &lock);
  /// It is no temporary any more.
  void release(const TemporariesLock &lock);

private:
  friend void removeTemporaries(void (*)(std::string_view));
  std::string path_; // empty: none
  std::string kept_; // the message; empty: it goes
  Temporary *next_ = nullptr;
};

/// Removes a file, or a directory of files. Takes no memory.
void removeTemporary(const char *path);

/// Removes all that are held, but for those that are kept, whose messages go to
/// `report`. For a signal's handler that ends the process: whoever takes the
/// lock afterwards waits for that end.
void removeTemporaries(void (*report)(std::string_view));

/// Each directory PATH.tmp-PID that no process fills any more, as far as its
/// file system can tell.
std::vector<std::string> findLeftovers(const std::string &path);
/// What was found, and how to remove it.
std::string leftoverMessage(const std::string &left);
/// What a directory holds that is kept, and what to do with it.
std::string keptMessage(const std::string &kept);

} // namespace grok
