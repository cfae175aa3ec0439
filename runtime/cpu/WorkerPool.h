// Persistent threads that run one job together and meet at barriers. A waiting
// thread spins for some microseconds, as phases are short, and then sleeps.
// Between two barriers the work is cut into shares: each thread has some for
// itself, always the same, so that its caches may still hold what they need,
// and then takes from those that are late because they share their processor.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <thread>
#include <vector>

namespace grok::cpu {

/// The number of threads that the process may run at once (its affinity mask).
unsigned availableThreads();

class WorkerPool {
public:
  /// The caller of run() is thread 0, so threads - 1 are started. Throws
  /// std::system_error if the system has not so many.
  explicit WorkerPool(unsigned threads);
  ~WorkerPool();
  WorkerPool(const WorkerPool &) = delete;

  using Job = void (*)(void *context, unsigned thread);
  /// Runs the job on every thread and returns when all have finished it.
  void run(Job job, void *context);
  /// Called by every thread of a job; returns when all of them have called it.
  /// Everything that was written before is visible behind it.
  void barrier();
  /// A share of the work until the next barrier that no thread has taken yet,
  /// or none. Each thread owns `each` of all, which has to be the same in all
  /// calls between two barriers.
  std::optional<unsigned> takeShare(unsigned thread, unsigned each);

  unsigned threads() const { return count_; }

private:
  void loop(unsigned thread);
  void end();

  /// How many of its shares are taken.
  struct alignas(64) Taken {
    std::atomic<uint32_t> count{0};
  };

  const unsigned count_;
  std::vector<Taken> taken_; // [threads]
  alignas(64) std::atomic<uint32_t> arrived_{0};
  alignas(64) std::atomic<uint32_t> generation_{0};
  alignas(64) std::atomic<uint32_t> jobs_{0};
  Job job_ = nullptr; // null: leave
  void *context_ = nullptr;
  std::vector<std::thread> workers_;
};

} // namespace grok::cpu
