// A thread that does jobs in order, beside whoever gives them.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

namespace grok {

/// What `job` returns; ResourceExhausted if it lacks memory. What a thread lets
/// through ends the process.
absl::Status callCaught(absl::FunctionRef<absl::Status()> job);

class Worker {
public:
  using Job = std::function<absl::Status()>;

  /// `waiting`: jobs that may wait before give() does. Throws std::system_error
  /// if the system has no thread left.
  explicit Worker(size_t waiting);
  ~Worker(); // after the jobs that wait are done
  Worker(const Worker &) = delete;

  /// The first error of any job so far; the jobs after it are not done.
  absl::Status give(Job job);
  /// Returns when all jobs are done.
  absl::Status drain();

private:
  void run();

  const size_t waiting_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_; // the first may be in progress
  bool ending_ = false;
  absl::Status status_;
  std::thread thread_; // last: it uses the others
};

} // namespace grok
