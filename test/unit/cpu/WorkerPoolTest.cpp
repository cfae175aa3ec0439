// Threads that meet at barriers, awake or asleep.
#include <atomic>
#include <chrono>
#include <ctime>
#include <optional>
#include <thread>
#include <vector>

#include "runtime/cpu/WorkerPool.h"
#include "gtest/gtest.h"

namespace grok::test {
namespace {

using cpu::WorkerPool;
using namespace std::chrono_literals;

/// Every thread adds its neighbour's count of the phase before to its own.
struct Ring {
  WorkerPool *pool;
  unsigned phases;
  std::chrono::milliseconds pauseOfLast;
  std::vector<uint64_t> even, odd;

  Ring(WorkerPool &pool, unsigned phases, std::chrono::milliseconds pauseOfLast)
      : pool(&pool), phases(phases), pauseOfLast(pauseOfLast),
        even(pool.threads(), 1), odd(pool.threads()) {}

  static void job(void *context, unsigned thread) {
    Ring &r = *static_cast<Ring *>(context);
    for (unsigned phase = 0; phase != r.phases; ++phase) {
      std::vector<uint64_t> &from = phase % 2 ? r.odd : r.even;
      std::vector<uint64_t> &to = phase % 2 ? r.even : r.odd;
      if (thread + 1 == r.pool->threads())
        std::this_thread::sleep_for(r.pauseOfLast);
      to[thread] = from[thread] + from[(thread + 1) % r.pool->threads()];
      r.pool->barrier();
    }
  }
  void run() {
    pool->run(job, this);
    EXPECT_EQ((phases % 2 ? odd : even),
              std::vector<uint64_t>(pool->threads(), uint64_t(1) << phases));
  }
};

TEST(WorkerPool, BarriersOrderWhatThreadsWrite) {
  for (unsigned threads : {1u, 2u, 5u}) {
    WorkerPool pool(threads);
    for (int i = 0; i != 200; ++i)
      Ring(pool, 40, 0ms).run();
  }
}

TEST(WorkerPool, WakesThreadsThatSleep) {
  WorkerPool pool(3);
  for (int i = 0; i != 5; ++i) {
    Ring(pool, 3, 2ms).run();         // the others sleep at the barrier
    std::this_thread::sleep_for(2ms); // and then in wait for a job
  }
}

TEST(WorkerPool, HandsOutEveryShareOnce) {
  struct Phases {
    WorkerPool pool{3};
    std::atomic<unsigned> takenBy[2][12];

    static void job(void *context, unsigned thread) {
      Phases &p = *static_cast<Phases *>(context);
      for (auto &takenBy : p.takenBy) {
        if (thread == 1)
          std::this_thread::sleep_for(5ms);
        while (std::optional<unsigned> share = p.pool.takeShare(thread, 4))
          takenBy[*share] += 1 + 100 * thread;
        p.pool.barrier();
      }
    }
  } phases;
  for (int i = 0; i != 3; ++i) {
    for (auto &takenBy : phases.takenBy)
      for (std::atomic<unsigned> &count : takenBy)
        count = 0;
    phases.pool.run(&Phases::job, &phases);
    for (auto &takenBy : phases.takenBy)
      for (std::atomic<unsigned> &count : takenBy)
        EXPECT_EQ(count % 100, 1u);
  }
}

TEST(WorkerPool, DoesNotSpinWhenIdle) {
  WorkerPool pool(4);
  Ring(pool, 3, 0ms).run();
  std::clock_t begin = std::clock(); // of all threads of the process
  std::this_thread::sleep_for(200ms);
  EXPECT_LT(double(std::clock() - begin) / CLOCKS_PER_SEC, 0.1);
}

} // namespace
} // namespace grok::test
