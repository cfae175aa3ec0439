// Products on sm_90a: one lane loads the tokens, panel by panel, into stages in
// shared memory; two warpgroups multiply 64 rows each. W's fragments go from
// memory to the registers of the warp that multiplies by them, a few panels
// ahead.
#pragma once

#include "codegen/Device/prefill/fragments.h"
#include "codegen/Device/prefill/product_common.h"
#include "codegen/Device/ptx/wgmma.h"

namespace grok::device {

/// Stages of nothing but tokens, in the room of stages of both operands.
template <class Pass> struct TokenRing {
  static constexpr uint32_t kBytes =
      Pass::Plan::kPlanes * Pass::Plan::kTileTokens * kPanelBytes;
  static constexpr uint32_t kFit =
      Pass::Plan::kStages * Pass::kShape.stageBytes() / kBytes;
  static constexpr uint32_t kMost = 2 * Pass::Plan::kStages - 2;
  static constexpr uint32_t kStages = kFit < kMost ? kFit : kMost;
};

template <class Pass, class Job>
struct WgmmaProduct : ProductCommon<Pass, Job, TokenRing<Pass>::kStages,
                                    TokenRing<Pass>::kBytes> {
  using Common = ProductCommon<Pass, Job, TokenRing<Pass>::kStages,
                               TokenRing<Pass>::kBytes>;
  using Common::kPlanes, Common::kPlaneBytes, Common::kSteps, Common::kPanels,
      Common::pass, Common::stage, Common::parity;
  using typename Common::Model, typename Common::Plan, typename Common::RowTile;
  static constexpr uint32_t kLoads = 1; // threads that load a stage
  /// A warpgroup's sums go out by themselves, so that the other one can
  /// multiply meanwhile.
  static constexpr uint32_t kGroupWarps = 4;
  using Chunk = device::Chunk<kGroupWarps, 1>;
  using Sums = float[1][Plan::kTileTokens / 2]; // [8 tokens][4]

  static constexpr uint32_t kWholePanels = kSteps / 2;
  /// Panels whose weights are on their way, as far as there are registers.
  template <uint32_t kColumns>
  static constexpr uint32_t kAhead = kColumns > 208 ? 2 : 3;

  /// The warp's 16 rows of W.
  struct Rows {
    RowTile upper, lower;

    /// Asks for a panel, if there is one.
    GROK_DEVICE void load(uint32_t panel, uint32_t lane, Fragments &f) const {
      const uint8_t *u = upper.panel(panel) + lane * 16,
                    *l = lower.panel(panel) + lane * 16;
#pragma unroll
      for (uint32_t i = 0; i < 2; ++i) {
        const bool there = panel * 2 + i < kSteps;
        ptx::loadOnce16If(there, u + i * kFragmentBytes, f.upper[i]);
        ptx::loadOnce16If(there, l + i * kFragmentBytes, f.lower[i]);
      }
    }
  };

  GROK_DEVICE Rows rowsOf(const ProductTile &tile) const {
    return {this->rowTile(tile, pass.warp() * 2),
            this->rowTile(tile, pass.warp() * 2 + 1)};
  }

  GROK_DEVICE explicit WgmmaProduct(Pass &pass) : Common(pass) {}

  GROK_DEVICE uint32_t tokens(uint32_t s) const {
    return this->base + s * TokenRing<Pass>::kBytes;
  }

  GROK_DEVICE void load() {
    if constexpr (!Job::kShared)
      if (const auto turn = this->firstTile(); turn.any())
        fetchFirstWeights(turn.tile(pass));
    awaitEarlierLaunch<Plan>();
#pragma unroll 1
    for (auto turn = this->firstTile(); turn.any(); this->take(turn)) {
      const ProductTile tile = turn.tile(pass);
      fetchFirstWeights(tile);
      const uint8_t *x =
          Job::operand(pass) + uint64_t(tile.begin) * kPanelBytes;
      const uint32_t bytes = wholeGroups(tile.tokens) * kPanelBytes;
#pragma unroll 1
      for (uint32_t panel = 0; panel < kPanels; ++panel) {
        Common::await(this->empty(stage), parity ^ 1);
        if (pass.lane() == 0)
          loadTokens(x + uint64_t(panel) * Job::kOperandStride * kPanelBytes,
                     bytes);
        ptx::warpSync();
        this->advance();
      }
    }
  }

  /// sums += W X of all panels.
  template <uint32_t kColumns>
  GROK_DEVICE void multiplyPanels(const ProductTile &, const Rows &rows,
                                  Sums &sums) {
    constexpr uint32_t kRound = kAhead<kColumns>;
    Fragments ahead[kRound] = {};
#pragma unroll
    for (uint32_t i = 0; i < kRound; ++i)
      rows.load(i, pass.lane(), ahead[i]);
#pragma unroll 1
    for (uint32_t panel = 0; panel + kRound <= kWholePanels; panel += kRound) {
#pragma unroll
      for (uint32_t i = 0; i < kRound; ++i)
        multiplyPanel<kColumns, true>(sums, ahead[i], i > 0, [&] {
          rows.load(panel + i + kRound, pass.lane(), ahead[i]);
        });
      finish();
    }
    constexpr uint32_t kLeft = kWholePanels % kRound;
#pragma unroll
    for (uint32_t i = 0; i < kLeft; ++i)
      multiplyPanel<kColumns, true>(sums, ahead[i], i > 0, [] {});
    if constexpr (kSteps % 2 != 0)
      multiplyPanel<kColumns, false>(sums, ahead[kLeft], kLeft > 0, [] {});
    if constexpr (kSteps % 2 != 0 || kLeft > 0)
      finish();
  }

  /// The warp's part of a chunk, to shared memory.
  GROK_DEVICE void stageSums(const Chunk &chunk, const Sums &sums) const {
    constexpr uint32_t kOfChunk = kChunkTokens / 8;
#pragma unroll
    for (uint32_t j = 0; j < Plan::kTileTokens / 8; ++j)
      if (j / kOfChunk == chunk.number)
        chunk.stage(chunk.warp() * 16, j % kOfChunk * 8,
                    {sums[0][4 * j], sums[0][4 * j + 1], sums[0][4 * j + 2],
                     sums[0][4 * j + 3]});
  }

  /// Multiplies what a stage holds by some of it.
  GROK_DEVICE void multiplyStage(Sums &sums) {
    Fragments w;
#pragma unroll
    for (uint32_t i = 0; i < 2; ++i) {
      const uint32_t at = this->base + (pass.tid * 4 + i * 2) * 16;
      w.upper[i] = ptx::loadShared16(at);
      w.lower[i] = ptx::loadShared16(at + 16);
    }
    accumulate<Plan::kTileTokens, true>(sums, w);
    ptx::wgmmaWait<0>();
    this->advance();
  }

private:
  /// Asks for the weights that a tile begins with, so that L2 has them when the
  /// warps that multiply come to it.
  GROK_DEVICE void fetchFirstWeights(const ProductTile &tile) {
    constexpr uint32_t kWanted = 6, // steps
        kFirst = kSteps < kWanted ? kSteps : kWanted;
    static_assert(kWanted <= Plan::kBlockSteps);
    if (pass.lane() < kTileHeightTiles)
      ptx::fetchBulk(this->rowTile(tile, pass.lane()).panel(0),
                     kFirst * kFragmentBytes);
    ptx::warpSync();
  }

  GROK_DEVICE void loadTokens(const uint8_t *x, uint32_t bytes) {
    ptx::mbarrierExpect(this->full(stage), kPlanes * bytes);
#pragma unroll
    for (uint32_t plane = 0; plane < kPlanes; ++plane)
      ptx::bulkCopy(tokens(stage) + plane * kPlaneBytes,
                    x + plane * Common::kOperandPlane, bytes,
                    this->full(stage));
  }

  /// The stage before this one.
  GROK_DEVICE uint32_t before() const {
    return (stage == 0 ? TokenRing<Pass>::kStages : stage) - 1;
  }

  /// The products of the panel before this one are done.
  GROK_DEVICE void finish() {
    ptx::wgmmaWait<0>();
    this->release(before());
  }

  /// The panel's products are still at work at the end; those of the one
  /// before, if some are (`follows`), are done then. next() asks for later
  /// weights, which take the room of these.
  template <uint32_t kColumns, bool kWhole, class Next>
  GROK_DEVICE void multiplyPanel(Sums &sums, const Fragments &w, bool follows,
                                 Next next) {
    Common::await(this->full(stage), parity);
    accumulate<kColumns, kWhole>(sums, w);
    ptx::wgmmaWait<1>();
    if (follows)
      this->release(before());
    next();
    this->advance();
  }

  /// Begins sums += W X of the panel in the stage, or of the first half of it.
  template <uint32_t kColumns, bool kWhole>
  GROK_DEVICE void accumulate(Sums &sums, const Fragments &w) {
    constexpr uint32_t kParts = kWhole ? 4 : 2; // steps of 16
    const uint64_t x = ptx::wgmmaOperand(tokens(stage));
    const uint32_t zero = pass.params.tokens >> 31;
    ptx::U4 operand[kParts];
#pragma unroll
    for (uint32_t i = 0; i < kParts; ++i) {
      operand[i] = ptx::copied(w.operand(i), zero);
    }
    ptx::wgmmaFence();
#pragma unroll
    for (uint32_t i = 0; i < kParts; ++i)
#pragma unroll
      for (uint32_t plane = 0; plane < kPlanes; ++plane)
        ptx::wgmma<Model::kBF16, kColumns>(
            sums[0], operand[i], x + ((plane * kPlaneBytes + i * 32) >> 4));
    ptx::wgmmaCommit();
  }
};

} // namespace grok::device
