// The vectors that a product multiplies weights with: up to 8 rows, a K block
// at a time, in shared memory as 16-bit operands of the tensor cores.
//
// A kernel for one row has every warp stage the k32 steps that it will read, so
// that no warp waits for another. One for a batch has teams of warps, each with
// a row: what a row costs beyond its data is paid once. In a pair of blocks
// each stages half of the rows and gives them to the other:
//
//   rank 0: words of rows 0, 2, .. -> operand --+--> own shared memory
//                                               +--> rank 1's
//   rank 1: words of rows 1, 3, .. -> operand --+--> own shared memory
//                                               +--> rank 0's
//
// A block asks for an operand with an arrival on the other's `wanted` barrier,
// once it reads no older one; the other copies it, counted on `given`.
#pragma once

#include "codegen/Device/handover.h"
#include "codegen/Device/weights.h"

namespace grok::device {

/// Place of k (0..31) in a k32 step of the operand: as in a row of a weight
/// fragment.
constexpr uint32_t operandElement(uint32_t k) { return fragmentElement(0, k); }

/// The staged K block of the operand: planes[plane][row][k] of 16-bit values,
/// each k32 step in the order of operandElement. Step s of a K block is read by
/// warp s % kWarps alone.
template <class B> struct Operand {
  using Plan = typename B::Plan;
  static constexpr uint32_t kStride = operandStride(B::kShape);
  static constexpr bool kBF16 = B::Model::kBF16;

  uint16_t *data;
  static GROK_DEVICE Operand of(B &block) {
    return {(uint16_t *)(block.shared() + B::kShared.operand)};
  }

  /// Stores x[row][k + beyond] and the element after it, counted from the K
  /// block's start; k is even, `beyond` whole k32 steps.
  GROK_DEVICE void store(uint32_t row, uint32_t k, uint32_t beyond, float x0,
                         float x1) const {
    uint32_t *place = at(row, k) + beyond / 2;
    uint32_t high = to16Pair<kBF16>(x0, x1);
    *place = high;
    if constexpr (Plan::kPlanes == 2)
      place[Plan::kMaxBatch * kStride / 2] = rest16Pair<kBF16>(x0, x1, high);
  }

  /// The same of what two OperandWords carry.
  GROK_DEVICE void store(uint32_t row, uint32_t k, uint32_t beyond,
                         const uint64_t (&word)[2]) const {
    if constexpr (OperandWord<B>::kPair) {
      at(row, k)[beyond / 2] = wordPayload(word[0]);
      at(row, k + 2)[beyond / 2] = wordPayload(word[1]);
    } else {
      store(row, k, beyond, wordValue(word[0]), wordValue(word[1]));
    }
  }

private:
  GROK_DEVICE uint32_t *at(uint32_t row, uint32_t k) const {
    return (uint32_t *)(data + row * kStride + k / kTileK * kTileK +
                        operandElement(k % kTileK));
  }
};

/// How a team shares a row among its threads, kEach neighbouring elements at a
/// time. A single row's warps take their own k32 steps: warp, warp + kWarps,
/// ...
template <class B, uint32_t kEach> struct Parts {
  using T = Team<B>;
  /// Parts of a thread in a row of `steps` k32 steps.
  static constexpr uint32_t count(uint32_t steps) {
    return ceilDiv(steps * kTileK, kEach * T::kLanes);
  }
  /// Whether every thread has all of them.
  static constexpr bool full(uint32_t steps) {
    return steps * kTileK == count(steps) * kEach * T::kLanes;
  }
  /// First element of a thread's first part, and from a part to the next.
  static GROK_DEVICE uint32_t first(B &block) {
    if constexpr (!kOneRow<B>)
      return T::lane(block) * kEach;
    constexpr uint32_t kLanes = kTileK / kEach; // that share a step
    const uint32_t step = block.warp() + block.lane() / kLanes * kWarps;
    return step * kTileK + block.lane() % kLanes * kEach;
  }
  static constexpr uint32_t kApart = kEach * T::kLanes;
  static_assert(kApart % kTileK == 0);
};

/// K blocks of a row of kWidth elements: the same for every tile of a matrix.
template <class B, uint32_t kWidth> struct KBlocks {
  static constexpr uint32_t kSteps = (kWidth + kTileK - 1) / kTileK; // of a row
  static constexpr uint32_t kBlock = B::Plan::kBlockSteps;
  static constexpr bool kOne = kSteps <= kBlock;
  /// Steps of the longest K block.
  static constexpr uint32_t kMost = kOne ? kSteps : kBlock;
  /// Every warp has the same number of steps of every K block.
  static constexpr bool kEven = kSteps % kWarps == 0;
  /// Steps of the K block that begins with step `first`.
  static GROK_DEVICE uint32_t steps(uint32_t first) {
    return kOne || kSteps - first < kBlock ? kSteps - first : kBlock;
  }
};

/// Whether the blocks of a pair share the operand of vectors of kWidth
/// elements: one K block, so that both stage it equally often.
template <class B, uint32_t kWidth>
inline constexpr bool kPairStages = B::kPaired && KBlocks<B, kWidth>::kOne;

/// What surrounds the staging of an operand: what passes between the blocks of
/// a pair, and between the warps of a block.
template <class B, uint32_t kWidth> struct Staging {
  using Plan = typename B::Plan;
  using Blocks = KBlocks<B, kWidth>;
  B &block;

  /// Before the words are awaited.
  GROK_DEVICE void begin() const {
    if constexpr (!kOneRow<B> && !Blocks::kOne)
      block.sync(); // all warps have read the K block before
    if (!shares())
      return;
    ptx::warpSync();
    if (block.lane() == 0)
      ptx::mbarrierArriveRemote(
          ptx::remoteAddress(barriers().wanted(), block.peer()));
  }

  /// Before the first store: the other block has what was staged before.
  GROK_DEVICE void await(Phase phase) const {
    if (shares())
      waitBarrier(block, barriers().wanted(), block.shares & 1, phase);
  }

  /// After the last store: the operand is there for all warps.
  GROK_DEVICE void finish(Phase phase) const {
    if constexpr (kOneRow<B>)
      return;
    if (shares()) { // a row goes as soon as its team has it
      ptx::fenceAsyncProxyShared();
      Team<B>::sync(block);
      if (Team<B>::lane(block) == 0 && Team<B>::row(block) < block.rows())
        send(Team<B>::row(block));
      ptx::warpSync();
    }
    block.sync();
    if (!shares())
      return;
    const uint32_t mine = ceilDiv(block.rows() - block.firstRow(), 2);
    if (block.tid == 0)
      ptx::mbarrierExpect(barriers().given(),
                          (block.rows() - mine) * kRowBytes * Plan::kPlanes);
    ptx::warpSync();
    waitBarrier(block, barriers().given(), block.shares & 1, phase);
    ++block.shares;
  }

private:
  static constexpr uint32_t kRowBytes = Blocks::kMost * kTileK * 2;

  GROK_DEVICE bool shares() const {
    return kPairStages<B, kWidth> && block.pairShares();
  }
  GROK_DEVICE RingBarriers<B> barriers() const {
    return RingBarriers<B>::of(block);
  }
  GROK_DEVICE void send(uint32_t row) const {
    constexpr uint32_t kStride = Operand<B>::kStride;
    const uint32_t own =
        block.sharedAddress(B::kShared.operand) + row * kStride * 2;
#pragma unroll
    for (uint32_t plane = 0; plane < Plan::kPlanes; ++plane) {
      const uint32_t from = own + plane * Plan::kMaxBatch * kStride * 2;
      ptx::bulkCopyRemote(ptx::remoteAddress(from, block.peer()), from,
                          kRowBytes,
                          ptx::remoteAddress(barriers().given(), block.peer()));
    }
  }
};

/// Stores a K block of vectors of kWidth elements, from step `first` on, as
/// rows of the operand, zero past the end. words(b) are the OperandWords of row
/// b; one that is not there keeps what the operand held.
template <uint32_t kWidth, class B, class RowWords>
GROK_DEVICE void stageWords(B &block, uint32_t first, Phase phase,
                            RowWords words) {
  using Blocks = KBlocks<B, kWidth>;
  using T = Team<B>;
  constexpr uint32_t kValues = OperandWord<B>::kValues, kEach = 2 * kValues;
  using P = Parts<B, kEach>;
  constexpr uint32_t kParts = P::count(Blocks::kMost),
                     kInFlight = kOneRow<B> ? 4 : 8,
                     kAtOnce = kParts < kInFlight ? kParts : kInFlight;
  // Every thread takes part in every round of every K block.
  constexpr bool kFull = Blocks::kSteps % Blocks::kMost == 0 &&
                         P::full(Blocks::kMost) && kParts % kAtOnce == 0;
  Operand<B> operand = Operand<B>::of(block);
  const uint32_t steps = Blocks::steps(first);
  constexpr bool kOwn = kPairStages<B, kWidth>;
  const uint32_t firstRow = kOwn ? T::row(block) : T::index(block),
                 rowStep = kOwn ? T::kCount * block.rowStep() : T::kCount;
  Staging<B, kWidth> staging{block};
  staging.begin();
  bool waits = true; // for the other block, which may have rows where this one
                     // has none
#pragma unroll 1
  for (uint32_t b = firstRow; b < block.rows(); b += rowStep) {
    const Words row = words(b);
#pragma unroll 1
    for (uint32_t round = 0; round < kParts && row.there; round += kAtOnce) {
      uint64_t word[kAtOnce][2];
      const uint32_t k0 = P::first(block) + round * P::kApart,
                     inRow = first * kTileK + k0;
      const uint64_t *from = row.words + inRow / kValues;
      auto takes = [&](uint32_t i) {
        return kFull || k0 + i * P::kApart < steps * kTileK;
      };
      awaitPairs<FullWord>(block, phase, word, [&](uint32_t i) {
        const uint32_t k = inRow + i * P::kApart;
        return Words{Weights<B>::kScaled
                         ? row.words +
                               Weights<B>::template input<kWidth>(k) / kValues
                         : from + i * (P::kApart / kValues),
                     takes(i) && (kWidth % kTileK == 0 || k < kWidth),
                     kWidth % kEach == 0 || k + kValues < kWidth};
      });
      if (waits)
        staging.await(phase);
      waits = false;
#pragma unroll
      for (uint32_t i = 0; i < kAtOnce; ++i)
        if (takes(i))
          operand.store(b, k0, i * P::kApart, word[i]);
    }
  }
  if (waits)
    staging.await(phase);
  staging.finish(phase);
}

} // namespace grok::device
