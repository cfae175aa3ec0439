#include "runtime/cpu/WorkerPool.h"

#include <sched.h>

#include <chrono>

namespace grok::cpu {
namespace {

/// How long a waiting thread spins before it sleeps: about what waking it
/// costs. Shares end at nearly the same time, so a longer wait means that the
/// other thread does not run, perhaps because this one spins on its processor.
/// Every barrier of a step can cost this much then.
constexpr std::chrono::microseconds kSpinTime{10};
/// Looks at the word between two at the clock, which costs as much as a few
/// pauses.
constexpr unsigned kLooks = 32;

void pause() {
#ifdef __x86_64__
  __builtin_ia32_pause();
#endif
}

/// Returns when the word is no longer `value`. Bounded by the clock, not by a
/// number of pauses: those differ tenfold between processors.
void waitWhile(std::atomic<uint32_t> &word, uint32_t value) {
  auto changed = [&] {
    for (unsigned i = 0; i != kLooks; ++i, pause())
      if (word.load(std::memory_order_acquire) != value)
        return true;
    return false;
  };
  if (changed())
    return;
  auto end = std::chrono::steady_clock::now() + kSpinTime;
  do
    if (changed())
      return;
  while (std::chrono::steady_clock::now() < end);
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

WorkerPool::WorkerPool(unsigned threads) : count_(threads), taken_(threads) {
  try {
    for (unsigned i = 1; i < count_; ++i)
      workers_.emplace_back([this, i] { loop(i); });
  } catch (...) {
    end(); // those that run already
    throw;
  }
}

WorkerPool::~WorkerPool() { end(); }

void WorkerPool::end() {
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

// Relaxed: the barriers order the shares' work, here only each is handed out
// once.
std::optional<unsigned> WorkerPool::takeShare(unsigned thread, unsigned each) {
  for (unsigned i = 0; i != count_; ++i) {
    unsigned owner = (thread + i) % count_;
    std::atomic<uint32_t> &taken = taken_[owner].count;
    if (taken.load(std::memory_order_relaxed) >= each)
      continue;
    if (unsigned n = taken.fetch_add(1, std::memory_order_relaxed); n < each)
      return owner * each + n;
  }
  return std::nullopt;
}

void WorkerPool::barrier() {
  uint32_t generation = generation_.load(std::memory_order_relaxed);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == count_) {
    arrived_.store(0, std::memory_order_relaxed);
    for (Taken &taken : taken_)
      taken.count.store(0, std::memory_order_relaxed);
    generation_.store(generation + 1, std::memory_order_release);
    generation_.notify_all();
    return;
  }
  waitWhile(generation_, generation);
}

} // namespace grok::cpu
