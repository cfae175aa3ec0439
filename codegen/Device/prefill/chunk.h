// A tile's sums on their way out: a chunk is rows of kChunkTokens tokens in
// shared memory, where every thread finds neighbouring rows of a token or
// neighbouring tokens of a row, which the tensor cores leave in many lanes.
#pragma once

#include "codegen/Device/prefill/pass.h"

namespace grok::device {

/// The first of the named barriers of the warps that multiply; 0 is the
/// block's.
inline constexpr uint32_t kMultiplyBarrier = 1;

/// kWarps stage a chunk together, each the sums of 16 rows a warp, and take it
/// out again.
///
/// kParts: of the tokens of a tile, that different warps multiply; a chunk
/// takes as many of each.
///
/// Groups of 4 rows are in such an order within a token that what a warp writes
/// or reads at a time lies in different banks.
template <uint32_t kWarps, uint32_t kParts> struct Chunk {
  static constexpr uint32_t kThreads = kWarps * 32, kRows = kWarps * 16,
                            kPieces = kRows / 16, kTokenBytes = kRows * 4;
  uint32_t address; // shared
  uint32_t thread;  // of kThreads
  uint32_t row;     // of the matrix, the first one
  uint32_t columns; // tokens that the tile's products compute
  uint32_t number;

  GROK_DEVICE uint32_t warp() const { return thread / 32; }
  GROK_DEVICE uint32_t lane() const { return thread % 32; }

  /// Token, within the tile, of a slot of the chunk. Eight slots from a
  /// multiple of 8 on are tokens that follow one another, from a multiple of 8
  /// on.
  GROK_DEVICE uint32_t token(uint32_t slot) const {
    constexpr uint32_t kOfPart = kChunkTokens / kParts;
    return slot / kOfPart * (columns / kParts) + number * kOfPart +
           slot % kOfPart;
  }

  /// Of a group of 4 rows.
  GROK_DEVICE uint32_t group(uint32_t slot, uint32_t row) const {
    const uint32_t g = row / 4, turn = (slot / 2 ^ slot % 2) % 4 * 2;
    return address + slot * kTokenBytes + (g ^ g / 8 % 4 ^ turn) * 16;
  }

  /// Stores the lane's part of 16 rows by 8 tokens in the order of m16n8k16.
  GROK_DEVICE void stage(uint32_t row, uint32_t slot,
                         const float (&c)[4]) const {
#pragma unroll
    for (uint32_t i = 0; i < 4; ++i) {
      const uint32_t r = row + lane() / 4 + i / 2 * 8;
      ptx::storeShared(group(slot + lane() % 4 * 2 + i % 2, r) + r % 4 * 4,
                       __builtin_bit_cast(uint32_t, c[i]));
    }
  }

  /// Rows from a multiple of 4 on.
  template <uint32_t kCount>
  GROK_DEVICE void load(uint32_t slot, uint32_t row, float (&v)[kCount]) const {
    static_assert(kCount % 4 == 0);
#pragma unroll
    for (uint32_t i = 0; i < kCount; i += 4) {
      const ptx::U4 four = ptx::loadShared16(group(slot, row + i));
      v[i] = __builtin_bit_cast(float, four.x);
      v[i + 1] = __builtin_bit_cast(float, four.y);
      v[i + 2] = __builtin_bit_cast(float, four.z);
      v[i + 3] = __builtin_bit_cast(float, four.w);
    }
  }
  GROK_DEVICE float load(uint32_t slot, uint32_t row) const {
    uint32_t word[1];
    ptx::loadSharedWords(group(slot, row) + row % 4 * 4, word);
    return __builtin_bit_cast(float, word[0]);
  }
};

} // namespace grok::device
