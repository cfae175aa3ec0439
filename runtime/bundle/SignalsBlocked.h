// Keeps signals from a thread.
#pragma once

#include <csignal>

namespace grok {

/// While one lives, signals go to other threads: the program's own have
/// handlers that know what to do. A thread that is started meanwhile never gets
/// any. Those that the thread's own instructions raise still arrive: the system
/// ends the process, past every handler, where one of these is blocked.
class SignalsBlocked {
public:
  SignalsBlocked() {
    sigset_t all;
    ::sigfillset(&all);
    for (int own : {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP, SIGSYS})
      ::sigdelset(&all, own);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked &) = delete;

private:
  sigset_t before_;
};

} // namespace grok
