#include "tools/cli/Signals.h"

#include <cerrno>
#include <csignal>
#include <iterator>
#include <sys/eventfd.h>

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

constexpr int kStopSignals[] = {SIGINT, SIGTERM};
int stopDescriptor = -1;
struct sigaction beforeStop[std::size(kStopSignals)];

void requestStop(int) {
  const int error = errno; // of whom it interrupts
  for (size_t i = 0; i != std::size(kStopSignals); ++i)
    ::sigaction(kStopSignals[i], &beforeStop[i], nullptr);
  ::eventfd_write(stopDescriptor, 1);
  errno = error;
}

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

int stopOnSignals() {
  stopDescriptor = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (stopDescriptor < 0)
    return -1;
  struct sigaction action = {};
  action.sa_handler = requestStop;
  ::sigfillset(&action.sa_mask);
  for (size_t i = 0; i != std::size(kStopSignals); ++i)
    ::sigaction(kStopSignals[i], nullptr, &beforeStop[i]);
  for (size_t i = 0; i != std::size(kStopSignals); ++i)
    if (beforeStop[i].sa_handler != SIG_IGN)
      ::sigaction(kStopSignals[i], &action, nullptr);
  return stopDescriptor;
}

} // namespace grok
