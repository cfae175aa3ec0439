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

/// Part of a job: the tokens of all experts, whose first places are `places`.
///
/// The columns of all row blocks of all experts, one after another, are cut
/// into as many equal shares as there are pairs of blocks. A pair goes through
/// its row blocks together: one each, or half of the columns each of one that
/// is too wide for a tile or alone. So a row block's weights are read once:
/// what two blocks need of them they need at the same time. For the same reason
/// every other pair goes through its share backwards.
template <class Pass, const auto &places> struct ExpertTiles {
  static constexpr uint32_t kOperandStride = Pass::kSortedStride;
  static constexpr uint32_t kTileTokens = Pass::Plan::kTileTokens;
  /// Columns of a row block that are worth a tile, which loads all the row
  /// block's weights.
  static constexpr uint32_t kLeastColumns = 32;

  template <uint32_t kRowBlocks, class Use>
  GROK_DEVICE static void forEachTile(Pass &pass, Use use) {
    const ExpertGroup *groups =
        pass.template region<const ExpertGroup>(PrefillRegion::kGroups);
    const uint32_t pair = ptx::ctaid() / 2, pairs = (ptx::nctaid() + 1) / 2,
                   member = ptx::ctaid() % 2,
                   members = pair * 2 + 1 < ptx::nctaid() ? 2 : 1;
    const Cut from = cut<kRowBlocks>(pass, groups, pair, pairs),
              to = cut<kRowBlocks>(pass, groups, pair + 1, pairs);
    const uint32_t count =
        to.rowBlock - from.rowBlock + (to.column > 0 ? 1 : 0);
    auto part = [&](uint32_t i) {
      Part p;
      p.rowBlock = from.rowBlock + (pair % 2 ? count - 1 - i : i);
      p.group = groups[1 + p.rowBlock / kRowBlocks];
      p.begin = p.rowBlock == from.rowBlock ? from.column : 0;
      p.end = p.rowBlock == to.rowBlock ? to.column : columnsOf(p.group);
      return p;
    };
    for (uint32_t i = 0; i < count; ++i) {
      const bool together =
          members == 2 && i + 1 < count && part(i).fits() && part(i + 1).fits();
      Part mine = part(together ? i + member : i);
      if (together) {
        ++i;
      } else if (members == 2) {
        const uint32_t middle =
            mine.begin + ceilDiv(mine.end - mine.begin, 2 * kStep) * kStep;
        if (member)
          mine.begin = middle;
        else if (middle < mine.end)
          mine.end = middle;
      }
      const ExpertGroup &group = mine.group;
      const uint32_t end = mine.end < group.tokens ? mine.end : group.tokens;
      for (uint32_t at = mine.begin; at < end; at += kTileTokens)
        use(ProductTile{pass.params.places + places[group.expert],
                        mine.rowBlock % kRowBlocks * kTileHeightTiles,
                        group.begin + at,
                        end - at < kTileTokens ? end - at : kTileTokens});
    }
  }

private:
  /// What a tile's columns are multiples of.
  static constexpr uint32_t kStep = kChunkTokens;

  /// Of a row block, what belongs to a share.
  struct Part {
    uint32_t rowBlock, begin, end; // columns of it
    ExpertGroup group;

    GROK_DEVICE bool fits() const { return end - begin <= kTileTokens; }
  };

  /// A place between two columns.
  struct Cut {
    uint32_t rowBlock, column; // row blocks of all experts; column within it
  };

  GROK_DEVICE static uint32_t columnsOf(const ExpertGroup &group) {
    return (group.tokens + kPanelTokens - 1) / kPanelTokens * kPanelTokens;
  }

  /// Where share `index` of `count` begins, by a whole warp.
  template <uint32_t kRowBlocks>
  GROK_DEVICE static Cut cut(Pass &pass, const ExpertGroup *groups,
                             uint32_t index, uint32_t count) {
    const uint32_t used = groups[0].expert, all = groups[0].begin * kRowBlocks,
                   target = uint32_t(uint64_t(all) * index / count);
    if (target >= all)
      return {used * kRowBlocks, 0};
    // The last expert that begins at or before it.
    uint32_t number = 0;
    for (uint32_t first = 0; first < used; first += 32) {
      const uint32_t i = first + pass.lane();
      const uint32_t before =
          ptx::ballot(i < used && groups[1 + i].begin * kRowBlocks <= target);
      number += __builtin_popcount(before);
    }
    const ExpertGroup group = groups[number];
    const uint32_t columns = columnsOf(group),
                   at = target - group.begin * kRowBlocks,
                   least = kLeastColumns < columns / 2 ? kLeastColumns
                                                       : columns / 2;
    const Cut cut{(number - 1) * kRowBlocks + at / columns,
                  at % columns / kStep * kStep};
    if (at % columns < least)
      return {cut.rowBlock, 0};
    if (columns - at % columns <= least)
      return {cut.rowBlock + 1, 0};
    return cut;
  }
};

} // namespace grok::device
