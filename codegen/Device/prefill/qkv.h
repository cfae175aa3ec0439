// Queries, keys and values of a pass: what becomes of the fused projection's
// sums.
#pragma once

#include "codegen/Device/prefill/product.h"

namespace grok::device {

/// Queries, keys and values; RoPE on the former two. Keys and values go to the
/// cache as the decode kernel reads them.
///
/// A thread has a token of a chunk and a piece of 16 rows: eight pairs, which
/// of a query or key are turned and then lie half a head apart.
template <class Pass> struct QkvJob : PromptTiles<Pass, Pass::Plan::kPlaceQkv> {
  using M = typename Pass::Model;
  using P = typename Pass::Plan;
  using Kv = KvElement<M, P>;
  using Layout = KvLayout<Pass>;
  static constexpr uint32_t kHeadDim = M::kHeadDim, kHalf = kHeadDim / 2;
  static constexpr uint32_t kTurned = M::kHeads + M::kKvHeads, // heads
      kRows = (kTurned + M::kKvHeads) * kHeadDim, kK = M::kHidden,
                            kOperandStride = Pass::kStride;
  static constexpr bool kLayered = true;
  /// A piece belongs to one head, and its elements are stored 8 at a time.
  static constexpr bool kWhole = kHeadDim % 16 == 0 && P::kPlanes == 1;
  static constexpr uint32_t kPairs = 8;

  /// Where tokens are. Of each of a tile's 8 chunks, a warp needs so many
  /// fours: a lane has one token of each.
  template <class Chunk> struct Place {
    static constexpr uint32_t kFours = 8 / Chunk::kPieces;
    uint32_t row[kFours], position[kFours];
  };
  static_assert(P::kTileTokens / kChunkTokens <= 8);
  /// Where the thread's token of a chunk is, and the angles of its piece,
  /// {cosine, sine}.
  struct Lookup {
    uint32_t row, position;
    float angles[kPairs][2];
  };

  GROK_DEVICE static const uint8_t *operand(Pass &pass) {
    return pass.template region<uint8_t>(PrefillRegion::kInput);
  }

  /// The thread's slot of a chunk and the first row of its piece.
  template <class Chunk> GROK_DEVICE static uint32_t slot(const Chunk &chunk) {
    return chunk.thread / Chunk::kPieces;
  }
  template <class Chunk> GROK_DEVICE static uint32_t piece(const Chunk &chunk) {
    return chunk.thread % Chunk::kPieces * 16;
  }

  template <class Chunk>
  GROK_DEVICE static Place<Chunk> locate(Pass &pass, const ProductTile &tile,
                                         Chunk chunk) {
    Place<Chunk> place;
    chunk.number = chunk.lane() / 4;
#pragma unroll
    for (uint32_t i = 0; i < Place<Chunk>::kFours; ++i) {
      const uint32_t t = chunk.token(
          (chunk.warp() * Place<Chunk>::kFours + i) * 4 + chunk.lane() % 4);
      // Past the tile's end the first token: nothing is stored for it.
      const abi::PrefillToken &found =
          pass.token(tile.begin + (t < tile.tokens ? t : 0));
      place.row[i] = found.row;
      place.position[i] = found.position;
    }
    return place;
  }

  template <class Chunk>
  GROK_DEVICE static Lookup lookUp(Pass &pass, const ProductTile &,
                                   const Place<Chunk> &place,
                                   const Chunk &chunk) {
    Lookup found;
#pragma unroll
    for (uint32_t i = 0; i < Place<Chunk>::kFours; ++i) {
      const uint32_t own = slot(chunk) % (Place<Chunk>::kFours * 4),
                     holder = chunk.number % 8 * 4 + own % 4,
                     row = ptx::shuffle(place.row[i], holder),
                     position = ptx::shuffle(place.position[i], holder);
      if (i == own / 4) {
        found.row = row;
        found.position = position;
      }
    }
    const uint32_t row = chunk.row + piece(chunk);
    const float *angles = (const float *)(pass.params.arena + P::kRopeOffset) +
                          uint64_t(found.position) * kHeadDim;
#pragma unroll
    for (uint32_t i = 0; i < kPairs; i += kWhole ? 2 : 1) {
      const uint32_t r = (row + 2 * i) % kHeadDim;
      if constexpr (kWhole) {
        float two[4];
        ptx::loadFloats(angles + r, two);
        found.angles[i][0] = two[0];
        found.angles[i][1] = two[1];
        found.angles[i + 1][0] = two[2];
        found.angles[i + 1][1] = two[3];
      } else {
        ptx::loadFloats(angles + r, found.angles[i]);
      }
    }
    return found;
  }

  template <class Chunk>
  GROK_DEVICE static void store(Pass &pass, const ProductTile &tile,
                                const Chunk &chunk, const Lookup &found) {
    if (kTensorAttention<Pass> &&
        chunk.row >= kTurned * kHeadDim) // the whole chunk
      return storeValues(pass, tile, chunk);
    const uint32_t row = chunk.row + piece(chunk), t = chunk.token(slot(chunk));
    if (t >= tile.tokens || row >= kRows)
      return;
    float v[16];
    chunk.load(slot(chunk), piece(chunk), v);
    if constexpr (kWhole)
      storePiece(pass, tile.begin + t, row, v, found);
    else
      storePairs(pass, tile.begin + t, row, v, found);
  }

private:
  GROK_DEVICE static uint8_t *query(Pass &pass, uint32_t t, uint32_t head) {
    return pass.template region<uint8_t>(PrefillRegion::kQuery) +
           (uint64_t(t) * M::kHeads + head) * kHeadDim * Kv::kBytes;
  }
  /// The block of positions of a head behind the queries'.
  GROK_DEVICE static uint8_t *block(Pass &pass, uint32_t row, uint32_t position,
                                    uint32_t head) {
    const uint32_t value = head < kTurned ? 0 : 1;
    return kvBlockAddress(pass, pass.params.layer, row, position / kKvPositions,
                          value, head - M::kHeads - value * M::kKvHeads);
  }
  /// Where dimension d of a head goes.
  GROK_DEVICE static uint8_t *place(Pass &pass, uint32_t t, const Lookup &found,
                                    uint32_t head, uint32_t d) {
    if (head < M::kHeads)
      return query(pass, t, head) + d * Kv::kBytes;
    const uint32_t p = found.position % kKvPositions;
    return block(pass, found.row, found.position, head) +
           (head < kTurned ? Layout::key(p, d) : Layout::value(p, d));
  }

  /// {first, second} turned by an angle.
  GROK_DEVICE static void turn(float &first, float &second,
                               const float (&angle)[2]) {
    const float x = first, y = second;
    first = ptx::fma(x, angle[0], -(y * angle[1]));
    second = ptx::fma(y, angle[0], x * angle[1]);
  }

  GROK_DEVICE static void storePiece(Pass &pass, uint32_t t, uint32_t row,
                                     const float (&v)[16],
                                     const Lookup &found) {
    const uint32_t head = row / kHeadDim, d = row % kHeadDim;
    float first[kPairs], second[kPairs];
    const bool turns = head < kTurned;
#pragma unroll
    for (uint32_t i = 0; i < kPairs; ++i) {
      // Values stay as they are: two times eight rows.
      first[i] = turns ? v[2 * i] : v[i];
      second[i] = turns ? v[2 * i + 1] : v[kPairs + i];
      if (turns)
        turn(first[i], second[i], found.angles[i]);
    }
    if (!turns && kTensorAttention<Pass>) {
#pragma unroll
      for (uint32_t i = 0; i < kPairs; ++i) {
        Kv::store(place(pass, t, found, head, d + i), first[i]);
        Kv::store(place(pass, t, found, head, d + kPairs + i), second[i]);
      }
      return;
    }
    const uint32_t lower = turns ? d / 2 : d,
                   upper = turns ? d / 2 + kHalf : d + kPairs;
    store16<M::kBF16>(place(pass, t, found, head, lower), first);
    store16<M::kBF16>(place(pass, t, found, head, upper), second);
    if (kQueryParts<M, P> == 2 && head < M::kHeads) {
      uint8_t *rest = query(pass, t, head) + queryPartBytes<Pass>();
#pragma unroll
      for (uint32_t i = 0; i < kPairs; ++i) {
        first[i] = rest16<M::kBF16>(first[i]);
        second[i] = rest16<M::kBF16>(second[i]);
      }
      store16<M::kBF16>(rest + lower * 2, first);
      store16<M::kBF16>(rest + upper * 2, second);
    }
  }

  /// Pairs that may belong to different heads, an element at a time.
  GROK_DEVICE static void storePairs(Pass &pass, uint32_t t, uint32_t row,
                                     const float (&v)[16],
                                     const Lookup &found) {
#pragma unroll
    for (uint32_t i = 0; i < kPairs; ++i) {
      const uint32_t r = row + 2 * i, head = r / kHeadDim, d = r % kHeadDim;
      if (r >= kRows)
        return;
      float first = v[2 * i], second = v[2 * i + 1];
      const bool turns = head < kTurned;
      if (turns)
        turn(first, second, found.angles[i]);
      const uint32_t lower = turns ? d / 2 : d,
                     upper = turns ? d / 2 + kHalf : d + 1;
      Kv::store(place(pass, t, found, head, lower), first);
      Kv::store(place(pass, t, found, head, upper), second);
      if (kQueryParts<M, P> == 2 && head < M::kHeads) {
        uint16_t *rest =
            (uint16_t *)(query(pass, t, head) + queryPartBytes<Pass>());
        rest[lower] = to16<M::kBF16>(rest16<M::kBF16>(first));
        rest[upper] = to16<M::kBF16>(rest16<M::kBF16>(second));
      }
    }
  }

  /// A chunk of nothing but values, of which the cache holds 8 positions of a
  /// dimension side by side: a lane has those, a warp 16 dimensions.
  template <class Chunk>
  GROK_DEVICE static void storeValues(Pass &pass, const ProductTile &tile,
                                      const Chunk &chunk) {
    constexpr uint32_t kCount = 8;
    const uint32_t firstSlot = chunk.lane() % 4 * kCount,
                   t = chunk.token(firstSlot);
    if (t >= tile.tokens)
      return;
    const uint32_t count = tile.tokens - t < kCount ? tile.tokens - t : kCount;
    const abi::PrefillToken &first = pass.token(tile.begin + t),
                            &last = pass.token(tile.begin + t + count - 1);
    const bool together = count == kCount && first.row == last.row &&
                          first.position % kCount == 0;
#pragma unroll 1
    for (uint32_t half = 0; half < 2; ++half) {
      const uint32_t r = chunk.warp() * 16 + half * 8 + chunk.lane() / 4,
                     row = chunk.row + r;
      if (row >= kRows)
        continue;
      const uint32_t head = row / kHeadDim, d = row % kHeadDim;
      auto to = [&](const abi::PrefillToken &token) {
        return block(pass, token.row, token.position, head) +
               Layout::value(token.position % kKvPositions, d);
      };
      if (together) {
        float v[kCount];
#pragma unroll
        for (uint32_t i = 0; i < kCount; ++i)
          v[i] = chunk.load(firstSlot + i, r);
        store16<M::kBF16>(to(first), v);
        continue;
      }
#pragma unroll 1
      for (uint32_t i = 0; i < count; ++i)
        Kv::store(to(pass.token(tile.begin + t + i)),
                  chunk.load(firstSlot + i, r));
    }
  }
};

} // namespace grok::device
