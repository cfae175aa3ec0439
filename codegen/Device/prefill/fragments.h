// A warp's part of W as products take it.
#pragma once

#include "codegen/Device/prefill/pass.h"

namespace grok::device {

/// 16 rows of a panel of W: {rows 0 to 7, rows 8 to 15} of each step of 32.
struct Fragments {
  ptx::U4 upper[2], lower[2];

  /// The 16 x 16 operand of the i-th step of 16.
  GROK_DEVICE ptx::U4 operand(uint32_t i) const {
    const ptx::U4 &u = upper[i / 2], &l = lower[i / 2];
    return i % 2 ? ptx::U4{u.z, l.z, u.w, l.w} : ptx::U4{u.x, l.x, u.y, l.y};
  }
};

/// Tokens that a product can compute: so many, and the next more. An expert's
/// tokens are in tiles of somewhat more than half the most, or of nearly that.
inline constexpr uint32_t kFewestColumns = 32;
template <bool kWide>
GROK_DEVICE constexpr uint32_t moreColumns(uint32_t columns) {
  if (!kWide)
    return columns + 32;
  if (columns <= 128)
    return columns == 128 ? 144 : columns * 2;
  return columns == 240 ? 256 : columns + 32;
}
/// Tokens that a product computes for `tokens` of a tile.
template <bool kWide>
GROK_DEVICE constexpr uint32_t columnsOf(uint32_t tokens) {
  uint32_t columns = kFewestColumns;
  while (columns < tokens)
    columns = moreColumns<kWide>(columns);
  return columns;
}

} // namespace grok::device
