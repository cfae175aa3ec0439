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
  /// Between the blocks of a pair: complete once for each operand whose rows
  /// the other block has stored here, and once for each that it waits for.
  GROK_DEVICE uint32_t given() const { return base + 16 * kStages + 16; }
  GROK_DEVICE uint32_t wanted() const { return base + 16 * kStages + 24; }

  static GROK_DEVICE RingBarriers of(B &block) {
    return {block.sharedAddress(B::kShared.barriers)};
  }

  /// By one thread, before anyone waits.
  GROK_DEVICE void init() const {
    for (uint32_t s = 0; s < kStages; ++s) {
      ptx::mbarrierInit(full(s), Plan::kSm >= 90 ? 1 : 32);
      ptx::mbarrierInit(empty(s), kWarps);
    }
    ptx::mbarrierInit(routed(), 1);
    ptx::mbarrierInit(taken(), 1);
    if constexpr (B::kPaired) {
      ptx::mbarrierInit(given(), 1);
      ptx::mbarrierInit(wanted(), kWarps);
    }
    if constexpr (Plan::kSm >= 90)
      asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
};

/// The consumer side; one per warp. It stands at a place in the stream, from
/// which it looks ahead and which it moves on. Lane i speaks for the i-th chunk
/// from there: a warp waits for several, and gives several back, at once.
template <class B> struct RingReader {
  using Plan = typename B::Plan;
  static constexpr uint32_t kChunk = Plan::kChunkBytes;
  static constexpr uint32_t kBytes = kChunk * Plan::kRingStages;

  uint32_t place = 0;  // byte of the ring
  uint32_t parity = 0; // of the current use of the stage that it lies in

  /// Waits for the next `bytes` of the current extent; together with what comes
  /// before them in their first chunk they fit the ring, and 32 chunks.
  GROK_DEVICE void await(B &block, uint32_t bytes, Phase phase) {
    uint32_t chunks = (place % kChunk + bytes + kChunk - 1) / kChunk;
    if (chunks == 0)
      return;
    uint32_t ahead = block.lane() < chunks ? block.lane() : chunks - 1;
    uint32_t stage = place / kChunk + ahead;
    bool wraps = stage >= Plan::kRingStages;
    waitBarrier(block,
                RingBarriers<B>::of(block).full(
                    wraps ? stage - Plan::kRingStages : stage),
                wraps ? parity ^ 1 : parity, phase);
  }

  /// Shared address of the byte `offset` bytes ahead, which has been awaited.
  GROK_DEVICE uint32_t address(B &block, uint32_t offset) const {
    const uint32_t at = place + offset, wrapped = at - kBytes;
    return block.sharedAddress(B::kShared.ring) +
           (wrapped < at ? wrapped : at); // below 0 is above everything
  }

  /// Moves on by `bytes`, which have been awaited and read by every lane.
  GROK_DEVICE void advance(B &block, uint32_t bytes) {
    uint32_t end = place + bytes;
    release(block, end / kChunk - place / kChunk);
    moveTo(end);
  }

  /// The current extent has been read; the next one begins with a chunk.
  GROK_DEVICE void finish(B &block) {
    uint32_t end = (place + kChunk - 1) / kChunk * kChunk;
    release(block, end / kChunk - place / kChunk);
    moveTo(end);
  }

private:
  GROK_DEVICE void release(B &block, uint32_t chunks) {
    ptx::warpSync(); // every lane has read its part
    uint32_t stage = place / kChunk + block.lane();
    ptx::mbarrierArriveIf(
        block.lane() < chunks,
        RingBarriers<B>::of(block).empty(
            stage >= Plan::kRingStages ? stage - Plan::kRingStages : stage));
  }
  GROK_DEVICE void moveTo(uint32_t end) {
    bool wraps = end >= kBytes;
    place = wraps ? end - kBytes : end;
    parity ^= wraps ? 1 : 0;
  }
};

/// How L2 treats what is streamed. It is read once a step: left alone, it would
/// drive the hand-overs' words, which are few, out of L2 between two uses.
/// `again`: it is little enough to be there in the next step. sm_80: as any
/// copy (a driver that translated such code for a later part made illegal
/// instructions of it).
template <class B> GROK_DEVICE uint64_t streamPolicy(bool again) {
  if constexpr (B::Plan::kSm >= 90)
    return again ? ptx::evictNormalPolicy() : ptx::evictFirstPolicy();
  return 0;
}

/// How fast a producer may go.
struct Pace {
  uint32_t inFlight; // chunks that have not landed, at most
  uint32_t cycles;   // from the issue of one chunk to the next, at least
};

/// The producer side: the whole warp runs it, in the order in which the
/// consumers take extents. It is one warp against the whole memory: a chunk of
/// 16 KiB is due every 940 cycles on an H200, and an instruction takes it some
/// ten, since what the other warps run keeps its code out of the nearest cache.
template <class B> struct RingWriter {
  using Plan = typename B::Plan;
  static constexpr uint32_t kChunk = Plan::kChunkBytes,
                            kStages = Plan::kRingStages;

  RingBarriers<B> barriers;
  Pace pace;
  uint32_t due;                   // cycle before which no chunk is issued
  uint32_t stage = 0, parity = 0; // to be filled next, and in which use of it
  bool stopped = false;

  static GROK_DEVICE RingWriter of(B &block, Pace pace) {
    return {RingBarriers<B>::of(block), pace, ptx::clock()};
  }

  /// Waits for a barrier unless the consumers have left.
  GROK_DEVICE void wait(B &block, uint32_t barrier, uint32_t parity) {
    while (!ptx::mbarrierTest<Plan::kSm>(barrier, parity))
      if (*(volatile uint32_t *)&block.control().stop) {
        stopped = true;
        return;
      }
  }

  /// Streams `bytes` (a multiple of 16) from `source`, through L2 by a
  /// streamPolicy.
  GROK_DEVICE void push(B &block, const uint8_t *source, uint64_t bytes,
                        uint64_t policy) {
    const uint32_t rest = uint32_t(bytes % kChunk);
#pragma unroll 1
    for (uint32_t left = uint32_t(bytes / kChunk) + (rest ? 1 : 0); left;
         --left, source += kChunk) {
      const uint32_t size = left == 1 && rest ? rest : kChunk;
      // A stage that was never filled counts as given back.
      wait(block, barriers.empty(stage), parity ^ 1);
      awaitLanding(block);
      if (stopped)
        return;
      awaitTurn(size);
      copy(block, source, size, policy);
      const bool wraps = ++stage == kStages;
      stage = wraps ? 0 : stage;
      parity ^= wraps ? 1 : 0;
    }
  }

  /// Waits until everything issued has landed: shared memory must not be
  /// written after the block has gone.
  GROK_DEVICE void drain() {
#pragma unroll 1
    for (uint32_t before = kStages; before; --before)
      while (!landed(before)) {
      }
  }

private:
  /// Whether the chunk that was issued `before` chunks ago, if any was, is
  /// there.
  GROK_DEVICE bool landed(uint32_t before) const {
    const bool wraps = stage < before;
    return ptx::mbarrierTest<Plan::kSm>(
        barriers.full(wraps ? stage + kStages - before : stage - before),
        wraps ? parity ^ 1 : parity);
  }

  /// Bytes in flight, apart from the ring's size, decide how long hand-overs
  /// queue behind the stream. While the consumers wait for one, a chunk at a
  /// time is enough: the ring is full before they go on.
  GROK_DEVICE void awaitLanding(B &block) const {
    if (pace.inFlight < kStages)
      while (!landed(pace.inFlight)) {
      }
    while (*(volatile uint32_t *)&block.control().waiting && !landed(1)) {
    }
  }

  /// Spaces chunks evenly: what is late is not made up for, since bursts queue
  /// most.
  GROK_DEVICE void awaitTurn(uint32_t bytes) {
    if (pace.cycles == 0)
      return;
    uint32_t now = ptx::clock();
    while (int32_t(due - now) > 0)
      now = ptx::clock();
    due = now + pace.cycles * bytes / kChunk;
  }

  GROK_DEVICE void copy(B &block, const uint8_t *source, uint32_t bytes,
                        uint64_t policy) {
    uint32_t target = block.sharedAddress(B::kShared.ring) + stage * kChunk;
    if constexpr (Plan::kSm >= 90) {
      if (ptx::elect()) {
        ptx::mbarrierExpect(barriers.full(stage), bytes);
        ptx::bulkCopy(target, source, bytes, barriers.full(stage), policy);
      }
      return;
    }
    target += block.lane() * 16;
    source += block.lane() * 16;
    if (bytes == kChunk) {
#pragma unroll
      for (uint32_t at = 0; at < kChunk; at += 512)
        ptx::copyAsync16(target + at, source + at);
    } else {
#pragma unroll 1
      for (uint32_t at = 0; at + block.lane() * 16 < bytes; at += 512)
        ptx::copyAsync16(target + at, source + at);
    }
    ptx::copyAsyncArrive(barriers.full(stage));
  }
};

} // namespace grok::device
