#include "runtime/bundle/Worker.h"

#include <new>
#include <utility>

#include "runtime/bundle/SignalsBlocked.h"

namespace grok {

absl::Status callCaught(absl::FunctionRef<absl::Status()> job) {
  try {
    return job();
  } catch (const std::bad_alloc &) {
    return absl::ResourceExhaustedError("out of memory");
  }
}

Worker::Worker(size_t waiting) : waiting_(waiting) {
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
      Job job = std::move(jobs_.front());
      lock.unlock();
      absl::Status status = callCaught(job);
      lock.lock();
      status_ = std::move(status);
    }
    jobs_.pop_front();
    changed_.notify_all();
  }
}

} // namespace grok
