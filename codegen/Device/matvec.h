// y = W x for the rows of W that this slot owns and up to 8 vectors x at once,
// on the tensor cores. A lane's 16 bytes of a weight fragment are, as they
// come, the 16 x 16 operand of m16n8k16: the tile's 8 rows with the even k8
// groups of a k32 step above, the same rows with the odd ones below. Two
// products with the even and the odd part of x, of which the upper and the
// lower half count, make the step; the columns are the vectors. With split
// activations two more products add the low halves to the same sums.
#pragma once

#include "codegen/Device/handover.h"
#include "codegen/Device/ring.h"

namespace grok::device {

/// Place of k (0..31) in a k32 step of the operand: a lane's 8 values, {k16
/// step 0, 1} of its even k8 groups, then of its odd ones, lie side by side.
constexpr uint32_t operandElement(uint32_t k) {
  return k % 8 / 2 * 8 + k % 16 / 8 * 4 + k / 16 * 2 + k % 2;
}

/// The staged K block of the operand: planes[plane][row][k] of 16-bit values,
/// each k32 step in the order of operandElement.
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
    uint32_t place =
        row * kStride + k / kTileK * kTileK + operandElement(k % kTileK);
    uint16_t high = to16<kBF16>(x);
    data[place] = high;
    if constexpr (Plan::kPlanes == 2)
      data[Plan::kMaxBatch * kStride + place] =
          to16<kBF16>(x - from16<kBF16>(high));
  }

  /// Stores what OperandWord number i of a vector carries.
  GROK_DEVICE void storeWord(uint32_t row, uint32_t i, uint32_t payload) const {
    if constexpr (OperandWord<B>::kPair)
      *(uint32_t *)(data + row * kStride + 2 * i / kTileK * kTileK +
                    operandElement(2 * i % kTileK)) = payload;
    else
      store(row, i, __builtin_bit_cast(float, payload));
  }
};

/// Stores elements [k0, k0 + count) of vectors of kWidth elements as rows of
/// the operand, zero past the end. words(b) are the OperandWords of row b, or
/// null: the row keeps what the operand held.
template <uint32_t kWidth, class B, class Words>
GROK_DEVICE void stageWords(B &block, uint32_t k0, uint32_t count, Phase phase,
                            Words words) {
  constexpr uint32_t kValues = OperandWord<B>::kValues;
  Operand<B> operand = Operand<B>::of(block);
  const uint32_t rows = block.params.rows;
  if constexpr (kWidth <= B::Plan::kBlockSteps * kTileK) {
    // The words of all rows are on their way together.
    constexpr uint32_t kPerRow = (kWidth + kValues - 1) / kValues;
    forEachWord(
        block, rows * kPerRow, phase,
        [&](uint32_t i) {
          Word row = words(i / kPerRow);
          return Word{row.word + i % kPerRow, row.there};
        },
        [&](uint32_t i, uint32_t payload) {
          operand.storeWord(i / kPerRow, i % kPerRow, payload);
        });
  } else {
    uint32_t left = kWidth - k0 < count ? kWidth - k0 : count;
    for (uint32_t b = 0; b < rows; ++b)
      if (Word row = words(b); row.there)
        forEachWord(
            block, (left + kValues - 1) / kValues, phase,
            [&](uint32_t i) { return Word{row.word + k0 / kValues + i, true}; },
            [&](uint32_t i, uint32_t payload) {
              operand.storeWord(b, i, payload);
            });
  }
  // The padding of the last step; an odd width's last word carries a zero.
  constexpr uint32_t kEnd = (kWidth + kValues - 1) / kValues * kValues;
  if (uint32_t end = kEnd - k0; end < count && end + block.tid < count)
    for (uint32_t b = 0; b < rows; ++b)
      operand.store(b, end + block.tid, 0);
}

/// Where the outputs of one tile group go: thread t < tiles * rows * 8 holds
/// output (tile, row, r), r fastest; `mine` is false for the others.
struct Output {
  bool mine;
  uint32_t tile; // of the matrix
  uint32_t row;  // of the batch
  uint32_t r;    // row of the tile
};

/// A k32 step of the operand or of a tile: a lane's 8 values of it.
template <uint32_t kCount> struct Steps {
  ptx::U4 step[kCount];
};

/// The part of one warp in the products of a K block: steps warp, warp + 16,
/// ... of every tile.
template <class B> struct WarpProduct {
  using Plan = typename B::Plan;
  static constexpr uint32_t kPlanes = Plan::kPlanes;
  /// Steps of a warp in a K block, and how many it loads, multiplies and sums
  /// at a time; a K block of fewer holds the longest row.
  static constexpr uint32_t kSteps = Plan::kBlockSteps / kWarps;
  static constexpr uint32_t kBatch =
      kSteps < kBatchSteps ? kSteps : kBatchSteps;
  /// The operand stays in registers for all tiles where it fits them; sm_80
  /// would spill.
  static constexpr bool kKept =
      kPlanes == 1 && kSteps == kBatch && Plan::kSm >= 90;
  using Operands = Steps<kBatch * kPlanes>;

  B &block;
  RingReader<B> &ring;
  uint32_t rows;
  uint32_t count; // steps of the K block
  Phase phase;

  GROK_DEVICE uint32_t step(uint32_t i) const {
    return block.warp() + i * kWarps;
  }

  /// Steps [first, first + kBatch) of the warp; rows beyond the batch are zero.
  GROK_DEVICE Operands operands(uint32_t first) const {
    constexpr uint32_t kStride = Operand<B>::kStride;
    uint32_t row = block.lane() / 4;
    uint32_t address = block.sharedAddress(B::kShared.operand) +
                       (row * kStride + block.lane() % 4 * 8) * 2;
    Operands x{};
#pragma unroll
    for (uint32_t i = 0; i < kBatch; ++i)
#pragma unroll
      for (uint32_t plane = 0; plane < kPlanes; ++plane)
        x.step[i * kPlanes + plane] =
            ptx::loadShared16If(row < rows && step(first + i) < count,
                                address + step(first + i) * kTileK * 2 +
                                    plane * Plan::kMaxBatch * kStride * 2);
    return x;
  }

  /// Bytes in the ring of steps [first, first + kBatch) of all warps.
  GROK_DEVICE uint32_t batchBytes(uint32_t first) const {
    uint32_t left = count - first * kWarps;
    return (left < kBatch * kWarps ? left : kBatch * kWarps) * kFragmentBytes;
  }

  /// The same steps of the tile that lies `offset` bytes ahead in the ring;
  /// zero without `there`.
  GROK_DEVICE Steps<kBatch> weights(uint32_t first, uint32_t offset,
                                    bool there) const {
    Steps<kBatch> w{};
#pragma unroll
    for (uint32_t i = 0; i < kBatch; ++i)
      w.step[i] = ptx::loadShared16If(
          there && step(first + i) < count,
          ring.address(block, offset + step(i) * kFragmentBytes) +
              block.lane() * 16);
    return w;
  }

  /// Sums of one tile: its upper product counts in [0][0..1], the lower one in
  /// [1][2..3], for weight row lane / 4 and vectors lane % 4 * 2 + {0, 1}.
  using Sums = float[2][4];

  /// sums += w x of several tiles; steps past the end are zero.
  template <uint32_t kTiles>
  GROK_DEVICE void multiply(Sums (&sums)[kTiles], const Operands &x,
                            const Steps<kBatch> (&w)[kTiles]) const {
#pragma unroll
    for (uint32_t i = 0; i < kBatch; ++i)
#pragma unroll
      for (uint32_t plane = 0; plane < kPlanes; ++plane)
#pragma unroll
        for (uint32_t t = 0; t < kTiles; ++t) {
          const ptx::U4 &b = x.step[i * kPlanes + plane];
          ptx::mma<B::Model::kBF16>(sums[t][0], w[t].step[i], b.x, b.y);
          ptx::mma<B::Model::kBF16>(sums[t][1], w[t].step[i], b.z, b.w);
        }
  }
};

/// How far the operand of a single K block is when a product begins.
enum class Staged : uint32_t {
  kNo,
  kStored, // each thread has stored its part
  kShared  // and a barrier has passed since
};

/// Tiles that a warp works on at a time: two, whose loads and products overlap,
/// if their registers are to be had and the stream goes on in the rest of the
/// ring.
template <class B>
inline constexpr uint32_t kTilesTogether =
    WarpProduct<B>::kKept &&
            RingReader<B>::kBytes >=
                4 * kWarps * WarpProduct<B>::kBatch * kFragmentBytes
        ? 2
        : 1;

/// Streams this slot's tiles of `matrix` and calls
///   stage(k0, count): all consumer threads store operand elements k0 .. k0 +
///   count - 1 (padding zeroed by the caller); emit(Output, value, partner):
///   once for each tile group, by whole warps; `partner` is the value of r ^ 1.
/// `staged` tells whether the operand (of a single K block) is already there,
/// and is set. Groups of few tiles sum in the two halves of the scratch by
/// turns, so that of products with one operand the next begins while some warps
/// still reduce the one before. Summation order of an output: a warp sums its
/// k32 steps four at a time, even and odd k8 groups apart, the fours in order;
/// then the warps in order. K blocks don't show.
template <class B, class Stage, class Emit>
GROK_DEVICE void matvec(B &block, RingReader<B> &ring, uint32_t matrix,
                        uint32_t steps, uint32_t rows, Staged &staged,
                        Phase phase, Stage stage, Emit emit) {
  using Plan = typename B::Plan;
  using Product = WarpProduct<B>;
  const abi::Extent extent = block.extent(matrix);

  for (uint32_t first = 0; first < extent.tileCount; first += kGroupTiles) {
    uint32_t tiles = extent.tileCount - first < kGroupTiles
                         ? extent.tileCount - first
                         : kGroupTiles;
    block.beginPhase();
    // The lane's two vectors, and which of them there are.
    const uint32_t vector = block.lane() % 4 * 2;
    const bool hasFirst = vector < rows, hasSecond = vector + 1 < rows;
    const uint32_t tileSums = kWarps * rows * kTileRows * 4;
    const bool few = tiles <= kGroupTiles / 2, apart = few && block.sumsIn < 2;
    block.sumsIn = !few ? 2 : apart ? 1 - block.sumsIn : 0;
    const uint32_t scratch =
        block.sharedAddress(B::kShared.scratch) +
        (block.sumsIn == 1 ? kGroupTiles / 2 * tileSums : 0);
    const uint32_t sums =
        scratch +
        ((block.warp() * rows + vector) * kTileRows + block.lane() / 4) *
            4; // [tile][warp][row][8]
    for (uint32_t k0 = 0; k0 < steps; k0 += Plan::kBlockSteps) {
      Product product{block, ring, rows,
                      steps - k0 < Plan::kBlockSteps ? steps - k0
                                                     : Plan::kBlockSteps,
                      phase};
      if (staged == Staged::kNo || steps > Plan::kBlockSteps) {
        if (k0 > 0)
          block.sync(); // the previous operand has been read
        stage(k0 * kTileK, product.count * kTileK);
        staged = Staged::kStored;
      }
      if (staged == Staged::kStored || !apart)
        block
            .sync(); // the operand is there, and the sums before have been read
      staged = Staged::kShared;
      typename Product::Operands x;
      if constexpr (Product::kKept)
        x = product.operands(0);
      constexpr uint32_t kTiles = kTilesTogether<B>;
#pragma unroll 1
      for (uint32_t j = 0; j < tiles; j += kTiles) {
        const uint32_t here = tiles - j < kTiles ? tiles - j : kTiles;
        auto place = [&](uint32_t t) { return sums + (j + t) * tileSums; };
        // Between K blocks the warp's sums wait where they will be reduced.
        float sum[kTiles][2];
#pragma unroll
        for (uint32_t t = 0; t < kTiles; ++t) {
          sum[t][0] =
              ptx::loadSharedFloatIf(k0 > 0 && hasFirst && t < here, place(t));
          sum[t][1] = ptx::loadSharedFloatIf(k0 > 0 && hasSecond && t < here,
                                             place(t) + kTileRows * 4);
        }
#pragma unroll 1
        for (uint32_t i = 0; i * kWarps < product.count; i += Product::kBatch) {
          const uint32_t bytes = product.batchBytes(i);
          ring.await(block, bytes * here, phase);
          Steps<Product::kBatch> w[kTiles];
#pragma unroll
          for (uint32_t t = 0; t < kTiles; ++t)
            w[t] = product.weights(i, t * bytes, t < here);
          if constexpr (!Product::kKept)
            x = product.operands(i);
          typename Product::Sums c[kTiles] = {};
          product.template multiply<kTiles>(c, x, w);
#pragma unroll
          for (uint32_t t = 0; t < kTiles; ++t) {
            sum[t][0] += c[t][0][0] + c[t][1][2];
            sum[t][1] += c[t][0][1] + c[t][1][3];
          }
          ring.advance(block, bytes * here);
        }
#pragma unroll
        for (uint32_t t = 0; t < kTiles; ++t) {
          ptx::storeSharedFloatIf(hasFirst && t < here, place(t), sum[t][0]);
          ptx::storeSharedFloatIf(hasSecond && t < here,
                                  place(t) + kTileRows * 4, sum[t][1]);
        }
      }
    }
    block.sync();
    const uint32_t perTile = rows * kTileRows;
    if (block.tid - block.lane() < tiles * perTile) { // the whole warp or none
      uint32_t tile = block.tid / perTile, inTile = block.tid % perTile;
      const uint32_t in = scratch + (tile * kWarps * perTile + inTile) * 4;
      float sum = 0;
#pragma unroll
      for (uint32_t w = 0; w < kWarps; ++w)
        sum += ptx::loadSharedFloatIf(tile < tiles, in + w * perTile * 4);
      float partner = ptx::shuffleXor(sum, 1);
      emit(Output{tile < tiles, extent.tileBegin + first + tile,
                  inTile / kTileRows, inTile % kTileRows},
           sum, partner);
    }
  }
  ring.finish(block);
}

} // namespace grok::device
