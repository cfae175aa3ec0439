// The weight stream of a slot: a producer warp copies extents, chunk by chunk,
// into a ring in shared memory; the consumer warps take fragments out of it in
// the same order.
//
//   producer: wait empty[stage] -> copy -> full[stage] completes when the bytes
//   have landed consumer: wait full[stage] -> read -> arrive on empty[stage]
//   (once a warp)
#pragma once

#include "codegen/Device/block.h"

namespace grok::device {

template <class B> struct RingBarriers {
  using Plan = typename B::Plan;
  static constexpr uint32_t kStages = Plan::kRingStages;

  uint32_t base; // shared address of full[0]; empty follows, then the routing
                 // barriers
  GROK_DEVICE uint32_t full(uint32_t stage) const { return base + 8 * stage; }
  GROK_DEVICE uint32_t empty(uint32_t stage) const {
    return base + 8 * (kStages + stage);
  }
  /// Completes once for each routing decision that the producer may follow, and
  /// once for each that it has read.
  GROK_DEVICE uint32_t routed() const { return base + 16 * kStages; }
  GROK_DEVICE uint32_t taken() const { return base + 16 * kStages + 8; }

  static GROK_DEVICE RingBarriers of(B &block) {
    return {ptx::sharedAddress(block.shared() + B::kShared.barriers)};
  }

  /// By one thread, before anyone waits.
  GROK_DEVICE void init() const {
    for (uint32_t s = 0; s < kStages; ++s) {
      ptx::mbarrierInit(full(s), Plan::kSm >= 90 ? 1 : 32);
      ptx::mbarrierInit(empty(s), kWarps);
    }
    ptx::mbarrierInit(routed(), 1);
    ptx::mbarrierInit(taken(), 1);
    if constexpr (Plan::kSm >= 90)
      asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
};

/// The consumer side; one per warp. It stands at a place in the stream, from
/// which it looks ahead and which it moves on.
template <class B> struct RingReader {
  using Plan = typename B::Plan;
  static constexpr uint32_t kChunk = Plan::kChunkBytes;
  static constexpr uint32_t kBytes = kChunk * Plan::kRingStages;

  uint32_t stage = 0;  // of the chunk that the place is in
  uint32_t parity = 0; // of that stage's use
  uint32_t at = 0;     // byte in it
  uint32_t ready = 0;  // chunks, from that one on, that have landed

  /// Waits for the next `bytes` of the current extent; together with what comes
  /// before them in their first chunk they fit the ring.
  GROK_DEVICE void await(B &block, uint32_t bytes, Phase phase) {
    uint32_t needed = (at + bytes + kChunk - 1) / kChunk;
    for (; ready < needed; ++ready) {
      bool wraps = stage + ready >= Plan::kRingStages;
      uint32_t s = wraps ? stage + ready - Plan::kRingStages : stage + ready;
      waitBarrier(block, RingBarriers<B>::of(block).full(s),
                  wraps ? parity ^ 1 : parity, phase);
    }
  }

  /// Shared address of the byte `offset` bytes ahead, which has been awaited.
  GROK_DEVICE uint32_t address(B &block, uint32_t offset) const {
    uint32_t place = stage * kChunk + at + offset;
    return ptx::sharedAddress(block.shared() + B::kShared.ring) +
           (place >= kBytes ? place - kBytes : place);
  }

  /// Moves on by `bytes`, which have been awaited and read by every lane.
  GROK_DEVICE void advance(B &block, uint32_t bytes) {
    for (at += bytes; at >= kChunk; at -= kChunk)
      release(block);
  }

  /// The current extent has been read; the next one begins with a chunk.
  GROK_DEVICE void finish(B &block) {
    if (at > 0)
      release(block);
    at = 0;
  }

private:
  GROK_DEVICE void release(B &block) {
    ptx::warpSync(); // every lane has read its part
    if (block.lane() == 0)
      ptx::mbarrierArrive(RingBarriers<B>::of(block).empty(stage));
    --ready;
    if (++stage == Plan::kRingStages) {
      stage = 0;
      parity ^= 1;
    }
  }
};

/// How fast a producer may go.
struct Pace {
  uint32_t inFlight; // chunks that have not landed, at most
  uint32_t cycles;   // from the issue of one chunk to the next, at least
};

/// The producer side: the whole warp runs it, in the order in which the
/// consumers take extents.
template <class B> struct RingWriter {
  using Plan = typename B::Plan;
  static constexpr uint32_t kStages = Plan::kRingStages;

  RingBarriers<B> barriers;
  uint32_t data;
  Pace pace;
  uint32_t issued = 0; // chunks
  uint32_t due = 0;    // cycle before which the next chunk is not issued
  bool stopped = false;

  static GROK_DEVICE RingWriter of(B &block, Pace pace) {
    return {RingBarriers<B>::of(block),
            ptx::sharedAddress(block.shared() + B::kShared.ring), pace, 0,
            ptx::clock()};
  }

  /// Waits for a barrier unless the consumers have left.
  GROK_DEVICE void wait(B &block, uint32_t barrier, uint32_t parity) {
    volatile uint32_t *stop = &block.control().stop;
    while (!ptx::mbarrierTest<Plan::kSm>(barrier, parity))
      if (*stop) {
        stopped = true;
        return;
      }
  }

  /// Streams `bytes` (a multiple of 16) from `source`.
  GROK_DEVICE void push(B &block, const uint8_t *source, uint64_t bytes) {
    for (uint64_t at = 0; at < bytes && !stopped; at += Plan::kChunkBytes) {
      uint32_t stage = issued % kStages, use = issued / kStages;
      if (use > 0)
        wait(block, barriers.empty(stage), (use - 1) & 1);
      // Pacing: bytes in flight, apart from the ring's size, decide how long
      // hand-overs queue behind the stream, and bursts after a wait queue most.
      if (pace.inFlight < kStages && issued >= pace.inFlight) {
        uint32_t earlier = issued - pace.inFlight;
        wait(block, barriers.full(earlier % kStages), earlier / kStages & 1);
      }
      if (stopped)
        return;
      uint64_t left = bytes - at;
      uint32_t size =
          left < Plan::kChunkBytes ? uint32_t(left) : Plan::kChunkBytes;
      awaitTurn(size);
      copy(block, stage, source + at, size);
      ++issued;
    }
  }

  /// Waits until everything issued has landed: shared memory must not be
  /// written after the block has gone.
  GROK_DEVICE void drain() {
    uint32_t first = issued > kStages ? issued - kStages : 0;
    for (uint32_t c = first; c < issued; ++c)
      while (!ptx::mbarrierTest<Plan::kSm>(barriers.full(c % kStages),
                                           c / kStages & 1)) {
      }
  }

private:
  /// Spaces chunks evenly. A little lateness is made up for, so that the mean
  /// rate holds; a long wait is not followed by a burst.
  GROK_DEVICE void awaitTurn(uint32_t bytes) {
    uint32_t now = ptx::clock();
    while (int32_t(due - now) > 0)
      now = ptx::clock();
    uint32_t most = 2 * pace.cycles;
    due = (now - due > most ? now - most : due) +
          pace.cycles * bytes / Plan::kChunkBytes;
  }

  GROK_DEVICE void copy(B &block, uint32_t stage, const uint8_t *source,
                        uint32_t bytes) {
    uint32_t target = data + stage * Plan::kChunkBytes;
    if constexpr (Plan::kSm >= 90) {
      if (block.lane() == 0) {
        ptx::mbarrierExpect(barriers.full(stage), bytes);
        ptx::bulkCopy(target, source, bytes, barriers.full(stage));
      }
    } else {
#pragma unroll 1
      for (uint32_t at = block.lane() * 16; at < bytes; at += 512)
        ptx::copyAsync16(target + at, source + at);
      ptx::copyAsyncArrive(barriers.full(stage));
    }
  }
};

} // namespace grok::device
