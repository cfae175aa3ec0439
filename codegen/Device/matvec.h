// y = W x for the rows of W that this slot owns and up to 8 vectors x at once, on the tensor cores: the 8 rows of a weight
// tile are the columns of an m16n8k16 product, the vectors its rows 0..7. With split activations rows 8..15 hold the low
// halves, so that the second 16-bit value costs nothing.
#pragma once

#include "codegen/Device/ring.h"

namespace grok::device {

/// The staged K block of the operand: planes[plane][row][k] of 16-bit values.
template <class B> struct Operand {
  using Plan = typename B::Plan;
  static constexpr uint32_t kStride = operandStride(B::kShape);
  static constexpr bool kBF16 = B::Model::kBF16;

  uint16_t *data;
  static GROK_DEVICE Operand of(B &block) { return {(uint16_t *)(block.shared() + B::kShared.operand)}; }

  /// Stores x[row][k], k counted from the K block's start.
  GROK_DEVICE void store(uint32_t row, uint32_t k, float x) const {
    uint16_t high = to16<kBF16>(x);
    data[row * kStride + k] = high;
    if constexpr (Plan::kPlanes == 2)
      data[(Plan::kMaxBatch + row) * kStride + k] = to16<kBF16>(x - from16<kBF16>(high));
  }
};

/// Where the outputs of one tile group go: thread t < tiles * rows * 8 holds output (tile, row, r), r fastest.
struct Output {
  uint32_t tile; // of the matrix
  uint32_t row;  // of the batch
  uint32_t r;    // row of the tile
};

/// Streams this slot's tiles of `matrix` and calls
///   stage(k0, count): all consumer threads store operand elements k0 .. k0 + count - 1 (padding zeroed by the caller);
///   emit(Output, value, partner): once for each output, on the thread that owns it; `partner` is the value of r ^ 1.
/// `staged` tells whether the operand (of a single K block) is already there, and is set.
/// Summation order of an output: each warp its k32 steps in order, then the warps in order.
/// kMaxTiles is the largest tile count of any slot in this matrix: fewer than a group's tiles make smaller code.
template <uint32_t kMaxTiles, class B, class Stage, class Emit>
GROK_DEVICE void matvec(B &block, RingReader<B> &ring, uint32_t matrix, uint32_t steps, uint32_t rows, bool &staged,
                        Phase phase, Stage stage, Emit emit) {
  using Plan = typename B::Plan;
  constexpr uint32_t kStride = Operand<B>::kStride;
  constexpr uint32_t kTiles = kMaxTiles < kGroupTiles ? (kMaxTiles > 0 ? kMaxTiles : 1) : kGroupTiles;
  constexpr uint32_t kStepUnroll = Plan::kSm >= 90 ? 4 : 1; // sm_80's longer wait sequences would spill
  const abi::Extent extent = block.extent(matrix);
  uint32_t fragment = 0;

  for (uint32_t first = 0; first < extent.tileCount; first += kGroupTiles) {
    uint32_t tiles = extent.tileCount - first < kGroupTiles ? extent.tileCount - first : kGroupTiles;
    block.beginPhase();
    const uint32_t operand = ptx::sharedAddress(block.shared() + B::kShared.operand);
    const uint32_t group4 = block.lane / 4, pair = block.lane % 4 * 2;
    const uint32_t sums = ptx::sharedAddress(block.scratch()); // [tile][warp][row][8]
    float acc[kTiles][4] = {};
    for (uint32_t k0 = 0; k0 < steps; k0 += Plan::kBlockSteps) {
      uint32_t count = steps - k0 < Plan::kBlockSteps ? steps - k0 : Plan::kBlockSteps;
      if (!staged || steps > Plan::kBlockSteps) {
        block.sync(); // the previous operand has been read
        stage(k0 * kTileK, count * kTileK);
        block.sync();
        staged = true;
      }
#pragma unroll
      for (uint32_t j = 0; j < kTiles; ++j) {
        if (j >= tiles)
          break;
#pragma unroll kStepUnroll
        for (uint32_t s = block.warp; s < count; s += kWarps) {
          ptx::U4 w = ring.fragment(block, fragment + j * count + s, phase);
          uint32_t x = operand + (group4 * kStride + s * kTileK + pair) * 2;
          uint32_t a[8] = {};
          if (group4 < rows) {
#pragma unroll
            for (uint32_t h = 0; h < 4; ++h) {
              a[2 * h] = ptx::loadShared4(x + h * 16);
              if constexpr (Plan::kPlanes == 2)
                a[2 * h + 1] = ptx::loadShared4(x + h * 16 + Plan::kMaxBatch * kStride * 2);
            }
          }
          ptx::mma<B::Model::kBF16>(acc[j], a[0], a[1], a[2], a[3], w.x, w.y);
          ptx::mma<B::Model::kBF16>(acc[j], a[4], a[5], a[6], a[7], w.z, w.w);
        }
      }
      fragment += tiles * count;
    }
    if (group4 < rows) {
#pragma unroll
      for (uint32_t j = 0; j < kTiles; ++j) {
        if (j >= tiles)
          break;
        ptx::storeShared8(sums + (((j * kWarps + block.warp) * rows + group4) * kTileRows + pair) * 4,
                          acc[j][0] + acc[j][2], acc[j][1] + acc[j][3]);
      }
    }
    block.sync();
    uint32_t perTile = rows * kTileRows;
    uint32_t tile = block.tid / perTile, inTile = block.tid % perTile;
    float sum = 0;
    if (tile < tiles) {
      uint32_t in = sums + (tile * kWarps * perTile + inTile) * 4;
#pragma unroll
      for (uint32_t w = 0; w < kWarps; ++w)
        sum += ptx::loadSharedFloat(in + w * perTile * 4);
    }
    float partner = ptx::shuffleXor(sum, 1);
    if (tile < tiles)
      emit(Output{extent.tileBegin + first + tile, inTile / kTileRows, inTile % kTileRows}, sum, partner);
    block.sync(); // before `sums` is written again
  }
  ring.finish(block, fragment, phase);
}

} // namespace grok::device
