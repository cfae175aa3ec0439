#include "runtime/cpu/WorkerPool.h"

#include <sched.h>

namespace grok::cpu {
namespace {

/// Pauses before a waiting thread sleeps: about as long as a few phases of a
/// small model take.
constexpr unsigned kSpins = 1 << 12;

void pause() {
#ifdef __x86_64__
  __builtin_ia32_pause();
#endif
}

void waitWhile(std::atomic<uint32_t> &word, uint32_t value) {
  for (unsigned i = 0; i != kSpins; ++i, pause())
    if (word.load(std::memory_order_acquire) != value)
      return;
  word.wait(value, std::memory_order_acquire);
}

} // namespace

unsigned availableThreads() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0)
    return unsigned(CPU_COUNT(&set));
  unsigned all = std::thread::hardware_concurrency();
  return all ? all : 1;
}

WorkerPool::WorkerPool(unsigned threads) : count_(threads) {
  for (unsigned i = 1; i < count_; ++i)
    workers_.emplace_back([this, i] { loop(i); });
}

WorkerPool::~WorkerPool() {
  job_ = nullptr;
  jobs_.fetch_add(1, std::memory_order_release);
  jobs_.notify_all();
  for (std::thread &worker : workers_)
    worker.join();
}

void WorkerPool::loop(unsigned thread) {
  for (uint32_t seen = 0;; ++seen) {
    waitWhile(jobs_, seen);
    if (!job_)
      return;
    job_(context_, thread);
    barrier();
  }
}

void WorkerPool::run(Job job, void *context) {
  job_ = job;
  context_ = context;
  jobs_.fetch_add(1, std::memory_order_release);
  jobs_.notify_all();
  job(context, 0);
  barrier();
}

void WorkerPool::barrier() {
  uint32_t generation = generation_.load(std::memory_order_relaxed);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == count_) {
    arrived_.store(0, std::memory_order_relaxed);
    generation_.store(generation + 1, std::memory_order_release);
    generation_.notify_all();
    return;
  }
  waitWhile(generation_, generation);
}

} // namespace grok::cpu
