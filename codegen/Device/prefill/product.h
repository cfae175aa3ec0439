// Y = W X for many tokens: a tile of the output is kTileHeight rows of W by up
// to Plan::kTileTokens tokens. A loading warp brings what passes through shared
// memory, panel by panel of 64 k; eight warps multiply. W's fragments are read
// as they lie in the blob and are the products' register operand: two tiles of
// 8 rows are the 16 x 16 operand of m16n8k16, for two steps of 16.
//
// An output is one chain of sums along k, in steps of 16, with split
// activations the high part before the low one. It depends on nothing but its
// row and its token.
#pragma once

#include "codegen/Device/prefill/product_mma.h"
#include "codegen/Device/prefill/product_wgmma.h"

namespace grok::device {

template <bool kWide, class Pass, class Job> struct ProductFormOf {
  using Type = WgmmaProduct<Pass, Job>;
};
template <class Pass, class Job> struct ProductFormOf<false, Pass, Job> {
  using Type = MmaProduct<Pass, Job>;
};
template <class Pass, class Job>
using ProductForm =
    typename ProductFormOf<(Pass::Plan::kSm >= 90), Pass, Job>::Type;

/// What a product multiplies: the rows and steps of its matrices, and X.
/// `Job` has
///   kRows, kK: of the matrix; operand(pass): X's bytes; kOperandStride;
///   Tiles<kRowBlocks>, of which a block takes every nctaid-th or, if kShared,
///   the next one that counter(pass) gives;
///   store(pass, tile, chunk, found): what becomes of a chunk of its sums, by
///   the threads that staged it. Before the sums are there, they ask for what
///   found = lookUp(pass, tile, place, chunk) loads, and before the products
///   for what place = locate(pass, tile, chunk) does, for all chunks.
template <class Pass, class Job> struct Product : ProductForm<Pass, Job> {
  using Form = ProductForm<Pass, Job>;
  using Form::pass;
  using typename Form::Chunk, typename Form::Plan, typename Form::Rows,
      typename Form::Sums, typename Form::Turn;
  static constexpr bool kWide = Plan::kSm >= 90;
  static constexpr uint32_t kChunkGroups =
      kProductWarps * 32 / Chunk::kThreads; // of warps

  GROK_DEVICE explicit Product(Pass &pass) : Form(pass) {
    this->initialise(Form::kLoads);
  }

  GROK_DEVICE static void settle(Sums &sums) {
#pragma unroll
    for (auto &part : sums)
#pragma unroll
      for (float &sum : part)
        ptx::settled(sum);
  }

  /// sums = W X, with the fewest columns, kColumns or some more, that hold
  /// `columns`.
  template <uint32_t kColumns = kFewestColumns>
  GROK_DEVICE void multiplyAll(const ProductTile &tile, const Rows &rows,
                               Sums &sums) {
    if constexpr (kColumns < Plan::kTileTokens)
      if (tile.tokens > kColumns)
        return multiplyAll<moreColumns<kWide>(kColumns)>(tile, rows, sums);
    this->template multiplyPanels<kColumns>(tile, rows, sums);
  }

  /// The first of the chunks that the thread has a part in.
  GROK_DEVICE Chunk chunkOf(const ProductTile &tile, uint32_t columns) const {
    const uint32_t group = pass.tid / Chunk::kThreads;
    return {this->chunks() + group * (2 * kChunkBytes / kChunkGroups),
            pass.tid % Chunk::kThreads,
            tile.rowTile * kTileRows + group * Chunk::kRows, columns, 0};
  }

  GROK_DEVICE static void clear(Sums &sums) {
#pragma unroll
    for (auto &part : sums)
#pragma unroll
      for (float &sum : part)
        sum = 0;
  }

  /// The block's tiles. Where the next one's weights lie is looked up before
  /// this one's sums go out.
  GROK_DEVICE void multiply() {
    Turn turn = this->firstTile();
    if (!turn.any())
      return;
    ProductTile tile = turn.tile(pass);
    Rows rows = this->rowsOf(tile);
#pragma unroll 1
    for (;;) {
      const uint32_t columns = columnsOf<kWide>(tile.tokens);
      const Chunk chunk = chunkOf(tile, columns);
      const typename Job::template Place<Chunk> place =
          Job::locate(pass, tile, chunk);
      Sums sums;
      clear(sums);
      settle(sums);
      multiplyAll(tile, rows, sums);
      settle(sums);
      this->hear(turn);
      const ProductTile done = tile;
      if (turn.any())
        tile = turn.tile(pass);
      rows = this->rowsOf(tile);
      storeAll(done, chunk, place, sums);
      if (!turn.any())
        return;
    }
  }

  template <class Place>
  GROK_DEVICE void storeAll(const ProductTile &tile, Chunk chunk,
                            const Place &place, const Sums &sums) {
    const uint32_t first = chunk.address;
    auto found = Job::lookUp(pass, tile, place, chunk);
#pragma unroll 1
    while (chunk.number * kChunkTokens < chunk.columns) {
      chunk.address = first + this->staged++ % 2 * (kChunkBytes / kChunkGroups);
      this->stageSums(chunk, sums);
      ptx::barSync(kMultiplyBarrier + pass.tid / Chunk::kThreads,
                   Chunk::kThreads);
      const Chunk here = chunk;
      ++chunk.number;
      const auto later = Job::lookUp(pass, tile, place, chunk);
      Job::store(pass, tile, here, found);
      found = later;
    }
  }

  /// Multiplies what the stages hold `steps` times; the sums are used, as far
  /// as the compiler can know.
  GROK_DEVICE void measure(uint32_t steps, float *sink) {
    Sums sums;
    clear(sums);
#pragma unroll 1
    for (uint32_t step = 0; step < steps; ++step)
      this->multiplyStage(sums);
    settle(sums);
    float all = 0;
#pragma unroll
    for (auto &part : sums)
#pragma unroll
      for (float sum : part)
        all += sum;
    if (all == 1.0e30f)
      *sink = all;
  }

  GROK_DEVICE static void run(Pass &pass) {
    Product product(pass);
    if (pass.warp() >= kProductWarps) {
      if constexpr (kWide)
        ptx::releaseRegisters<kLoadRegisters>();
      if (pass.warp() == kProductWarps)
        product.load();
    } else {
      if constexpr (kWide)
        ptx::claimRegisters<kMultiplyRegisters>();
      awaitEarlierLaunch<Plan>();
      product.multiply();
    }
  }
};

} // namespace grok::device
