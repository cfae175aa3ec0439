// Products on sm_80: one warp loads both operands, panel by panel, into stages
// in shared memory; a warp multiplies 32 rows and half of the tokens.
#pragma once

#include "codegen/Device/prefill/fragments.h"
#include "codegen/Device/prefill/product_common.h"

namespace grok::device {

template <class Pass, class Job>
struct MmaProduct
    : ProductCommon<Pass, Job, Pass::Plan::kStages, Pass::kShape.stageBytes()> {
  using Common =
      ProductCommon<Pass, Job, Pass::Plan::kStages, Pass::kShape.stageBytes()>;
  using Common::kPlanes, Common::kPlaneBytes, Common::kSteps, Common::kPanels,
      Common::pass, Common::stage, Common::parity;
  using typename Common::Model, typename Common::Plan;
  static constexpr uint32_t kWeightBytes = kTileHeight * kPanelBytes;
  static constexpr uint32_t kLoads = 32; // threads that load a stage
  using Chunk = device::Chunk<kProductWarps, 2>;

  /// A warp's part of a tile, [16 rows][8 tokens][4].
  static constexpr uint32_t kGroups = Plan::kTileTokens / 16;
  using Sums = float[2][kGroups * 4];

  struct Rows {}; // all of W passes through shared memory
  GROK_DEVICE Rows rowsOf(const ProductTile &) const { return {}; }

  GROK_DEVICE explicit MmaProduct(Pass &pass) : Common(pass) {}

  GROK_DEVICE uint32_t weights(uint32_t s) const {
    return this->base + s * Common::kStageRoom;
  }
  GROK_DEVICE uint32_t tokens(uint32_t s) const {
    return weights(s) + kWeightBytes;
  }

  GROK_DEVICE void load() {
    for (auto turn = this->firstTile(); turn.any(); this->take(turn)) {
      const ProductTile tile = turn.tile(pass);
#pragma unroll 1
      for (uint32_t panel = 0; panel < kPanels; ++panel) {
        Common::await(this->empty(stage), parity ^ 1);
        loadWeights(tile, panel);
        loadTokens(tile, panel);
        ptx::copyAsyncArrive(this->full(stage));
        this->advance();
      }
    }
  }

  /// First tile of 8 rows of the warp, and first group of 8 tokens when
  /// `columns` tokens are computed.
  GROK_DEVICE uint32_t warpTile() const { return pass.warp() / 2 * 4; }
  GROK_DEVICE uint32_t warpGroup(uint32_t columns) const {
    return pass.warp() % 2 * (columns / 16);
  }

  /// sums += W X of all panels.
  template <uint32_t kColumns>
  GROK_DEVICE void multiplyPanels(const ProductTile &, const Rows &,
                                  Sums &sums) {
#pragma unroll 1
    for (uint32_t panel = 0; panel < kSteps / 2; ++panel)
      multiplyPanel<kColumns, true>(sums);
    if constexpr (kSteps % 2 != 0)
      multiplyPanel<kColumns, false>(sums);
  }

  /// The warp's part of a chunk, to shared memory.
  GROK_DEVICE void stageSums(const Chunk &chunk, const Sums &sums) const {
    constexpr uint32_t kOfChunk = kChunkTokens / 16;
#pragma unroll
    for (uint32_t j = 0; j < kGroups; ++j)
      if (j / kOfChunk == chunk.number)
#pragma unroll
        for (uint32_t h = 0; h < 2; ++h)
          chunk.stage(warpTile() * kTileRows + h * 16,
                      (pass.warp() % 2 * kOfChunk + j % kOfChunk) * 8,
                      {sums[h][4 * j], sums[h][4 * j + 1], sums[h][4 * j + 2],
                       sums[h][4 * j + 3]});
  }

  /// Multiplies what the stages hold.
  GROK_DEVICE void multiplyStage(Sums &sums) {
    accumulate<Plan::kTileTokens, true>(sums);
    this->advance();
  }

private:
  GROK_DEVICE void loadWeights(const ProductTile &tile, uint32_t panel) {
    uint32_t rows = Common::kRowTiles - tile.rowTile;
    rows = rows < kTileHeightTiles ? rows : kTileHeightTiles;
    const uint32_t steps = kSteps % 2 == 0 || panel + 1 < kPanels ? 2 : 1;
#pragma unroll 1
    for (uint32_t i = 0; i < rows; ++i) {
      const uint8_t *w = this->rowTile(tile, i).panel(panel);
      for (uint32_t at = pass.lane() * 16; at < steps * kFragmentBytes;
           at += 512)
        ptx::copyAsync16(weights(stage) + i * 2 * kFragmentBytes + at, w + at);
    }
  }
  GROK_DEVICE void loadTokens(const ProductTile &tile, uint32_t panel) {
    const uint8_t *x =
        Job::operand(pass) +
        (uint64_t(panel) * Job::kOperandStride + tile.begin) * kPanelBytes;
    const uint32_t bytes = wholeGroups(tile.tokens) * kPanelBytes;
#pragma unroll 1
    for (uint32_t plane = 0; plane < kPlanes; ++plane)
#pragma unroll 1
      for (uint32_t at = pass.lane() * 16; at < bytes; at += 512)
        ptx::copyAsync16(tokens(stage) + plane * kPlaneBytes + at,
                         x + plane * Common::kOperandPlane + at);
  }

  template <uint32_t kColumns, bool kWhole>
  GROK_DEVICE void multiplyPanel(Sums &sums) {
    Common::await(this->full(stage), parity);
    accumulate<kColumns, kWhole>(sums);
    this->release(stage);
    this->advance();
  }

  template <bool kWhole> GROK_DEVICE Fragments fragments(uint32_t tile) const {
    uint32_t at = weights(stage) + tile * 2 * kFragmentBytes + pass.lane() * 16;
    Fragments f{};
#pragma unroll
    for (uint32_t i = 0; i < (kWhole ? 2 : 1); ++i) {
      f.upper[i] = ptx::loadShared16(at + i * kFragmentBytes);
      f.lower[i] = ptx::loadShared16(at + (2 + i) * kFragmentBytes);
    }
    return f;
  }

  /// sums += W X of the panel in the stage, or of the first half of it.
  template <uint32_t kColumns, bool kWhole>
  GROK_DEVICE void accumulate(Sums &sums) {
    constexpr uint32_t kParts = kWhole ? 4 : 2; // steps of 16
    const uint32_t lane = pass.lane();
    const Fragments w[2] = {fragments<kWhole>(warpTile()),
                            fragments<kWhole>(warpTile() + 2)};
    // The row that the lane's address is for, and whether it is one of the
    // upper 8 values of a step: two groups of 8 tokens at a time.
    const uint32_t token = warpGroup(kColumns) * 8 + lane / 16 * 8 + lane % 8,
                   upper = lane / 8 % 2;
#pragma unroll
    for (uint32_t i = 0; i < kParts; ++i) {
#pragma unroll
      for (uint32_t plane = 0; plane < kPlanes; ++plane) {
        const uint32_t at = tokens(stage) + plane * kPlaneBytes +
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
};

} // namespace grok::device
