// Which tiles of a product a block computes. Outputs don't depend on it.
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
/// that blocks that run together share them.
template <class Pass, uint32_t kFirstPlace> struct PromptTiles {
  template <uint32_t kRowBlocks, class Use>
  GROK_DEVICE static void forEachTile(Pass &pass, Use use) {
    const uint32_t width = promptTileTokens<kRowBlocks>(pass),
                   tokens = pass.params.tokens,
                   count = (tokens + width - 1) / width * kRowBlocks;
    for (uint32_t i = ptx::ctaid(); i < count; i += ptx::nctaid()) {
      const uint32_t begin = i / kRowBlocks * width, left = tokens - begin;
      use(ProductTile{pass.params.places + kFirstPlace,
                      i % kRowBlocks * kTileHeightTiles, begin,
                      left < width ? left : width});
    }
  }
};

/// Part of a job: the tiles of all experts that some token has chosen; their
/// first places are `places`.
template <class Pass, const auto &places> struct ExpertTiles {
  static constexpr uint32_t kOperandStride = Pass::kSortedStride;

  template <uint32_t kRowBlocks, class Use>
  GROK_DEVICE static void forEachTile(Pass &pass, Use use) {
    const GroupTile *groups =
        pass.template region<const GroupTile>(PrefillRegion::kGroups);
    const uint32_t count = groups[0].expert * kRowBlocks;
    for (uint32_t i = ptx::ctaid(); i < count; i += ptx::nctaid()) {
      const GroupTile group = groups[1 + i / kRowBlocks];
      use(ProductTile{pass.params.places + places[group.expert],
                      i % kRowBlocks * kTileHeightTiles, group.begin,
                      group.tokens});
    }
  }
};

} // namespace grok::device
