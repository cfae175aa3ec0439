// Y = W X for many tokens: a tile of the output is kTileHeight rows of W by up
// to Plan::kTileTokens tokens. Loading warps bring both operands, panel by
// panel of 64 k, into stages in shared memory; eight warps multiply. W's
// fragments are read as they lie in the blob and are the products' register
// operand: two tiles of 8 rows are the 16 x 16 operand of m16n8k16, for two
// steps of 16.
//
// An output is one chain of sums along k, in steps of 16, with split
// activations the high part before the low one. It depends on nothing but its
// row and its token.
#pragma once

#include "codegen/Device/prefill/chunk.h"
#include "codegen/Device/prefill/tiles.h"
#include "codegen/Device/ptx/wgmma.h"

namespace grok::device {

/// What a product multiplies: the rows and steps of its matrices, and X.
/// `Job` has
///   kRows, kK: of the matrix; operand(pass): X's bytes; kOperandStride;
///   forEachTile<kRowBlocks>(pass, use): the block's tiles;
///   store(pass, tile, chunk, found): what becomes of a chunk of its sums, by
///   all threads that multiply. Before the sums are there, they ask for what
///   found = lookUp(pass, tile, place, number of the chunk) loads, and before
///   the products for what place = locate(pass, tile, token) does,
///   token(number, slot) being a token of the tile.
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
  /// Warps that load: a copy takes its warp some 50 cycles to issue, and a
  /// panel has 17 of them.
  static constexpr uint32_t kLoadWarps = kWide ? 4 : 1;
  using Chunk = device::Chunk<kWide ? 1 : 2>;

  Pass &pass;
  uint32_t base; // shared address of stage 0
  uint32_t stage = 0, parity = 0;
  uint32_t staged = 0; // chunks of sums so far

  GROK_DEVICE uint32_t full(uint32_t s) const {
    return base + kStages * kStageBytes + 8 * s;
  }
  GROK_DEVICE uint32_t empty(uint32_t s) const { return full(kStages + s); }
  /// Of the two chunks of sums.
  GROK_DEVICE uint32_t chunks() const { return full(2 * kStages); }
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

  // --- The loading warps.

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

  GROK_DEVICE RowTile rowTile(const ProductTile &tile, uint32_t i,
                              bool wanted) const {
    uint32_t t = tile.rowTile + i;
    bool there = wanted && t < kRowTiles;
    const abi::TilePlace place = tile.places[there ? t : 0];
    return {pass.params.weights + place.offset +
                (Job::kLayered ? pass.params.layer * place.layerStride : 0),
            place.groupTiles, place.inGroup, there};
  }

  GROK_DEVICE void load() {
    const uint8_t *operand = Job::operand(pass);
    const uint32_t loader = pass.warp() - kProductWarps;
    Job::template forEachTile<kRowBlocks>(pass, [&](const ProductTile &tile) {
      // Whole groups of 8 tokens: what a group has beyond them is in the arena.
      const uint32_t columns =
          (tile.tokens + kPanelTokens - 1) / kPanelTokens * kPanelTokens;
      const uint8_t *from = operand + uint64_t(tile.begin) * kPanelBytes;
      const RowTile mine = rowTile(tile, loader * kLoadTiles + pass.lane(),
                                   kWide && pass.lane() < kLoadTiles);
      uint32_t rows = kRowTiles - tile.rowTile;
      rows = rows < kTileHeightTiles ? rows : kTileHeightTiles;
#pragma unroll 1
      for (uint32_t panel = 0; panel < kPanels; ++panel) {
        await(empty(stage), parity ^ 1);
        const uint32_t steps = isWhole(panel) ? 2 : 1;
        const uint8_t *x =
            from + uint64_t(panel) * Job::kOperandStride * kPanelBytes;
        if constexpr (kWide)
          loadWide(loader, mine, panel, steps * kFragmentBytes, rows, x,
                   columns);
        else
          loadNarrow(tile, panel, steps * kFragmentBytes, rows, x, columns);
        advance();
      }
    });
  }

  /// Tiles of 8 rows that a loading warp brings, a lane each; the next lane
  /// brings a plane of the tokens.
  static constexpr uint32_t kLoadTiles = kTileHeightTiles / kLoadWarps;

  /// The warps load their parts each by itself: bytes may arrive before the
  /// first warp says how many, but not all do, and the phase waits for it.
  GROK_DEVICE void loadWide(uint32_t loader, const RowTile &mine,
                            uint32_t panel, uint32_t bytes, uint32_t rows,
                            const uint8_t *x, uint32_t columns) {
    const uint32_t lane = pass.lane();
    if (loader == 0 && lane == 0)
      ptx::mbarrierExpect(full(stage),
                          rows * bytes + kPlanes * columns * kPanelBytes);
    ptx::warpSync();
    if (mine.there)
      ptx::bulkCopy(weights(stage) +
                        (loader * kLoadTiles + lane) * 2 * kFragmentBytes,
                    mine.panel(panel), bytes, full(stage));
    else if (lane == kLoadTiles && loader < kPlanes)
      ptx::bulkCopy(tokens(stage) + loader * kPlaneBytes,
                    x + loader * kOperandPlane, columns * kPanelBytes,
                    full(stage));
    ptx::warpSync();
  }

  GROK_DEVICE void loadNarrow(const ProductTile &tile, uint32_t panel,
                              uint32_t bytes, uint32_t rows, const uint8_t *x,
                              uint32_t columns) {
    const uint32_t lane = pass.lane();
#pragma unroll 1
    for (uint32_t i = 0; i < rows; ++i) {
      const uint8_t *w = rowTile(tile, i, true).panel(panel);
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

  /// Says that the warp has read stage s.
  GROK_DEVICE void release(uint32_t s) {
    ptx::warpSync();
    if (pass.lane() == 0)
      ptx::mbarrierArrive(empty(s));
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

  /// sums += W X of the panel in stage s, or of the first half of it. Wide: the
  /// products have begun, and are a group of their own.
  template <uint32_t kColumns, bool kWhole>
  GROK_DEVICE void accumulate(Sums &sums, uint32_t s) {
    if constexpr (kWide)
      accumulateWide<kColumns, kWhole>(sums, s);
    else
      accumulateNarrow<kColumns, kWhole>(sums, s);
  }

  template <uint32_t kColumns, bool kWhole>
  GROK_DEVICE void accumulateWide(Sums &sums, uint32_t s) {
    constexpr uint32_t kParts = kWhole ? 4 : 2; // steps of 16
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
  }

  template <uint32_t kColumns, bool kWhole>
  GROK_DEVICE void accumulateNarrow(Sums &sums, uint32_t s) {
    constexpr uint32_t kParts = kWhole ? 4 : 2; // steps of 16
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

  /// sums += W X of all panels.
  template <uint32_t kColumns> GROK_DEVICE void multiplyPanels(Sums &sums) {
    // Two panels a round, so that the weights of one are never in registers
    // that products still read of the other.
#pragma unroll 1
    for (uint32_t panel = 0; panel + 2 <= kSteps / 2; panel += 2) {
      multiplyPanel<kColumns, true>(sums, panel > 0);
      multiplyPanel<kColumns, true>(sums, true);
    }
    if constexpr (kSteps / 2 % 2 != 0)
      multiplyPanel<kColumns, true>(sums, kSteps / 2 > 1);
    if constexpr (kSteps % 2 != 0)
      multiplyPanel<kColumns, false>(sums, kSteps > 1);
    if constexpr (kOverlaps<kColumns>) {
      ptx::wgmmaWait<0>();
      release(before());
    }
  }

  /// The stage before this one.
  GROK_DEVICE uint32_t before() const {
    return stage == 0 ? kStages - 1 : stage - 1;
  }

  /// Whether a panel's products are at work while the next one's weights are
  /// loaded. Narrow tiles wait for memory anyway, and ptxas puts a wait behind
  /// every product of a function in which more than four loops do this.
  template <uint32_t kColumns>
  static constexpr bool kOverlaps = kWide && kColumns > kMostTileTokens / 2;

  /// Overlapping: the panel's products are still at work at the end; those of
  /// the one before, if there is one (`follows`), are done then.
  template <uint32_t kColumns, bool kWhole>
  GROK_DEVICE void multiplyPanel(Sums &sums, bool follows) {
    await(full(stage), parity);
    accumulate<kColumns, kWhole>(sums, stage);
    if constexpr (kOverlaps<kColumns>) {
      ptx::wgmmaWait<1>();
      if (follows)
        release(before());
    } else {
      if constexpr (kWide)
        ptx::wgmmaWait<0>();
      release(stage);
    }
    advance();
  }

  /// With the fewest columns, kColumns or a few more, that hold the tile's
  /// tokens.
  template <uint32_t kColumns = kChunkTokens>
  GROK_DEVICE void multiply(const ProductTile &tile) {
    if constexpr (kColumns < Plan::kTileTokens)
      if (tile.tokens > kColumns)
        return multiply<kColumns + kChunkTokens>(tile);
    const typename Job::Place place =
        Job::locate(pass, tile, [&](uint32_t number, uint32_t slot) {
          return Chunk{0, kColumns, number}.token(slot);
        });
    Sums sums;
    clear(sums);
    settle(sums);
    multiplyPanels<kColumns>(sums);
    settle(sums);
#pragma unroll 1
    for (uint32_t c = 0; c < kColumns / kChunkTokens; ++c) {
      const Chunk here{chunks() + staged++ % 2 * kChunkBytes, kColumns, c};
      const typename Job::Lookup found = Job::lookUp(pass, tile, place, c);
      stageSums<kColumns>(here, sums);
      ptx::barSync(kMultiplyBarrier, kProductWarps * 32);
      Job::store(pass, tile, here, found);
    }
  }

  /// The warp's part of a chunk, to shared memory.
  template <uint32_t kColumns>
  GROK_DEVICE void stageSums(const Chunk &chunk, const Sums &sums) const {
    constexpr uint32_t kOfChunk = kChunkTokens / 8 / kRowParts;
#pragma unroll
    for (uint32_t j = 0; j < kColumns / 8 / kRowParts; ++j)
      if (j / kOfChunk == chunk.number)
#pragma unroll
        for (uint32_t h = 0; h < kRowParts; ++h)
          chunk.stage(pass.lane(), warpTile() * kTileRows + h * 16,
                      kWide ? j % kOfChunk * 8
                            : (pass.warp() % 2 * kOfChunk + j % kOfChunk) * 8,
                      {sums[h][4 * j], sums[h][4 * j + 1], sums[h][4 * j + 2],
                       sums[h][4 * j + 3]});
  }

  /// Multiplies what the stages hold `steps` times; the sums are used, as far
  /// as the compiler can know.
  GROK_DEVICE void measure(uint32_t steps, float *sink) {
    Sums sums;
    clear(sums);
#pragma unroll 1
    for (uint32_t step = 0; step < steps; ++step) {
      accumulate<Plan::kTileTokens, true>(sums, stage);
      if constexpr (kWide)
        ptx::wgmmaWait<0>();
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
      if (pass.warp() < kProductWarps + kLoadWarps)
        product.load();
    } else {
      if constexpr (kWide)
        ptx::claimRegisters<kMultiplyRegisters>();
      Job::template forEachTile<kRowBlocks>(
          pass, [&](const ProductTile &tile) { product.multiply(tile); });
    }
  }
};

} // namespace grok::device
