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

/// The consumer side; one per warp. Chunks are numbered from the kernel's
/// start.
template <class B> struct RingReader {
  using Plan = typename B::Plan;
  static constexpr uint32_t kFragments =
      Plan::kChunkBytes / kFragmentBytes; // of a chunk

  uint32_t next = 0;  // first chunk of the extent that comes next
  uint32_t taken = 0; // chunks waited for
  uint32_t stage = 0; // of chunk taken - 1
  uint32_t phaseBit =
      1; // parity of stage's use by chunk taken - 1; flips when the stage wraps

  static GROK_DEVICE RingReader of(B &block) {
    RingReader r;
    r.stage = Plan::kRingStages - 1;
    return r;
  }

  /// Makes `chunk` readable and gives back every chunk before it.
  GROK_DEVICE void advanceTo(B &block, uint32_t chunk, Phase phase) {
    while (taken <= chunk) {
      release(block);
      if (++stage == Plan::kRingStages) {
        stage = 0;
        phaseBit ^= 1;
      }
      ++taken;
      waitBarrier(block, RingBarriers<B>::of(block).full(stage), phaseBit,
                  phase);
    }
  }

  /// Lane's 16 bytes of fragment `index` of the current extent.
  GROK_DEVICE ptx::U4 fragment(B &block, uint32_t index, Phase phase) {
    advanceTo(block, next + index / kFragments, phase);
    uint32_t data = ptx::sharedAddress(block.shared() + B::kShared.ring);
    return ptx::loadShared16(data + stage * Plan::kChunkBytes +
                             index % kFragments * kFragmentBytes +
                             block.lane() * 16);
  }

  /// The current extent, of `fragments` fragments, is done.
  GROK_DEVICE void finish(B &block, uint32_t fragments, Phase phase) {
    uint32_t chunks = (fragments + kFragments - 1) / kFragments;
    if (chunks)
      advanceTo(block, next + chunks - 1, phase);
    next += chunks;
  }

private:
  GROK_DEVICE void release(B &block) {
    if (taken == 0)
      return;
    ptx::warpSync(); // every lane has read its part
    if (block.lane() == 0)
      ptx::mbarrierArrive(RingBarriers<B>::of(block).empty(stage));
  }
};

/// The producer side: the whole warp runs it, in the order in which the
/// consumers take extents.
template <class B> struct RingWriter {
  using Plan = typename B::Plan;
  static constexpr uint32_t kStages = Plan::kRingStages;

  RingBarriers<B> barriers;
  uint32_t data;
  uint32_t issued = 0; // chunks
  bool stopped = false;

  static GROK_DEVICE RingWriter of(B &block) {
    return {RingBarriers<B>::of(block),
            ptx::sharedAddress(block.shared() + B::kShared.ring)};
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

  /// Streams `bytes` (a multiple of 512) from `source`.
  GROK_DEVICE void push(B &block, const uint8_t *source, uint64_t bytes) {
    for (uint64_t at = 0; at < bytes && !stopped; at += Plan::kChunkBytes) {
      uint32_t stage = issued % kStages, use = issued / kStages;
      if (use > 0)
        wait(block, barriers.empty(stage), (use - 1) & 1);
      // Pacing: bytes in flight, apart from the ring's size, decide how long
      // hand-overs queue behind the stream.
      if (Plan::kInFlightChunks < kStages && issued >= Plan::kInFlightChunks) {
        uint32_t earlier = issued - Plan::kInFlightChunks;
        wait(block, barriers.full(earlier % kStages), earlier / kStages & 1);
      }
      if (stopped)
        return;
      uint64_t left = bytes - at;
      copy(block, stage, source + at,
           left < Plan::kChunkBytes ? uint32_t(left) : Plan::kChunkBytes);
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
