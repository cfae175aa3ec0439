// The tiles of a product, in the order in which blocks take them. Outputs don't
// depend on it.
#pragma once

#include "codegen/Device/prefill/pass.h"

namespace grok::device {

/// A tile of the output.
struct ProductTile {
  const abi::TilePlace *places; // of the matrix
  uint32_t rowTile;             // first tile of 8 rows
  uint32_t begin, tokens;       // tokens (or places) of the operand
};

/// Tokens of a tile of a product over the prompt's tokens: the width with which
/// the blocks, each of which takes its share of the tiles, load the fewest
/// operand rows.
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
/// place of the matrix. Row blocks of one tile of tokens follow one another, so
/// that blocks that run together share them; a block takes every nctaid-th
/// tile, since all take as long.
template <class Pass, uint32_t kFirstPlace> struct PromptTiles {
  static constexpr bool kShared = false;

  template <uint32_t kRowBlocks> struct Tiles {
    uint32_t width, tokens, count;

    GROK_DEVICE explicit Tiles(Pass &pass)
        : width(promptTileTokens<kRowBlocks>(pass)), tokens(pass.params.tokens),
          count((tokens + width - 1) / width * kRowBlocks) {}
    GROK_DEVICE ProductTile at(Pass &pass, uint32_t i) const {
      const uint32_t begin = i / kRowBlocks * width, left = tokens - begin;
      return {pass.params.places + kFirstPlace,
              i % kRowBlocks * kTileHeightTiles, begin,
              left < width ? left : width};
    }
  };
};

/// Part of a job: the tiles of all experts that some token has chosen, the
/// widest first; their first places are `places`. Blocks take them as they get
/// free, from counter kCounter.
template <class Pass, const auto &places, uint32_t kCounter>
struct ExpertTiles {
  static constexpr uint32_t kOperandStride = Pass::kSortedStride;
  static constexpr bool kShared = true;

  template <uint32_t kRowBlocks> struct Tiles {
    const GroupTile *groups;
    uint32_t count;

    GROK_DEVICE explicit Tiles(Pass &pass)
        : groups(pass.template region<const GroupTile>(PrefillRegion::kGroups)),
          count(groups[0].expert * kRowBlocks) {}
    GROK_DEVICE ProductTile at(Pass &pass, uint32_t i) const {
      const GroupTile group = groups[1 + i / kRowBlocks];
      return {pass.params.places + places[group.expert],
              i % kRowBlocks * kTileHeightTiles, group.begin, group.tokens};
    }
  };
  GROK_DEVICE static uint32_t *counter(Pass &pass) {
    return tileCounters(pass) + kCounter;
  }
};

} // namespace grok::device
