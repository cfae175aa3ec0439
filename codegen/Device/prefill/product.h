// Y = W X for many tokens: a tile of the output is kTileHeight rows of W by up
// to Plan::kTileTokens tokens. One warp loads both operands, panel by panel of
// 64 k, into stages in shared memory; eight warps multiply. W's fragments are
// read as they lie in the blob and are the products' register operand: two
// tiles of 8 rows are the 16 x 16 operand of m16n8k16, for two steps of 16.
//
// An output is one chain of sums along k, in steps of 16, with split
// activations the high part before the low one. It depends on nothing but its
// row and its token.
#pragma once

#include "codegen/Device/prefill/pass.h"
#include "codegen/Device/ptx/wgmma.h"

namespace grok::device {

/// A tile of the output.
struct ProductTile {
  const abi::TilePlace *places; // of the matrix
  uint32_t rowTile;             // first tile of 8 rows
  uint32_t begin, tokens;       // tokens (or places) of the operand
  uint32_t expert;
};

/// What a product multiplies: the rows and steps of its matrices, and X.
/// `Job` has
///   kRows, kK: of the matrix; operand(pass): X's bytes; kOperandStride;
///   tokenTiles(pass): how many; tile(pass, i): the i-th of them, with its
///   matrix; store(pass, tile, row, token, c, lookup): the warp's 16 x 8 sums
///   from that row of the matrix and that token of X on, in the order of
///   m16n8k16, with what lookUp(pass, tile, row, token) found for them.
template <class Pass, class Job> struct Product {
  using Model = typename Pass::Model;
  using Plan = typename Pass::Plan;
  static constexpr uint32_t kPlanes = Plan::kPlanes;
  static constexpr uint32_t kStages = Plan::kStages;
  static constexpr uint32_t kRowTiles =
      (Job::kRows + kTileRows - 1) / kTileRows;
  static constexpr uint32_t kRowBlocks =
      (kRowTiles + kTileHeightTiles - 1) / kTileHeightTiles;
  static constexpr uint32_t kSteps = (Job::kK + kTileK - 1) / kTileK;
  static constexpr uint32_t kPanels = (kSteps + 1) / 2;
  static constexpr uint32_t kWeightBytes = kTileHeight * kPanelBytes;
  static constexpr uint32_t kPlaneBytes = Plan::kTileTokens * kPanelBytes;
  static constexpr uint32_t kStageBytes = Pass::kShape.stageBytes();
  static constexpr uint64_t kOperandPlane =
      operandBytes(Job::kOperandStride, Job::kK, 1);
  static constexpr bool kWide = Plan::kSm >= 90; // warpgroups multiply
  /// By how many tokens the computed part of a tile grows.
  static constexpr uint32_t kColumnStep = 64;

  Pass &pass;
  uint32_t base; // shared address of stage 0
  uint32_t stage = 0, parity = 0;

  GROK_DEVICE uint32_t full(uint32_t s) const {
    return base + kStages * kStageBytes + 8 * s;
  }
  GROK_DEVICE uint32_t empty(uint32_t s) const { return full(kStages + s); }
  GROK_DEVICE uint32_t weights(uint32_t s) const {
    return base + s * kStageBytes;
  }
  GROK_DEVICE uint32_t tokens(uint32_t s) const {
    return weights(s) + kWeightBytes;
  }
  /// Whether a panel has both of its steps of 32.
  GROK_DEVICE static bool isWhole(uint32_t panel) {
    return kSteps % 2 == 0 || panel + 1 < kPanels;
  }
  GROK_DEVICE void advance() {
    bool wraps = ++stage == kStages;
    stage = wraps ? 0 : stage;
    parity ^= wraps ? 1 : 0;
  }
  GROK_DEVICE static void await(uint32_t barrier, uint32_t parity) {
    while (!ptx::mbarrierTest<Plan::kSm>(barrier, parity)) {
    }
  }

  GROK_DEVICE static Product of(Pass &pass) {
    uint32_t address = uint32_t((__UINTPTR_TYPE__)grokShared);
    Product product{pass,
                    (address + kStageAlign - 1) / kStageAlign * kStageAlign};
    if (pass.tid == 0) {
      for (uint32_t s = 0; s < kStages; ++s) {
        ptx::mbarrierInit(product.full(s), kWide ? 1 : 32);
        ptx::mbarrierInit(product.empty(s), kProductWarps);
      }
      if constexpr (kWide)
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    ptx::barSync(0, productThreads(Plan::kSm));
    return product;
  }

  /// Calls use(tile) for the block's tiles: row blocks of one tile of tokens
  /// follow one another, so that blocks that run together share them.
  template <class Use> GROK_DEVICE void forEachTile(Use use) const {
    const uint32_t count = Job::tokenTiles(pass) * kRowBlocks;
    for (uint32_t i = ptx::ctaid(); i < count; i += ptx::nctaid()) {
      ProductTile tile = Job::tile(pass, i / kRowBlocks);
      tile.rowTile = i % kRowBlocks * kTileHeightTiles;
      use(tile);
    }
  }

  // --- The loading warp.

  /// What a lane loads of W: one tile of 8 rows.
  struct RowTile {
    const uint8_t *group; // first fragment of its group
    uint32_t groupTiles, inGroup;
    bool there;

    /// Fragments of the panel: `steps` of them side by side.
    GROK_DEVICE const uint8_t *panel(uint32_t panel) const {
      uint32_t step = panel * 2, inBlock = step % Plan::kBlockSteps,
               before = step - inBlock, left = kSteps - before,
               here = left < Plan::kBlockSteps ? left : Plan::kBlockSteps;
      return group +
             (uint64_t(groupTiles) * before + inGroup * here + inBlock) *
                 kFragmentBytes;
    }
  };

  GROK_DEVICE RowTile rowTile(const ProductTile &tile, uint32_t i) const {
    uint32_t t = tile.rowTile + i;
    bool there = i < kTileHeightTiles && t < kRowTiles;
    const abi::TilePlace place = tile.places[there ? t : 0];
    return {pass.params.weights + place.offset +
                (Job::kLayered ? pass.params.layer * place.layerStride : 0),
            place.groupTiles, place.inGroup, there};
  }

  GROK_DEVICE void load() {
    const uint8_t *operand = Job::operand(pass);
    forEachTile([&](const ProductTile &tile) {
      // Whole groups of 8 tokens: what a group has beyond them is in the arena.
      const uint32_t columns =
          (tile.tokens + kPanelTokens - 1) / kPanelTokens * kPanelTokens;
      const uint8_t *from = operand + uint64_t(tile.begin) * kPanelBytes;
      const RowTile mine = rowTile(tile, pass.lane());
      uint32_t rows = kRowTiles - tile.rowTile;
      rows = rows < kTileHeightTiles ? rows : kTileHeightTiles;
#pragma unroll 1
      for (uint32_t panel = 0; panel < kPanels; ++panel) {
        await(empty(stage), parity ^ 1);
        const uint32_t steps = isWhole(panel) ? 2 : 1;
        const uint8_t *x =
            from + uint64_t(panel) * Job::kOperandStride * kPanelBytes;
        if constexpr (kWide)
          loadWide(mine, panel, steps * kFragmentBytes, rows, x, columns);
        else
          loadNarrow(tile, panel, steps * kFragmentBytes, rows, x, columns);
        advance();
      }
    });
  }

  GROK_DEVICE void loadWide(const RowTile &mine, uint32_t panel, uint32_t bytes,
                            uint32_t rows, const uint8_t *x, uint32_t columns) {
    const uint32_t lane = pass.lane();
    if (lane == 0)
      ptx::mbarrierExpect(full(stage),
                          rows * bytes + kPlanes * columns * kPanelBytes);
    ptx::warpSync();
    if (mine.there)
      ptx::bulkCopy(weights(stage) + lane * 2 * kFragmentBytes,
                    mine.panel(panel), bytes, full(stage));
    else if (lane >= 32 - kPlanes)
      ptx::bulkCopy(tokens(stage) + (31 - lane) * kPlaneBytes,
                    x + (31 - lane) * kOperandPlane, columns * kPanelBytes,
                    full(stage));
    ptx::warpSync();
  }

  GROK_DEVICE void loadNarrow(const ProductTile &tile, uint32_t panel,
                              uint32_t bytes, uint32_t rows, const uint8_t *x,
                              uint32_t columns) {
    const uint32_t lane = pass.lane();
#pragma unroll 1
    for (uint32_t i = 0; i < rows; ++i) {
      const uint8_t *w = rowTile(tile, i).panel(panel);
      for (uint32_t at = lane * 16; at < bytes; at += 512)
        ptx::copyAsync16(weights(stage) + i * 2 * kFragmentBytes + at, w + at);
    }
#pragma unroll 1
    for (uint32_t plane = 0; plane < kPlanes; ++plane)
#pragma unroll 1
      for (uint32_t at = lane * 16; at < columns * kPanelBytes; at += 512)
        ptx::copyAsync16(tokens(stage) + plane * kPlaneBytes + at,
                         x + plane * kOperandPlane + at);
    ptx::copyAsyncArrive(full(stage));
  }

  /// Shared memory is not written after the block has gone.
  GROK_DEVICE void drain() {
    for (uint32_t s = 0; s < kStages; ++s) {
      await(empty(stage), parity ^ 1);
      advance();
    }
  }

  // --- The multiplying warps.

  /// 16 rows of a panel of W: {rows 0 to 7, rows 8 to 15} of each step of 32.
  struct Fragments {
    ptx::U4 upper[2], lower[2];

    /// The 16 x 16 operand of the i-th step of 16.
    GROK_DEVICE ptx::U4 operand(uint32_t i) const {
      const ptx::U4 &u = upper[i / 2], &l = lower[i / 2];
      return i % 2 ? ptx::U4{u.z, l.z, u.w, l.w} : ptx::U4{u.x, l.x, u.y, l.y};
    }
  };

  template <bool kWhole>
  GROK_DEVICE Fragments fragments(uint32_t s, uint32_t tile) const {
    uint32_t at = weights(s) + tile * 2 * kFragmentBytes + pass.lane() * 16;
    Fragments f{};
#pragma unroll
    for (uint32_t i = 0; i < (kWhole ? 2 : 1); ++i) {
      f.upper[i] = ptx::loadShared16(at + i * kFragmentBytes);
      f.lower[i] = ptx::loadShared16(at + (2 + i) * kFragmentBytes);
    }
    return f;
  }

  GROK_DEVICE void release() {
    ptx::warpSync();
    if (pass.lane() == 0)
      ptx::mbarrierArrive(empty(stage));
    advance();
  }

  /// A warp's part of a tile, [16 rows][8 tokens][4]. Warpgroups: 16 rows and
  /// all tokens; single warps: 32 rows and half of the tokens.
  static constexpr uint32_t kRowParts = kWide ? 1 : 2,
                            kGroups = Plan::kTileTokens / 8 / kRowParts;
  using Sums = float[kRowParts][kGroups * 4];

  /// First tile of 8 rows of the warp, and first group of 8 tokens when
  /// `columns` tokens are computed.
  GROK_DEVICE uint32_t warpTile() const {
    return kWide ? pass.warp() * 2 : pass.warp() / 2 * 4;
  }
  GROK_DEVICE uint32_t warpGroup(uint32_t columns) const {
    return kWide ? 0 : pass.warp() % 2 * (columns / 16);
  }

  /// sums += W X of the panel in stage s, or of the first half of it.
  template <uint32_t kColumns, bool kWhole>
  GROK_DEVICE void accumulate(Sums &sums, uint32_t s) {
    constexpr uint32_t kParts = kWhole ? 4 : 2; // steps of 16
    if constexpr (kWide) {
      const Fragments w = fragments<kWhole>(s, warpTile());
      const uint64_t x = ptx::wgmmaOperand(tokens(s));
      ptx::wgmmaFence();
#pragma unroll
      for (uint32_t i = 0; i < kParts; ++i)
#pragma unroll
        for (uint32_t plane = 0; plane < kPlanes; ++plane)
          ptx::wgmma<Model::kBF16, kColumns>(
              sums[0], w.operand(i), x + ((plane * kPlaneBytes + i * 32) >> 4));
      ptx::wgmmaCommit();
      ptx::wgmmaWait();
    } else {
      const uint32_t lane = pass.lane();
      const Fragments w[2] = {fragments<kWhole>(s, warpTile()),
                              fragments<kWhole>(s, warpTile() + 2)};
      // The row that the lane's address is for, and whether it is one of the
      // upper 8 values of a step: two groups of 8 tokens at a time.
      const uint32_t token = warpGroup(kColumns) * 8 + lane / 16 * 8 + lane % 8,
                     upper = lane / 8 % 2;
#pragma unroll
      for (uint32_t i = 0; i < kParts; ++i) {
#pragma unroll
        for (uint32_t plane = 0; plane < kPlanes; ++plane) {
          const uint32_t at = tokens(s) + plane * kPlaneBytes +
                              token * kPanelBytes +
                              ((i * 2 + upper) ^ (token % 8)) * 16;
#pragma unroll
          for (uint32_t j = 0; j < kColumns / 16; j += 2) {
            const ptx::U4 x = ptx::loadMatrices(at + j * 8 * kPanelBytes);
#pragma unroll
            for (uint32_t h = 0; h < 2; ++h) {
              multiplyGroup(sums[h], j, w[h].operand(i), x.x, x.y);
              multiplyGroup(sums[h], j + 1, w[h].operand(i), x.z, x.w);
            }
          }
        }
      }
    }
  }

  GROK_DEVICE static void multiplyGroup(float (&sums)[kGroups * 4], uint32_t j,
                                        const ptx::U4 &w, uint32_t x0,
                                        uint32_t x1) {
    float c[4] = {sums[4 * j], sums[4 * j + 1], sums[4 * j + 2],
                  sums[4 * j + 3]};
    ptx::mma<Model::kBF16>(c, w, x0, x1);
#pragma unroll
    for (uint32_t i = 0; i < 4; ++i)
      sums[4 * j + i] = c[i];
  }

  GROK_DEVICE static void clear(Sums &sums) {
#pragma unroll
    for (auto &part : sums)
#pragma unroll
      for (float &sum : part)
        sum = 0;
  }
  GROK_DEVICE static void settle(Sums &sums) {
    if constexpr (kWide)
#pragma unroll
      for (float &sum : sums[0])
        ptx::settled(sum);
  }

  /// Multiplies all panels with the fewest columns, kColumns or a few steps
  /// more, that hold `count` tokens. How many those are.
  template <uint32_t kColumns>
  GROK_DEVICE uint32_t multiplyPanels(Sums &sums, uint32_t count) {
    if constexpr (kColumns < Plan::kTileTokens)
      if (count > kColumns)
        return multiplyPanels<kColumns + kColumnStep>(sums, count);
#pragma unroll 1
    for (uint32_t panel = 0; panel < kSteps / 2; ++panel) {
      await(full(stage), parity);
      accumulate<kColumns, true>(sums, stage);
      release();
    }
    if constexpr (kSteps % 2 != 0) {
      await(full(stage), parity);
      accumulate<kColumns, false>(sums, stage);
      release();
    }
    return kColumns;
  }

  GROK_DEVICE void multiply(const ProductTile &tile) {
    Sums sums;
    clear(sums);
    const uint32_t columns = multiplyPanels<kColumnStep>(sums, tile.tokens),
                   first = warpGroup(columns);
    settle(sums);
    // What a job looks up for its outputs is looked up for several groups at a
    // time, those without a token too: behind a branch or between the stores it
    // would be waited for one by one.
    constexpr uint32_t kTogether = kWide ? 8 : 2;
#pragma unroll
    for (uint32_t h = 0; h < kRowParts; ++h) {
      const uint32_t row = (tile.rowTile + warpTile() + h * 2) * kTileRows;
#pragma unroll
      for (uint32_t j0 = 0; j0 < kGroups; j0 += kTogether) {
        auto there = [&](uint32_t j) {
          return (first + j) * 8 < tile.tokens && (kWide || j < columns / 16);
        };
        typename Job::Lookup lookup[kTogether];
#pragma unroll
        for (uint32_t j = 0; j < kTogether; ++j)
          lookup[j] = Job::lookUp(pass, tile, row, (first + j0 + j) * 8);
#pragma unroll
        for (uint32_t j = 0; j < kTogether; ++j) {
          const uint32_t at = 4 * (j0 + j);
          const float c[4] = {sums[h][at], sums[h][at + 1], sums[h][at + 2],
                              sums[h][at + 3]};
          if (there(j0 + j))
            Job::store(pass, tile, row, (first + j0 + j) * 8, c, lookup[j]);
        }
      }
    }
  }

  /// Multiplies what the stages hold `steps` times; the sums are used, as far
  /// as the compiler can know.
  GROK_DEVICE void measure(uint32_t steps, float *sink) {
    Sums sums;
    clear(sums);
#pragma unroll 1
    for (uint32_t step = 0; step < steps; ++step) {
      accumulate<Plan::kTileTokens, true>(sums, stage);
      advance();
    }
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
    Product product = of(pass);
    if (pass.warp() >= kProductWarps) {
      if constexpr (kWide)
        ptx::releaseRegisters<kLoadRegisters>();
      if (pass.warp() == kProductWarps) {
        product.load();
        product.drain();
      }
    } else {
      if constexpr (kWide)
        ptx::claimRegisters<kMultiplyRegisters>();
      product.forEachTile(
          [&](const ProductTile &tile) { product.multiply(tile); });
    }
  }
};

/// Tokens of a tile of a product over the prompt's tokens: the width with which
/// the blocks, each of which takes its share of the tiles, load the fewest
/// operand rows. Outputs don't depend on it.
template <uint32_t kRowBlocks, class Pass>
GROK_DEVICE uint32_t promptTileTokens(Pass &pass) {
  uint32_t best = Pass::Plan::kTileTokens, least = ~0u;
#pragma unroll
  for (uint32_t width = Pass::Plan::kTileTokens; width >= 32; width /= 2) {
    uint32_t tiles = (pass.params.tokens + width - 1) / width * kRowBlocks,
             rows = (tiles + ptx::nctaid() - 1) / ptx::nctaid() *
                    (kTileHeight + width);
    if (rows < least) {
      best = width;
      least = rows;
    }
  }
  return best;
}

/// Part of a job: the tokens of a pass in their order, `kFirstPlace` being the
/// place of the matrix.
template <class Pass, uint32_t kRows, uint32_t kFirstPlace> struct PromptTiles {
  static constexpr uint32_t kRowBlocks =
      (kRows + kTileHeight - 1) / kTileHeight;
  GROK_DEVICE static uint32_t tokenTiles(Pass &pass) {
    const uint32_t width = promptTileTokens<kRowBlocks>(pass);
    return (pass.params.tokens + width - 1) / width;
  }
  GROK_DEVICE static ProductTile tile(Pass &pass, uint32_t i) {
    const uint32_t width = promptTileTokens<kRowBlocks>(pass),
                   left = pass.params.tokens - i * width;
    return {pass.params.places + kFirstPlace, 0, i * width,
            left < width ? left : width, 0};
  }
};

} // namespace grok::device
