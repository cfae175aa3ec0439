#include "tools/cli/Signals.h"

#include <csignal>

#include "runtime/bundle/Temporaries.h"

namespace grok {
namespace {

/// Dies by the same signal, so that a shell sees what happened.
void removeAndDie(int number) {
  removeTemporaries();
  std::signal(number, SIG_DFL);
  std::raise(number); // comes when the handler returns
}

volatile std::sig_atomic_t deferred = 0; // the last signal; 0: none

void defer(int number) { deferred = number; }

} // namespace

DeferredSignals::DeferredSignals() {
  deferred = 0;
  for (size_t i = 0; i != kSignals.size(); ++i) {
    struct sigaction action = {};
    ::sigaction(kSignals[i], nullptr, &before_[i]);
    if (before_[i].sa_handler == SIG_IGN)
      continue;
    action.sa_handler = defer;
    ::sigfillset(&action.sa_mask);
    ::sigaction(kSignals[i], &action, nullptr);
  }
}

DeferredSignals::~DeferredSignals() {
  for (size_t i = 0; i != kSignals.size(); ++i)
    ::sigaction(kSignals[i], &before_[i], nullptr);
  if (deferred)
    std::raise(deferred);
}

bool DeferredSignals::pending() { return deferred != 0; }

void removeTemporariesOnSignals() {
  for (int number :
       {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGXCPU, SIGXFSZ}) {
    struct sigaction before, action = {};
    if (::sigaction(number, nullptr, &before) != 0 ||
        before.sa_handler == SIG_IGN)
      continue;
    action.sa_handler = removeAndDie;
    ::sigfillset(&action.sa_mask);
    ::sigaction(number, &action, nullptr);
  }
}

} // namespace grok
