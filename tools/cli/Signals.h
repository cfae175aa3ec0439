// What the tools do about signals that end them.
#pragma once

#include <array>
#include <csignal>

namespace grok {

/// Signals that end the process remove its temporaries first. Those that are
/// ignored stay so.
void removeTemporariesOnSignals();

/// While one lives, SIGINT, SIGTERM and SIGHUP only ask for an end: whoever
/// holds what must be given back looks at pending() often, and at its own end
/// the signal does what it would have done. One at a time.
class DeferredSignals {
public:
  DeferredSignals();
  ~DeferredSignals();
  DeferredSignals(const DeferredSignals &) = delete;
  /// True once such a signal has come.
  static bool pending();

private:
  static constexpr std::array<int, 3> kSignals = {SIGINT, SIGTERM, SIGHUP};
  std::array<struct sigaction, kSignals.size()> before_;
};

/// From now on SIGINT or SIGTERM makes the descriptor that this returns
/// readable; the second one does what it did before. Those that are ignored
/// stay so. -1 if the system has no descriptor left.
int stopOnSignals();

} // namespace grok
