#include "runtime/bundle/Worker.h"

#include <csignal>
#include <new>
#include <utility>

namespace grok {
namespace {

/// Signals go to other threads while it lives.
class SignalsBlocked {
public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked &) = delete;

private:
  sigset_t before_;
};

/// What a thread lets through ends the process.
absl::Status call(const Worker::Job &job) {
  try {
    return job();
  } catch (const std::bad_alloc &) {
    return absl::ResourceExhaustedError("out of memory");
  }
}

} // namespace

Worker::Worker(size_t waiting) : waiting_(waiting) {
  // The program's own threads have handlers that know what to do.
  SignalsBlocked blocked;
  thread_ = std::thread([this] { run(); });
}

Worker::~Worker() {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

absl::Status Worker::give(Job job) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return jobs_.size() <= waiting_; });
  jobs_.push_back(std::move(job));
  changed_.notify_all();
  return status_;
}

absl::Status Worker::drain() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return jobs_.empty(); });
  return status_;
}

void Worker::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return ending_ || !jobs_.empty(); });
    if (jobs_.empty())
      return;
    if (status_.ok()) {
      Job job = jobs_.front();
      lock.unlock();
      absl::Status status = call(job);
      lock.lock();
      status_ = std::move(status);
    }
    jobs_.pop_front();
    changed_.notify_all();
  }
}

} // namespace grok
