// Sizes of everything that the prefill kernels touch: their regions of the
// arena and a block's shared memory. The planning pass lays them out, the
// kernels index them; both compute their sizes here.
#pragma once

#include "runtime/bundle/DecodeMemory.h"

namespace grok {

/// An operand of a product lies as the kernels load it:
/// [plane][panel of 64 k][token][64], 16-bit, a token's eight groups of 16
/// bytes in the order group ^ token % 8. So a tile of tokens is contiguous in a
/// panel, and is in shared memory what the tensor cores want.
inline constexpr uint32_t kPanelK = 64;
inline constexpr uint32_t kPanelBytes = kPanelK * 2;
/// Tokens after which that order repeats: where a tile may begin.
inline constexpr uint32_t kPanelTokens = 8;

/// Byte of element k of `token` in an operand of `stride` tokens a panel.
constexpr uint64_t operandOffset(uint32_t stride, uint32_t token, uint32_t k) {
  return (uint64_t(k / kPanelK) * stride + token) * kPanelBytes +
         (k % kPanelK / 8 ^ token % kPanelTokens) * 16 + k % 8 * 2;
}
constexpr uint64_t operandBytes(uint32_t stride, uint32_t width,
                                uint32_t planes) {
  return uint64_t(planes) * ceilDiv(width, kPanelK) * stride * kPanelBytes;
}

/// What the compiler decides of prefill.
struct PrefillTile {
  uint32_t tokens = 0; // of a pass at most; 0: prompts go through decode
  uint32_t tileTokens =
      0;               // columns of an output tile; its rows are kTileHeight
  uint32_t stages = 0; // panels of both operands in shared memory
  uint32_t sharedBytes = 0; // dynamic shared memory of a product's block
  bool operator==(const PrefillTile &) const = default;
};

/// Rows of W of an output tile: a warp has 16 of them, or 32 and half of the
/// tokens.
inline constexpr uint32_t kTileHeight = 128;
inline constexpr uint32_t kTileHeightTiles = kTileHeight / kTileRows;
/// Warps of a product's block that multiply; the next one loads.
inline constexpr uint32_t kProductWarps = 8;
/// On sm_90 registers are handed over from warpgroup to warpgroup, so that the
/// loading warp has three idle ones beside it.
constexpr uint32_t productThreads(uint32_t sm) {
  return (kProductWarps + (sm >= 90 ? 4 : 1)) * 32;
}
/// Registers of a thread at the start: a quarter of the SM has 16384, for at
/// most three of the block's warps.
inline constexpr uint32_t kProductRegisters = 168;
/// Of a thread that multiplies and of one that loads, on sm_90.
inline constexpr uint32_t kMultiplyRegisters = 240, kLoadRegisters = 24;
/// Columns of a tile: a multiple of the one, and at most the other, which the
/// accumulators of a warp hold.
inline constexpr uint32_t kTileTokenStep = 128, kMostTileTokens = 256;
inline constexpr uint32_t kMostPrefillStages = 8;

/// Threads of the blocks of the other kernels.
inline constexpr uint32_t kTokenThreads = 256;
inline constexpr uint32_t kGroupThreads = 1024;
inline constexpr uint32_t kAttentionThreads = 128;
/// Query rows (a token and one of a kv head's query heads) of an attention
/// block.
inline constexpr uint32_t kAttentionRows = kAttentionThreads / 32 * 16;
/// Tokens and threads of a block of the router's product, and the part of a
/// row that it stages at a time.
inline constexpr uint32_t kRouterTokens = 16, kRouterK = 64;

/// What the sizes depend on.
struct PrefillShape {
  DecodeShape model;
  PrefillTile tile;

  /// Tokens of a panel in the order of the prompt.
  constexpr uint32_t stride() const {
    return uint32_t(alignUp(tile.tokens, kPanelTokens));
  }
  /// Of one sorted by expert: every expert's tokens begin where a tile may.
  constexpr uint32_t sortedStride() const {
    return uint32_t(alignUp(uint64_t(tile.tokens) * model.expertsPerToken +
                                uint64_t(kPanelTokens - 1) * model.experts,
                            kPanelTokens));
  }
  /// Tiles of tokens of all experts at most.
  constexpr uint32_t expertTiles() const {
    return model.experts +
           ceilDiv(tile.tokens * model.expertsPerToken, tile.tileTokens);
  }
  constexpr uint32_t attnWidth() const { return model.heads * model.headDim; }
  constexpr uint32_t stageBytes() const {
    return kTileHeight * kPanelBytes +
           model.planes * tile.tileTokens * kPanelBytes;
  }
};

/// A tile's sums go out through shared memory, so many tokens at a time,
/// float32.
inline constexpr uint32_t kChunkTokens = 32;
inline constexpr uint32_t kChunkBytes = kChunkTokens * kTileHeight * 4;

/// Shared memory of a product's block: the stages, which begin at a multiple of
/// 1024 bytes wherever the block's memory begins, barriers of up to twice as
/// many, and two chunks of sums.
inline constexpr uint32_t kStageAlign = 1024;
constexpr uint64_t productSharedBytes(const PrefillShape &s) {
  return kStageAlign + uint64_t(s.tile.stages) * (s.stageBytes() + 32) +
         2 * kChunkBytes;
}

/// What products of a bundle before version 5 use, whose sums stay in
/// registers.
constexpr uint64_t leastProductSharedBytes(const PrefillShape &s) {
  return kStageAlign + uint64_t(s.tile.stages) * (s.stageBytes() + 16);
}

/// Keys and values of a block of positions, of two blocks by turns. A row is
/// 16 bytes longer than its elements so that 8 rows lie in different banks; it
/// is a position's head, or, of values on the tensor cores, a dimension's
/// positions.
constexpr uint32_t attentionRowBytes(uint32_t elements) {
  return uint32_t(alignUp(elements, 16)) * 2 + 16;
}
constexpr uint32_t attentionTileBytes(uint32_t planes, uint32_t headDim) {
  uint32_t plain = kKvPositions * attentionRowBytes(headDim),
           transposed = headDim * attentionRowBytes(kKvPositions);
  return attentionOnTensorCores(planes, headDim) && transposed > plain
             ? transposed
             : plain;
}
constexpr uint64_t attentionSharedBytes(uint32_t planes, uint32_t headDim) {
  return 2 * 2 * uint64_t(attentionTileBytes(planes, headDim));
}
/// Heads whose outputs the attention kernel's registers hold, and query heads
/// of a kv head that one block has rows for.
constexpr bool attentionHolds(uint32_t headDim, uint32_t headsPerKv) {
  return headDim <= 128 && headsPerKv <= kAttentionRows;
}
/// Tokens of a pass at most: places and tiles are counted in 32 bits.
inline constexpr uint32_t kMostPrefillTokens = 65536;

/// The sums over a block of kTokenThreads: two at most.
inline constexpr uint32_t kTokenSharedBytes = 2 * kTokenThreads / 32 * 4;
/// The best candidate of a warp of kGroupThreads, as the next token is chosen.
inline constexpr uint32_t kChooseSharedBytes = kGroupThreads / 32 * 8;
/// The router's x and weights, padded so that rows lie in different banks.
constexpr uint64_t routerSharedBytes(uint32_t experts) {
  return uint64_t(kRouterTokens + experts) * (kRouterK + 4) * 4;
}

/// Counts of the experts' tokens, one set a warp.
constexpr uint64_t groupSharedBytes(uint32_t experts) {
  return uint64_t(kGroupThreads / 32 + 2) * experts * 4;
}

/// Regions of the arena that only prefill uses, in their order there.
inline constexpr uint32_t kNumPrefillRegions = 17;
struct PrefillRegionList {
  RegionSize regions[kNumPrefillRegions];
};
constexpr PrefillRegionList prefillRegions(const PrefillShape &s) {
  const DecodeShape &m = s.model;
  const uint64_t tokens = s.tile.tokens, chosen = tokens * m.expertsPerToken;
  const bool dense = m.denseWidth > 0;
  auto operand = [&](uint32_t stride, uint32_t width) {
    return operandBytes(stride, width, m.planes);
  };
  return {{
      // [token] abi::PrefillToken
      {"prefill_tokens", tokens * 16, Phase::kQkv, Phase::kHead},
      // [token][D] float32
      {"prefill_residual", tokens * m.hidden * 4, Phase::kQkv, Phase::kHead},
      // [token] float32: what the next RMSNorm multiplies by
      {"prefill_norm", tokens * 4, Phase::kQkv, Phase::kHead},
      {"prefill_input", operand(s.stride(), m.hidden), Phase::kQkv,
       Phase::kGateUp},
      // [part][token][query head][dh], 16-bit, a second part with bf16; or
      // float32 with split activations
      {"prefill_query", tokens * s.attnWidth() * 4, Phase::kQkv,
       Phase::kAttention},
      {"prefill_attn", operand(s.stride(), s.attnWidth()), Phase::kAttention,
       Phase::kAttnOut},
      // [token, or place][D] float32: attn_out's and the experts' outputs
      {"prefill_output", uint64_t(s.sortedStride()) * m.hidden * 4,
       Phase::kAttnOut, Phase::kDown},
      {"prefill_scores", m.learnedRouting ? tokens * m.experts * 4 : 0,
       Phase::kRoute, Phase::kRoute}, // [token][E] float32
      // [token][k]: the experts, ascending, their weights and their places
      {"prefill_experts", chosen * 4, Phase::kRoute, Phase::kDown},
      {"prefill_weights", chosen * 4, Phase::kRoute, Phase::kDown},
      {"prefill_places", chosen * 4, Phase::kRoute, Phase::kDown},
      // {count, 0, 0, 0}, then [tile] {expert, first place, tokens, 0}
      {"prefill_groups", uint64_t(s.expertTiles() + 1) * 16, Phase::kRoute,
       Phase::kDown},
      {"prefill_sorted", operand(s.sortedStride(), m.hidden), Phase::kGateUp,
       Phase::kGateUp},
      {"prefill_act", operand(s.sortedStride(), m.expertWidth), Phase::kGateUp,
       Phase::kDown},
      {"prefill_dense_act", dense ? operand(s.stride(), m.denseWidth) : 0,
       Phase::kGateUp, Phase::kDown},
      // [token][D] float32
      {"prefill_dense_output", dense ? tokens * m.hidden * 4 : 0, Phase::kDown,
       Phase::kDown},
      {"prefill_head", operand(kPanelTokens, m.hidden), Phase::kHead,
       Phase::kHead},
  }};
}

} // namespace grok
