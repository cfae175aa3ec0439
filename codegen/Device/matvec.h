// y = W x for the rows of W that this slot owns and up to 8 vectors x at once,
// on the tensor cores. A lane's part of a weight fragment is two k16 steps of 8
// rows; two tiles are the upper and the lower half of the 16-row operand
// of m16n8k16 (a single tile has zeros beside it), the columns are the vectors.
// With split activations a second product adds the low halves to the same sums.
//
// A warp stages, multiplies and sums its own k32 steps of x, so that nothing
// between a word's arrival and the sums waits for another warp.
#pragma once

#include "codegen/Device/operand.h"

namespace grok::device {

/// Whose value a thread holds; `mine` is false if nobody's.
struct Output {
  bool mine;
  uint32_t tile; // of the matrix
  uint32_t row;  // of the batch
  uint32_t r;    // row of the tile
};

/// Threads reduce the sums of as many rows at a time: the largest batch,
/// rounded up to a power of two. Thread t always has row t / 8 % kSumRows and
/// tile row t % 8.
template <class B>
inline constexpr uint32_t kSumRows = powerOfTwoRows(B::Plan::kMaxBatch);

/// Adds the warps' sums of a tile group, scratch[tile][warp][row][8]. Calls
/// use(Output, sum) by whole warps, Output::tile counted from the group's
/// start.
template <class B, class Use>
GROK_DEVICE void reduceTiles(B &block, uint32_t scratch, uint32_t tiles,
                             Use use) {
  constexpr uint32_t kPerTile = kSumRows<B> * kTileRows,
                     kRowBytes = kTileRows * 4;
#pragma unroll 1
  for (uint32_t at = block.tid; at - block.lane() < tiles * kPerTile;
       at += kConsumers) {
    const uint32_t tile = at / kPerTile, row = at / kTileRows % kSumRows<B>,
                   r = at % kTileRows;
    const bool mine = tile < tiles && row < block.rows();
    const uint32_t in = scratch + tile * tileSumsBytes(B::Plan::kMaxBatch) +
                        row * kRowBytes + r * 4;
    float part[kWarps];
#pragma unroll
    for (uint32_t w = 0; w < kWarps; ++w)
      part[w] =
          ptx::loadSharedFloatIf(mine, in + w * B::Plan::kMaxBatch * kRowBytes);
    use(Output{mine, tile, row, r}, sumOfParts(part));
  }
}

/// k32 steps of the operand: a lane's 8 values of each.
template <uint32_t kCount> struct Steps {
  ptx::U4 step[kCount];
};

/// The part of one warp in the products of a K block: steps warp, warp +
/// kWarps, ... of every tile.
template <class B, uint32_t kWidth> struct WarpProduct {
  using Plan = typename B::Plan;
  using Blocks = KBlocks<B, kWidth>;
  using W = Weights<B>;
  static constexpr uint32_t kPlanes = Plan::kPlanes;
  /// Steps of a warp in a K block, and how many it loads, multiplies and sums
  /// at a time; a K block of fewer holds the longest row.
  static constexpr uint32_t kSteps = (Blocks::kMost + kWarps - 1) / kWarps;
  static constexpr uint32_t kBatch =
      kSteps < kBatchSteps ? kSteps : kBatchSteps;
  /// The operand stays in registers for all tiles where it fits them.
  static constexpr bool kKept = kPlanes == 1 && kSteps == kBatch;
  /// Tiles that a warp works on at a time: two, which fill the 16 rows of a
  /// product, if they follow one another in the ring and the stream goes on in
  /// the rest of it.
  static constexpr uint32_t kTiles =
      kKept && RingReader<B>::kBytes >= 3 * Blocks::kMost * W::kFragment ? 2
                                                                         : 1;
  /// A single row leaves columns: where the tiles leave the lower half of a
  /// product, it takes the next step of the upper one's tile, with that step's
  /// operand in the second column.
  static constexpr uint32_t kAtOnce =
      kOneRow<B> && kTiles == 1 && kBatch % 2 == 0 ? 2 : 1;
  using Operands = Steps<kBatch / kAtOnce * kPlanes>;
  using Loaded = WeightSteps<B, kBatch>;
  /// Of a warp's steps in a chunk; a tile may consist of whole ones, where no
  /// scales come before it.
  static constexpr uint32_t kInChunk =
      Plan::kChunkBytes / (kWarps * W::kFragment);
  static constexpr bool kWholeChunks =
      !W::kScaled && Blocks::kEven && kInChunk > 0 &&
      Blocks::kMost *W::kFragment % Plan::kChunkBytes == 0 &&
      Plan::kChunkBytes % (kWarps * W::kFragment) == 0 &&
      (Blocks::kOne ||
       (Blocks::kSteps % Blocks::kMost * W::kFragment % Plan::kChunkBytes ==
            0 &&
        kBatch % kInChunk == 0));

  B &block;
  RingReader<B> &ring;
  uint32_t count; // steps of the K block

  GROK_DEVICE uint32_t step(uint32_t i) const {
    return block.warp() + i * kWarps;
  }
  /// Whether the warp has an i-th step.
  GROK_DEVICE bool has(uint32_t i) const {
    return kEveryStep || step(i) < count;
  }

  /// Steps [first, first + kBatch) of the warp. What lies in columns beyond the
  /// batch is of no account.
  GROK_DEVICE Operands operands(uint32_t first) const {
    constexpr uint32_t kStride = Operand<B>::kStride;
    uint32_t column = block.lane() / 4, row = 0;
    if constexpr (kAtOnce == 2)
      first += column % 2;
    else
      row = column < block.rows() ? column : 0;
    uint32_t address =
        block.sharedAddress(B::kShared.operand) +
        (row * kStride + block.lane() % 4 * 8 + step(first) * kTileK) * 2;
    Operands x;
#pragma unroll
    for (uint32_t i = 0; i < kBatch; i += kAtOnce)
#pragma unroll
      for (uint32_t plane = 0; plane < kPlanes; ++plane)
        x.step[i / kAtOnce * kPlanes + plane] =
            load16(first + i, address + i * kWarps * kTileK * 2 +
                                  plane * Plan::kMaxBatch * kStride * 2);
    return x;
  }

  /// Bytes in the ring of steps [first, first + kBatch) of all warps.
  GROK_DEVICE uint32_t batchBytes(uint32_t first) const {
    if constexpr (Blocks::kOne && kSteps == kBatch)
      return Blocks::kSteps * W::kFragment;
    uint32_t left = count - first * kWarps;
    return (left < kBatch * kWarps ? left : kBatch * kWarps) * W::kFragment;
  }

  /// The same steps of the next `there` tiles in the ring, after waiting for
  /// them. What becomes the second of two tiles, where there is but one, is of
  /// no account.
  GROK_DEVICE void load(Loaded (&w)[kTiles], uint32_t first, uint32_t there,
                        Phase phase) const {
    const uint32_t bytes = batchBytes(first);
    ring.await(block, bytes * there, phase);
#pragma unroll
    for (uint32_t t = 0; t < kTiles; ++t) {
      const uint32_t tile = t < there ? t * bytes : 0;
      uint32_t address = 0;
#pragma unroll
      for (uint32_t i = 0; i < kBatch; ++i) {
        // Only where a chunk begins does the ring's end have to be minded.
        if (!kWholeChunks || i % kInChunk == 0)
          address = ring.address(block, tile + step(i) * W::kFragment) +
                    block.lane() * W::kLaneBytes;
        uint32_t at = address;
        if constexpr (kWholeChunks)
          at += i % kInChunk * kWarps * W::kFragment;
        if constexpr (kEveryStep)
          ptx::loadSharedWords(at, w[t].step[i].word);
        else
          ptx::loadSharedWordsIf(has(first + i), at, w[t].step[i].word);
      }
    }
  }

  /// Sums of the first tile in [0..1], of the second in [2..3], for weight row
  /// lane / 4 and vectors lane % 4 * 2 + {0, 1}.
  using Sums = float[4];
  /// Products that depend on one another follow slowly: steps i, i + kChains,
  /// ... are summed apart.
  static constexpr uint32_t kChains = 4;

  /// sums += w x, the sums of each tile times its scale.
  GROK_DEVICE void multiply(Sums &sums, const Operands &x,
                            const Loaded (&w)[kTiles],
                            const float (&scale)[kTiles]) const {
    Sums chain[kChains / kAtOnce] = {};
#pragma unroll
    for (uint32_t i = 0; i < kBatch; i += kAtOnce) {
      const ptx::U4 upper = W::operand(w[0].step[i]),
                    lower =
                        kTiles * kAtOnce > 1
                            ? W::operand(w[kTiles - 1].step[i + kAtOnce - 1])
                            : upper;
      Sums &c = chain[i / kAtOnce % (kChains / kAtOnce)];
#pragma unroll
      for (uint32_t plane = 0; plane < kPlanes; ++plane) {
        const ptx::U4 &b = x.step[i / kAtOnce * kPlanes + plane];
        ptx::mma<B::Model::kBF16>(c, {upper.x, lower.x, upper.y, lower.y}, b.x,
                                  b.y);
        ptx::mma<B::Model::kBF16>(c, {upper.z, lower.z, upper.w, lower.w}, b.z,
                                  b.w);
      }
    }
#pragma unroll
    for (uint32_t e = 0; e < 4; ++e) {
      float sum;
      if constexpr (kAtOnce == 2) // the second step's: lower half, column 1
        sum = (chain[0][0] + chain[0][3]) + (chain[1][0] + chain[1][3]);
      else
        sum = (chain[0][e] + chain[1][e]) + (chain[2][e] + chain[3][e]);
      if constexpr (W::kScaled)
        sums[e] = ptx::fma(scale[e / 2 % kTiles], sum, sums[e]);
      else
        sums[e] += sum;
    }
  }

private:
  /// Every warp has all steps of a batch.
  static constexpr bool kEveryStep = Blocks::kEven && kSteps % kBatch == 0;

  /// Zero for steps past the end.
  GROK_DEVICE ptx::U4 load16(uint32_t i, uint32_t address) const {
    if constexpr (kEveryStep)
      return ptx::loadShared16(address);
    return ptx::loadShared16If(has(i), address);
  }
};

/// The first tiles of a product, taken from the ring before its operand is
/// there: what follows the last word's arrival is short then.
template <class B, uint32_t kWidth> struct FirstTiles {
  using Product = WarpProduct<B, kWidth>;
  typename Product::Loaded w[Product::kTiles];
  GroupScales<B> scales;
  bool taken = false;

  /// Zeros where nothing is taken: what is not defined on some path would
  /// occupy registers all the way there.
  GROK_DEVICE FirstTiles() {
#pragma unroll
    for (uint32_t t = 0; t < Product::kTiles; ++t)
#pragma unroll
      for (uint32_t i = 0; i < Product::kBatch; ++i)
        w[t].step[i] = {};
  }

  /// Where a K block is a whole row and its operand is kept, takes the tiles
  /// that matvec begins with. A batch needs the registers for its words.
  GROK_DEVICE void take(B &block, RingReader<B> &ring, uint32_t matrix,
                        Phase phase) {
    if constexpr (kOneRow<B> && Product::kKept && Product::Blocks::kOne) {
      const uint32_t tiles = block.extent(matrix).tileCount;
      if (tiles == 0)
        return;
      scales.take(block, ring, tiles < kGroupTiles ? tiles : kGroupTiles,
                  phase);
      Product{block, ring, Product::Blocks::kSteps}.load(
          w, 0, tiles < Product::kTiles ? tiles : Product::kTiles, phase);
      taken = true;
    }
  }
};

/// Streams this slot's tiles of `matrix`, whose rows have kWidth elements, and
/// calls
///   stage(first): each warp stores its steps of the operand's K block that
///   begins with step `first`, padding zeroed; emit(Output, value, partner):
///   once for each output, by whole warps; `partner` is the value of r ^ 1.
/// `staged` tells whether the operand (of a single K block) is already there,
/// and is set. `ahead` are the tiles taken before, if any, and none afterwards.
/// Groups of few tiles sum in the two halves of the scratch by turns, so that
/// the next product begins while some warps still reduce the one before.
/// Summation order of an output: a warp sums kBatchSteps k32 steps in kChains,
/// scales codes' sums, then adds the batches in order; then sumOfParts. Neither
/// K blocks nor pairs of tiles show.
template <uint32_t kWidth, class B, class Stage, class Emit>
GROK_DEVICE void matvec(B &block, RingReader<B> &ring, uint32_t matrix,
                        bool &staged, Phase phase, FirstTiles<B, kWidth> &ahead,
                        Stage stage, Emit emit) {
  using Product = WarpProduct<B, kWidth>;
  using Blocks = KBlocks<B, kWidth>;
  constexpr uint32_t kTiles = Product::kTiles;
  const abi::Extent extent = block.extent(matrix);
  const uint32_t rows = block.rows();

  // Without a tile too, the other block of a pair waits for the rows that this
  // one stages.
#pragma unroll 1
  for (uint32_t first = 0;
       first < extent.tileCount || (kPairStages<B, kWidth> && !staged);
       first += kGroupTiles) {
    uint32_t tiles = extent.tileCount - first < kGroupTiles
                         ? extent.tileCount - first
                         : kGroupTiles;
    block.beginPhase();
    if (!ahead.taken)
      ahead.scales.take(block, ring, tiles, phase);
    // The lane's two vectors, and which of them there are.
    const uint32_t vector = block.lane() % 4 * 2;
    const bool hasFirst = vector < rows, hasSecond = vector + 1 < rows;
    constexpr uint32_t kTileSums = tileSumsBytes(B::Plan::kMaxBatch);
    const bool few = tiles <= kGroupTiles / 2, apart = few && block.sumsIn < 2;
    block.sumsIn = !few ? 2 : apart ? 1 - block.sumsIn : 0;
    const uint32_t scratch =
        block.sharedAddress(B::kShared.scratch) +
        (block.sumsIn == 1 ? kGroupTiles / 2 * kTileSums : 0);
    const uint32_t sums =
        scratch + ((block.warp() * B::Plan::kMaxBatch + vector) * kTileRows +
                   block.lane() / 4) *
                      4; // [tile][warp][row][8]
    if (!apart)
      block.sync(); // what the scratch held has been read
#pragma unroll 1
    for (uint32_t k0 = 0; k0 < Blocks::kSteps; k0 += Blocks::kBlock) {
      Product product{block, ring, Blocks::steps(k0)};
      if (!staged || !Blocks::kOne) {
        ptx::warpSync(); // the warp has read its operand before
        stage(k0);
        staged = true;
      }
      ptx::warpSync();
      typename Product::Operands x;
      if constexpr (Product::kKept)
        x = product.operands(0);
#pragma unroll 1
      for (uint32_t j = 0; j < tiles; j += kTiles) {
        const uint32_t here = tiles - j < kTiles ? tiles - j : kTiles;
        const bool second = kTiles > 1 && here > 1;
        const uint32_t place = sums + j * kTileSums;
        float scale[kTiles], sum[4] = {};
#pragma unroll
        for (uint32_t t = 0; t < kTiles; ++t)
          scale[t] = Weights<B>::kScaled ? ahead.scales.of(block, j + t) : 1;
        if constexpr (!Blocks::kOne) {
          // Between K blocks the warp's sums wait where they will be reduced.
          sum[0] = ptx::loadSharedFloatIf(k0 > 0 && hasFirst, place);
          sum[1] = ptx::loadSharedFloatIf(k0 > 0 && hasSecond,
                                          place + kTileRows * 4);
          sum[2] = ptx::loadSharedFloatIf(k0 > 0 && hasFirst && second,
                                          place + kTileSums);
          sum[3] = ptx::loadSharedFloatIf(k0 > 0 && hasSecond && second,
                                          place + kTileSums + kTileRows * 4);
        }
#pragma unroll 1
        for (uint32_t i = 0; i * kWarps < product.count; i += Product::kBatch) {
          if (!ahead.taken)
            product.load(ahead.w, i, here, phase);
          ahead.taken = false;
          if constexpr (!Product::kKept)
            x = product.operands(i);
          product.multiply(sum, x, ahead.w, scale);
          ring.advance(block, product.batchBytes(i) * here);
        }
        ptx::storeSharedFloatIf(hasFirst, place, sum[0]);
        ptx::storeSharedFloatIf(hasSecond, place + kTileRows * 4, sum[1]);
        ptx::storeSharedFloatIf(hasFirst && second, place + kTileSums, sum[2]);
        ptx::storeSharedFloatIf(hasSecond && second,
                                place + kTileSums + kTileRows * 4, sum[3]);
      }
    }
    block.sync();
    reduceTiles(block, scratch, tiles, [&](Output out, float sum) {
      out.tile += extent.tileBegin + first;
      emit(out, sum, ptx::shuffleXor(sum, 1));
    });
  }
  ring.finish(block);
}

} // namespace grok::device
