// What the tools do about signals that end them.
#pragma once

#include <csignal>
#include <utility>
#include <vector>

namespace grok {

/// From now on every signal whose default ends the process, and that is no sign
/// of a broken program (SIGSEGV, SIGABRT and the like), removes its temporaries
/// first, or says which are kept. Those that are ignored or that somebody else
/// handles stay so.
void removeTemporariesOnSignals();

/// While one lives, these signals only ask for an end: whoever holds what must
/// be given back looks at pending() often, and at its own end the signal does
/// what it would have done. One at a time.
class DeferredSignals {
public:
  DeferredSignals();
  ~DeferredSignals();
  DeferredSignals(const DeferredSignals &) = delete;
  /// True once one has come.
  static bool pending();

private:
  std::vector<std::pair<int, struct sigaction>> before_;
};

/// From now on SIGINT or SIGTERM makes the descriptor that this returns
/// readable; the second one does what it did before. Those that are ignored
/// stay so. -1 if the system has no descriptor left.
int stopOnSignals();

} // namespace grok
