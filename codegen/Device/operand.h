// The vectors that a product multiplies weights with: up to 8 rows, a K block at
// a time, in shared memory as 16-bit operands of the tensor cores. A warp stages
// and reads its own k32 steps.
//
// In a pair of blocks each stages half of the rows and gives them to the other:
//
//   rank 0: words of rows 0, 2, .. -> operand --+--> own shared memory
//                                               +--> rank 1's
//   rank 1: words of rows 1, 3, .. -> operand --+--> own shared memory
//                                               +--> rank 0's
//
// A warp asks for its steps with an arrival on the other block's `free` barrier
// once it reads no older ones; the other's warp stores them, counted on `full`.
#pragma once

#include "codegen/Device/handover.h"
#include "codegen/Device/ring.h"

namespace grok::device {

/// Place of k (0..31) in a k32 step of the operand: as in a row of a weight
/// fragment.
constexpr uint32_t operandElement(uint32_t k) { return fragmentElement(0, k); }

/// The staged K block of the operand: 16-bit values, laid out by operandLayout,
/// each k32 step in the order of operandElement. Step s of a K block is stored
/// and read by warp s % kWarps alone.
template <class B> struct Operand {
  using Plan = typename B::Plan;
  static constexpr OperandLayout kLayout = operandLayout(B::kShape);
  static constexpr bool kBF16 = B::Model::kBF16;

  uint8_t *data;
  static GROK_DEVICE Operand of(B &block) {
    return {block.shared() + B::kShared.operand};
  }

  /// Byte offset of a row of a warp.
  static GROK_DEVICE uint32_t rowOffset(uint32_t warp, uint32_t row) {
    uint32_t offset = warp * kLayout.warpBytes;
    if constexpr (B::kPaired)
      return offset + row % 2 * kLayout.blockBytes + row / 2 * kLayout.rowBytes;
    return offset + row * kLayout.rowBytes;
  }

  /// Stores x[row][k] and x[row][k + 1] for an even k, counted from the K
  /// block's start.
  GROK_DEVICE void store(uint32_t row, uint32_t k, float x0, float x1) const {
    uint32_t *place = at(row, k);
    uint32_t high = to16Pair<kBF16>(x0, x1);
    *place = high;
    if constexpr (Plan::kPlanes == 2)
      place[kLayout.planeBytes / 4] = rest16Pair<kBF16>(x0, x1, high);
  }

  /// The same of what two OperandWords carry.
  GROK_DEVICE void store(uint32_t row, uint32_t k,
                         const uint64_t (&word)[2]) const {
    if constexpr (OperandWord<B>::kPair) {
      *at(row, k) = wordPayload(word[0]);
      *at(row, k + 2) = wordPayload(word[1]);
    } else {
      store(row, k, wordValue(word[0]), wordValue(word[1]));
    }
  }

private:
  GROK_DEVICE uint32_t *at(uint32_t row, uint32_t k) const {
    uint32_t step = k / kTileK;
    return (uint32_t *)(data + rowOffset(step % kWarps, row) +
                        step / kWarps * kTileK * 2 +
                        operandElement(k % kTileK) * 2);
  }
};

/// How a warp's lanes share its k32 steps of a K block when each takes kEach
/// neighbouring elements: steps warp, warp + kWarps, ... in turn.
template <uint32_t kEach> struct OwnSteps {
  static constexpr uint32_t kLanes = kTileK / kEach; // that share a step
  static constexpr uint32_t kSteps = 32 / kLanes;    // at a time
  /// Rounds until a block has taken `steps`.
  static constexpr uint32_t rounds(uint32_t steps) {
    return ceilDiv(steps, kSteps * kWarps);
  }
  /// First element of the thread in a round, and its k32 step.
  template <class B>
  static GROK_DEVICE uint32_t step(B &block, uint32_t round) {
    return block.warp() + (round * kSteps + block.lane() / kLanes) * kWarps;
  }
  template <class B>
  static GROK_DEVICE uint32_t element(B &block, uint32_t round) {
    return step(block, round) * kTileK + block.lane() % kLanes * kEach;
  }
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

/// Whether the blocks of a pair share the operand of vectors of kWidth elements:
/// one K block, so that both stage it equally often.
template <class B, uint32_t kWidth>
inline constexpr bool kShared = B::kPaired && KBlocks<B, kWidth>::kOne;

/// What passes between the blocks of a pair, for one warp: nothing where it has
/// no steps.
template <class B, uint32_t kWidth> struct OperandShare {
  using Plan = typename B::Plan;
  using Layout = Operand<B>;
  B &block;

  /// Before staging: this warp reads nothing of the operand before.
  GROK_DEVICE void begin() const {
    if (!shares())
      return;
    ptx::warpSync();
    if (block.lane() == 0)
      ptx::mbarrierArriveRemote(
          ptx::remoteAddress(freeBarrier(), block.peer()));
  }

  /// Before the first store: the other block has what was staged before.
  GROK_DEVICE void await(Phase phase) const {
    if (shares())
      waitBarrier(block, freeBarrier(), block.shares & 1, phase);
  }

  /// After staging: gives the warp's steps of the block's rows to the other
  /// one, and waits for its rows.
  GROK_DEVICE void finish(Phase phase) const {
    if (!shares())
      return;
    const uint32_t mine = ceilDiv(block.rows() - block.firstRow(), 2);
    ptx::fenceAsyncProxyShared();
    ptx::warpSync();
    if (block.lane() == 0) {
      ptx::mbarrierExpect(fullBarrier(),
                          (block.rows() - mine) * Layout::kLayout.rowBytes *
                              Plan::kPlanes);
      send(mine * Layout::kLayout.rowBytes);
    }
    waitBarrier(block, fullBarrier(), block.shares & 1, phase);
    ++block.shares;
  }

private:
  GROK_DEVICE bool shares() const {
    constexpr uint32_t kSteps = KBlocks<B, kWidth>::kSteps;
    return kShared<B, kWidth> && block.pairShares() &&
           (kSteps >= kWarps || block.warp() < kSteps);
  }
  GROK_DEVICE uint32_t fullBarrier() const {
    return RingBarriers<B>::of(block).pair(block.warp(), 0);
  }
  GROK_DEVICE uint32_t freeBarrier() const {
    return RingBarriers<B>::of(block).pair(block.warp(), 1);
  }

  /// By one lane.
  GROK_DEVICE void send(uint32_t bytes) const {
    const uint32_t own =
                       block.sharedAddress(B::kShared.operand) +
                       Layout::rowOffset(block.warp(), block.firstRow()),
                   there = ptx::remoteAddress(own, block.peer()),
                   barrier = ptx::remoteAddress(fullBarrier(), block.peer());
#pragma unroll
    for (uint32_t plane = 0; plane < Plan::kPlanes; ++plane) {
      const uint32_t offset = plane * Layout::kLayout.planeBytes;
      ptx::bulkCopyRemote(there + offset, own + offset, bytes, barrier);
    }
  }
};

/// Stores a K block of vectors of kWidth elements, from step `first` on, as
/// rows of the operand, zero past the end. words(b) are the OperandWords of row
/// b; one that is not there keeps what the operand held. Each warp its own
/// steps.
template <uint32_t kWidth, class B, class RowWords>
GROK_DEVICE void stageWords(B &block, uint32_t first, Phase phase,
                            RowWords words) {
  using Blocks = KBlocks<B, kWidth>;
  constexpr uint32_t kValues = OperandWord<B>::kValues, kEach = 2 * kValues;
  using Own = OwnSteps<kEach>;
  constexpr uint32_t kRounds = Own::rounds(Blocks::kMost);
  // Every thread takes part in every round.
  constexpr bool kFull = Blocks::kSteps % (kWarps * Own::kSteps) == 0 &&
                         Blocks::kMost % (kWarps * Own::kSteps) == 0;
  constexpr bool kOwn = kShared<B, kWidth>;
  constexpr uint32_t kInFlight = B::Plan::kMaxBatch > 1 ? 8 : 4,
                     kRoundsAtOnce = kRounds < kInFlight ? kRounds : kInFlight,
                     kRowsFit = kInFlight / kRoundsAtOnce,
                     kMostRows = kOwn ? B::kShape.residualRows()
                                      : B::Plan::kMaxBatch,
                     kRowsAtOnce = kRowsFit < kMostRows ? kRowsFit : kMostRows;
  Operand<B> operand = Operand<B>::of(block);
  const uint32_t steps = Blocks::steps(first),
                 firstRow = kOwn ? block.firstRow() : 0,
                 rowStep = kOwn ? block.rowStep() : 1;
  OperandShare<B, kWidth> share{block};
  share.begin();
#pragma unroll 1
  for (uint32_t b0 = firstRow; b0 < block.rows(); b0 += kRowsAtOnce * rowStep) {
#pragma unroll 1
    for (uint32_t round = 0; round < kRounds; round += kRoundsAtOnce) {
      uint64_t word[kRowsAtOnce * kRoundsAtOnce][2];
      auto row = [&](uint32_t i) { return b0 + i / kRoundsAtOnce * rowStep; };
      auto inRound = [&](uint32_t i) { return round + i % kRoundsAtOnce; };
      auto takes = [&](uint32_t i) {
        return row(i) < block.rows() && words(row(i)).there &&
               ((kFull && kRounds % kRoundsAtOnce == 0) ||
                Own::step(block, inRound(i)) < steps);
      };
      awaitPairs<FullWord>(block, phase, word, [&](uint32_t i) {
        uint32_t k = first * kTileK + Own::element(block, inRound(i));
        return Words{words(row(i)).words + k / kValues,
                     takes(i) && (kWidth % kTileK == 0 || k < kWidth),
                     kWidth % kEach == 0 || k + kValues < kWidth};
      });
      if (b0 == firstRow && round == 0)
        share.await(phase);
#pragma unroll
      for (uint32_t i = 0; i < kRowsAtOnce * kRoundsAtOnce; ++i)
        if (takes(i))
          operand.store(row(i), Own::element(block, inRound(i)), word[i]);
    }
  }
  share.finish(phase);
}

} // namespace grok::device
