// Keeps signals from a thread.
#pragma once

#include <csignal>

namespace grok {

/// While one lives, signals go to other threads: the program's own have
/// handlers that know what to do. A thread that is started meanwhile never gets
/// any.
class SignalsBlocked {
public:
  SignalsBlocked() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked &) = delete;

private:
  sigset_t before_;
};

} // namespace grok
