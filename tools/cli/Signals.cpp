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

} // namespace

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
