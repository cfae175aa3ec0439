// y = W x for the rows of W that this slot owns and up to 8 vectors x at once,
// on the tensor cores: the 8 rows of a weight tile are the columns of an
// m16n8k16 product, the vectors its rows 0..7. Rows 8..15 stay empty: the
// stream, not the tensor cores, sets the pace. With split activations a second
// product adds the low halves to the same accumulator.
#pragma once

#include "codegen/Device/handover.h"
#include "codegen/Device/ring.h"

namespace grok::device {

/// The staged K block of the operand: planes[plane][row][k] of 16-bit values.
template <class B> struct Operand {
  using Plan = typename B::Plan;
  static constexpr uint32_t kStride = operandStride(B::kShape);
  static constexpr bool kBF16 = B::Model::kBF16;

  uint16_t *data;
  static GROK_DEVICE Operand of(B &block) {
    return {(uint16_t *)(block.shared() + B::kShared.operand)};
  }

  /// Stores x[row][k], k counted from the K block's start.
  GROK_DEVICE void store(uint32_t row, uint32_t k, float x) const {
    uint16_t high = to16<kBF16>(x);
    data[row * kStride + k] = high;
    if constexpr (Plan::kPlanes == 2)
      data[(Plan::kMaxBatch + row) * kStride + k] =
          to16<kBF16>(x - from16<kBF16>(high));
  }
};

/// Stores words [k0, k0 + count) of a row's `width` as the operand of that row,
/// zero past the end.
template <class B>
GROK_DEVICE void stageWords(B &block, const uint64_t *words, uint32_t width,
                            uint32_t row, uint32_t k0, uint32_t count,
                            Phase phase) {
  Operand<B> operand = Operand<B>::of(block);
  uint32_t left = width - k0 < count ? width - k0 : count;
  forEachWord(block, words + k0, left, phase,
              [&](uint32_t k, float x) { operand.store(row, k, x); });
  for (uint32_t k = left + block.tid; k < count; k += kConsumers)
    operand.store(row, k, 0);
}

/// Where the outputs of one tile group go: thread t < tiles * rows * 8 holds
/// output (tile, row, r), r fastest.
struct Output {
  uint32_t tile; // of the matrix
  uint32_t row;  // of the batch
  uint32_t r;    // row of the tile
};

/// Streams this slot's tiles of `matrix` and calls
///   stage(k0, count): all consumer threads store operand elements k0 .. k0 +
///   count - 1 (padding zeroed by the caller); emit(Output, value, partner):
///   once for each output, on the thread that owns it; `partner` is the value
///   of r ^ 1.
/// `staged` tells whether the operand (of a single K block) is already there,
/// and is set. Summation order of an output: each warp its k32 steps in order,
/// then the warps in order; K blocks don't show.
template <class B, class Stage, class Emit>
GROK_DEVICE void matvec(B &block, RingReader<B> &ring, uint32_t matrix,
                        uint32_t steps, uint32_t rows, bool &staged,
                        Phase phase, Stage stage, Emit emit) {
  using Plan = typename B::Plan;
  constexpr uint32_t kStride = Operand<B>::kStride;
  constexpr uint32_t kSteps =
      Plan::kBlockSteps / kWarps; // of a warp in a K block
  constexpr uint32_t kPlanes = Plan::kPlanes;
  constexpr bool kCache =
      kPlanes == 1 && kSteps <= 4 && Plan::kSm >= 90; // sm_80 would spill
  constexpr uint32_t kCached = kCache ? kSteps : 1;
  const abi::Extent extent = block.extent(matrix);
  uint32_t fragment = 0;

  for (uint32_t first = 0; first < extent.tileCount; first += kGroupTiles) {
    uint32_t tiles = extent.tileCount - first < kGroupTiles
                         ? extent.tileCount - first
                         : kGroupTiles;
    block.beginPhase();
    const uint32_t operand =
        ptx::sharedAddress(block.shared() + B::kShared.operand);
    const uint32_t group4 = block.lane() / 4, pair = block.lane() % 4 * 2;
    const uint32_t sums =
        ptx::sharedAddress(block.scratch()); // [tile][warp][row][8]
    for (uint32_t k0 = 0; k0 < steps; k0 += Plan::kBlockSteps) {
      uint32_t count =
          steps - k0 < Plan::kBlockSteps ? steps - k0 : Plan::kBlockSteps;
      if (!staged || steps > Plan::kBlockSteps) {
        block.sync(); // the previous operand has been read
        stage(k0 * kTileK, count * kTileK);
        block.sync();
        staged = true;
      }
      // The warp's part of the operand serves every tile: it is read once where
      // it fits the registers.
      uint32_t x[kCached][kPlanes][4] = {};
      auto loadOperand = [&](uint32_t (&to)[kPlanes][4], uint32_t s) {
        uint32_t address = operand + (group4 * kStride + s * kTileK + pair) * 2;
#pragma unroll
        for (uint32_t plane = 0; plane < kPlanes; ++plane)
#pragma unroll
          for (uint32_t h = 0; h < 4; ++h)
            to[plane][h] =
                group4 < rows
                    ? ptx::loadShared4(address + h * 16 +
                                       plane * Plan::kMaxBatch * kStride * 2)
                    : 0;
      };
      auto multiply = [&](float (&c)[2], uint32_t (&with)[kPlanes][4],
                          uint32_t index) {
        ptx::U4 w = ring.fragment(block, index, phase);
#pragma unroll
        for (uint32_t plane = 0; plane < kPlanes; ++plane) {
          ptx::mma<B::Model::kBF16>(c, with[plane][0], with[plane][1], w.x,
                                    w.y);
          ptx::mma<B::Model::kBF16>(c, with[plane][2], with[plane][3], w.z,
                                    w.w);
        }
      };
      if constexpr (kCache) {
#pragma unroll
        for (uint32_t i = 0; i < kCached; ++i)
          if (block.warp() + i * kWarps < count)
            loadOperand(x[i], block.warp() + i * kWarps);
      }
#pragma unroll 1 // small code: what one tile needs is the same for the next
      for (uint32_t j = 0; j < tiles; ++j) {
        // The warp's partial sum of the tile; between K blocks it waits where
        // it will be reduced.
        const uint32_t place =
            sums +
            (((j * kWarps + block.warp()) * rows + group4) * kTileRows + pair) *
                4;
        float c[2] = {0, 0};
        if (k0 > 0 && group4 < rows) {
          c[0] = ptx::loadSharedFloat(place);
          c[1] = ptx::loadSharedFloat(place + 4);
        }
        if constexpr (kCache) {
#pragma unroll
          for (uint32_t i = 0; i < kCached; ++i) {
            if (block.warp() + i * kWarps >= count)
              break;
            multiply(c, x[i], fragment + j * count + block.warp() + i * kWarps);
          }
        } else {
          for (uint32_t s = block.warp(); s < count; s += kWarps) {
            loadOperand(x[0], s);
            multiply(c, x[0], fragment + j * count + s);
          }
        }
        if (group4 < rows)
          ptx::storeShared8(place, c[0], c[1]);
      }
      fragment += tiles * count;
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
      emit(Output{extent.tileBegin + first + tile, inTile / kTileRows,
                  inTile % kTileRows},
           sum, partner);
    block.sync(); // before `sums` is written again
  }
  ring.finish(block, fragment, phase);
}

} // namespace grok::device
