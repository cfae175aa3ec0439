#include "tools/cli/Signals.h"

#include <cerrno>
#include <csignal>
#include <iterator>
#include <sys/eventfd.h>

#include "runtime/bundle/Temporaries.h"
#include "tools/cli/Printable.h"

namespace grok {
namespace {

/// Dies by the same signal, so that a shell sees what happened.
void removeAndDie(int number) {
  removeTemporaries(cli::writePrintable);
  std::signal(number, SIG_DFL);
  std::raise(number); // comes when the handler returns
}

volatile std::sig_atomic_t deferred = 0; // the last signal; 0: none

void defer(int number) { deferred = number; }

/// Whose default ends the process, but for those that cannot be caught or say
/// that the program is broken.
std::vector<int> endingSignals() {
  std::vector<int> all = {SIGHUP,  SIGINT,    SIGQUIT, SIGUSR1, SIGUSR2,
                          SIGPIPE, SIGALRM,   SIGTERM, SIGXCPU, SIGVTALRM,
                          SIGPROF, SIGSTKFLT, SIGPOLL, SIGPWR};
  for (int number = SIGRTMIN; number <= SIGRTMAX; ++number)
    all.push_back(number);
  return all;
}

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

/// Handles a signal, while all others are held back, unless it is ignored or
/// somebody else's, as SIGPROF is a profiler's. What was there before.
struct sigaction handle(int number, void (*handler)(int)) {
  struct sigaction before = {}, action = {};
  action.sa_handler = handler;
  ::sigfillset(&action.sa_mask);
  if (::sigaction(number, nullptr, &before) == 0 &&
      (before.sa_handler == SIG_DFL || before.sa_handler == removeAndDie))
    ::sigaction(number, &action, nullptr);
  return before;
}

} // namespace

DeferredSignals::DeferredSignals() {
  deferred = 0;
  for (int number : endingSignals())
    before_.emplace_back(number, handle(number, defer));
}

DeferredSignals::~DeferredSignals() {
  for (const auto &[number, before] : before_)
    ::sigaction(number, &before, nullptr);
  if (deferred)
    std::raise(deferred);
}

bool DeferredSignals::pending() { return deferred != 0; }

void removeTemporariesOnSignals() {
  for (int number : endingSignals())
    handle(number, removeAndDie);
}

int stopOnSignals() {
  stopDescriptor = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (stopDescriptor < 0)
    return -1;
  // Before the first handler is there: it reads all of them.
  for (size_t i = 0; i != std::size(kStopSignals); ++i)
    ::sigaction(kStopSignals[i], nullptr, &beforeStop[i]);
  for (int number : kStopSignals)
    handle(number, requestStop);
  return stopDescriptor;
}

} // namespace grok
