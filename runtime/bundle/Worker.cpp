#include "runtime/bundle/Worker.h"

#include <csignal>
#include <utility>

namespace grok {

Worker::Worker(size_t waiting) : waiting_(waiting) {
  // Signals go to the program's own threads, whose handlers know what to do.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
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
      absl::Status status = job();
      lock.lock();
      status_ = std::move(status);
    }
    jobs_.pop_front();
    changed_.notify_all();
  }
}

} // namespace grok
