// The matrix products of a prefill pass, and what becomes of their sums.
#pragma once

#include "codegen/Device/prefill/product.h"

namespace grok::device {

/// Two neighbouring rows of the 16 x 8 sums, of one token: rows 2 i and 2 i + 1
/// lie in lanes that differ in bit 2. Each lane keeps both of one token.
struct RowPair {
  uint32_t row;   // 0 .. 14, even
  uint32_t token; // 0 .. 7
  float first, second;
};
GROK_DEVICE RowPair rowPair(uint32_t lane, const float (&c)[4], uint32_t half) {
  const bool odd = lane & 4;
  const float own = c[2 * half], next = c[2 * half + 1];
  float other = ptx::shuffleXor(odd ? own : next, 4);
  return {lane / 8 * 2 + half * 8, lane % 4 * 2 + (odd ? 1 : 0),
          odd ? other : own, odd ? next : other};
}

/// Values of two tokens' elements that lie in lanes which differ in bit 3: the
/// lower lane keeps the pair `a`, the upper one the pair `b`.
struct Neighbours {
  float first, second;
};
GROK_DEVICE Neighbours neighbours(uint32_t lane, float a, float b) {
  const bool upper = lane & 8;
  float other = ptx::shuffleXor(upper ? a : b, 8);
  return upper ? Neighbours{other, b} : Neighbours{a, other};
}

/// Queries, keys and values; RoPE on the former two. Keys and values go to the
/// cache as the decode kernel reads them.
template <class Pass> struct QkvJob {
  using M = typename Pass::Model;
  using P = typename Pass::Plan;
  using Kv = KvElement<M, P>;
  static constexpr uint32_t kHeadDim = M::kHeadDim;
  static constexpr uint32_t kRows = (M::kHeads + 2 * M::kKvHeads) * kHeadDim,
                            kK = M::kHidden, kOperandStride = Pass::kStride;
  static constexpr bool kLayered = true;
  /// A warp's rows belong to one head, so that pairs of them can be stored.
  static constexpr bool kPairs = kHeadDim % 16 == 0 && P::kPlanes == 1;

  GROK_DEVICE static const uint8_t *operand(Pass &pass) {
    return pass.template region<uint8_t>(PrefillRegion::kInput);
  }
  GROK_DEVICE static uint32_t tokenTiles(Pass &pass) {
    return promptTiles(pass);
  }
  GROK_DEVICE static ProductTile tile(Pass &pass, uint32_t i) {
    ProductTile tile = promptTile(pass, i);
    tile.places = pass.params.places + P::kPlaceQkv;
    return tile;
  }

  /// Where element 0 of a head of a token goes.
  GROK_DEVICE static uint8_t *headAddress(Pass &pass, uint32_t t,
                                          uint32_t head) {
    if (head < M::kHeads)
      return pass.template region<uint8_t>(PrefillRegion::kQuery) +
             (uint64_t(t) * M::kHeads + head) * kHeadDim * Kv::kBytes;
    const abi::PrefillToken &token = pass.token(t);
    const uint32_t value = head < M::kHeads + M::kKvHeads ? 0 : 1;
    return kvBlockAddress(pass, pass.params.layer, token.row,
                          token.position / kKvPositions, value,
                          head - M::kHeads - value * M::kKvHeads) +
           token.position % kKvPositions * kHeadDim * Kv::kBytes;
  }

  GROK_DEVICE static void store(Pass &pass, const ProductTile &tile,
                                uint32_t row, uint32_t column,
                                const float (&c)[4]) {
#pragma unroll
    for (uint32_t half = 0; half < 2; ++half) {
      const RowPair pair = rowPair(pass.lane(), c, half);
      const uint32_t r = row + pair.row, head = r / kHeadDim,
                     j = r % kHeadDim / 2;
      const bool there = column + pair.token < tile.tokens && r < kRows,
                 turns = head < M::kHeads + M::kKvHeads;
      const uint32_t t = there ? tile.begin + column + pair.token : tile.begin;
      float first = pair.first, second = pair.second;
      if (turns) { // rows 2 j and 2 j + 1 are dimensions j and j + dh / 2
        const float *angle =
            (const float *)(pass.params.arena + P::kRopeOffset) +
            (uint64_t(pass.token(t).position) * (kHeadDim / 2) + j) * 2;
        const float cosine = angle[0], sine = angle[1];
        first = ptx::fma(pair.first, cosine, -(pair.second * sine));
        second = ptx::fma(pair.second, cosine, pair.first * sine);
      }
      if constexpr (kPairs) {
        // The warp's rows are of one head: all lanes turn, or none.
        uint32_t d = 2 * j;
        if (turns) {
          Neighbours n = neighbours(pass.lane(), first, second);
          first = n.first;
          second = n.second;
          d = pass.lane() & 8 ? j - 1 + kHeadDim / 2 : j;
        }
        if (there)
          *(uint32_t *)(headAddress(pass, t, head) + d * 2) =
              uint32_t(to16<M::kBF16>(second)) << 16 | to16<M::kBF16>(first);
      } else if (there) {
        uint8_t *to = headAddress(pass, t, head);
        Kv::store(to + (turns ? j : 2 * j) * Kv::kBytes, first);
        Kv::store(to + (turns ? j + kHeadDim / 2 : 2 * j + 1) * Kv::kBytes,
                  second);
      }
    }
  }
};

/// Sums as they are, float32, [token][D].
template <class Pass>
GROK_DEVICE void storeSums(Pass &pass, const ProductTile &tile, float *out,
                           uint32_t width, uint32_t row, uint32_t column,
                           const float (&c)[4]) {
#pragma unroll
  for (uint32_t i = 0; i < 4; ++i) {
    uint32_t r = row + pass.lane() / 4 + i / 2 * 8,
             t = column + pass.lane() % 4 * 2 + i % 2;
    if (r < width && t < tile.tokens)
      out[uint64_t(tile.begin + t) * width + r] = c[i];
  }
}

template <class Pass> struct AttnOutJob {
  using M = typename Pass::Model;
  static constexpr uint32_t kRows = M::kHidden, kK = Pass::kAttnWidth,
                            kOperandStride = Pass::kStride;
  static constexpr bool kLayered = true;

  GROK_DEVICE static const uint8_t *operand(Pass &pass) {
    return pass.template region<uint8_t>(PrefillRegion::kAttn);
  }
  GROK_DEVICE static uint32_t tokenTiles(Pass &pass) {
    return promptTiles(pass);
  }
  GROK_DEVICE static ProductTile tile(Pass &pass, uint32_t i) {
    ProductTile tile = promptTile(pass, i);
    tile.places = pass.params.places + Pass::Plan::kPlaceAttnOut;
    return tile;
  }
  GROK_DEVICE static void store(Pass &pass, const ProductTile &tile,
                                uint32_t row, uint32_t column,
                                const float (&c)[4]) {
    storeSums(pass, tile, pass.template region<float>(PrefillRegion::kOutput),
              kRows, row, column, c);
  }
};

/// gelu(gate) * up of a pair of rows, as an operand.
template <class Operand, bool kErf, class Pass>
GROK_DEVICE void storeActivations(Pass &pass, const ProductTile &tile,
                                  Operand operand, uint32_t width, uint32_t row,
                                  uint32_t column, const float (&c)[4]) {
  float act[2]; // of f and of f + 4
  uint32_t token = 0;
#pragma unroll
  for (uint32_t half = 0; half < 2; ++half) {
    const RowPair pair = rowPair(pass.lane(), c, half);
    token = column + pair.token;
    // Rows past the matrix are not what memory holds there, but zero.
    act[half] = (row + pair.row) / 2 < width
                    ? gelu<kErf>(pair.first) * pair.second
                    : 0.0f;
  }
  const uint32_t f = row / 2 + pass.lane() / 8;
  const Neighbours n = neighbours(pass.lane(), act[0], act[1]);
  if (token < tile.tokens)
    operand.store(tile.begin + token, pass.lane() & 8 ? f - 1 + 4 : f,
                  {n.first, n.second});
}

/// The tiles of all experts that some token has chosen.
template <class Pass> GROK_DEVICE const GroupTile *groupTiles(Pass &pass) {
  return pass.template region<const GroupTile>(PrefillRegion::kGroups);
}
template <class Pass>
GROK_DEVICE ProductTile expertTile(Pass &pass, uint32_t i,
                                   const unsigned *places) {
  const GroupTile &group = groupTiles(pass)[1 + i];
  return {pass.params.places + places[group.expert], 0, group.begin,
          group.tokens, group.expert};
}

template <class Pass> struct GateUpJob {
  using M = typename Pass::Model;
  static constexpr uint32_t kRows = 2 * M::kExpertWidth, kK = M::kHidden,
                            kOperandStride = Pass::kSortedStride;
  static constexpr bool kLayered = true;

  GROK_DEVICE static const uint8_t *operand(Pass &pass) {
    return pass.template region<uint8_t>(PrefillRegion::kSorted);
  }
  GROK_DEVICE static uint32_t tokenTiles(Pass &pass) {
    return groupTiles(pass)[0].expert;
  }
  GROK_DEVICE static ProductTile tile(Pass &pass, uint32_t i) {
    return expertTile(pass, i, Pass::Plan::kPlaceGateUp);
  }
  GROK_DEVICE static void store(Pass &pass, const ProductTile &tile,
                                uint32_t row, uint32_t column,
                                const float (&c)[4]) {
    storeActivations<typename Pass::Act, M::kGeluErf>(
        pass, tile, {pass.template region<uint8_t>(PrefillRegion::kAct)},
        M::kExpertWidth, row, column, c);
  }
};

template <class Pass> struct DownJob {
  using M = typename Pass::Model;
  static constexpr uint32_t kRows = M::kHidden, kK = M::kExpertWidth,
                            kOperandStride = Pass::kSortedStride;
  static constexpr bool kLayered = true;

  GROK_DEVICE static const uint8_t *operand(Pass &pass) {
    return pass.template region<uint8_t>(PrefillRegion::kAct);
  }
  GROK_DEVICE static uint32_t tokenTiles(Pass &pass) {
    return groupTiles(pass)[0].expert;
  }
  GROK_DEVICE static ProductTile tile(Pass &pass, uint32_t i) {
    return expertTile(pass, i, Pass::Plan::kPlaceDown);
  }
  GROK_DEVICE static void store(Pass &pass, const ProductTile &tile,
                                uint32_t row, uint32_t column,
                                const float (&c)[4]) {
    storeSums(pass, tile, pass.template region<float>(PrefillRegion::kOutput),
              kRows, row, column, c);
  }
};

template <class Pass> struct DenseGateUpJob {
  using M = typename Pass::Model;
  static constexpr uint32_t kRows = 2 * M::kDenseWidth, kK = M::kHidden,
                            kOperandStride = Pass::kStride;
  static constexpr bool kLayered = true;

  GROK_DEVICE static const uint8_t *operand(Pass &pass) {
    return pass.template region<uint8_t>(PrefillRegion::kInput);
  }
  GROK_DEVICE static uint32_t tokenTiles(Pass &pass) {
    return promptTiles(pass);
  }
  GROK_DEVICE static ProductTile tile(Pass &pass, uint32_t i) {
    ProductTile tile = promptTile(pass, i);
    tile.places = pass.params.places + Pass::Plan::kPlaceDenseGateUp;
    return tile;
  }
  GROK_DEVICE static void store(Pass &pass, const ProductTile &tile,
                                uint32_t row, uint32_t column,
                                const float (&c)[4]) {
    storeActivations<typename Pass::DenseAct, M::kGeluErf>(
        pass, tile, {pass.template region<uint8_t>(PrefillRegion::kDenseAct)},
        M::kDenseWidth, row, column, c);
  }
};

template <class Pass> struct DenseDownJob {
  using M = typename Pass::Model;
  static constexpr uint32_t kRows = M::kHidden, kK = M::kDenseWidth,
                            kOperandStride = Pass::kStride;
  static constexpr bool kLayered = true;

  GROK_DEVICE static const uint8_t *operand(Pass &pass) {
    return pass.template region<uint8_t>(PrefillRegion::kDenseAct);
  }
  GROK_DEVICE static uint32_t tokenTiles(Pass &pass) {
    return promptTiles(pass);
  }
  GROK_DEVICE static ProductTile tile(Pass &pass, uint32_t i) {
    ProductTile tile = promptTile(pass, i);
    tile.places = pass.params.places + Pass::Plan::kPlaceDenseDown;
    return tile;
  }
  GROK_DEVICE static void store(Pass &pass, const ProductTile &tile,
                                uint32_t row, uint32_t column,
                                const float (&c)[4]) {
    storeSums(pass, tile,
              pass.template region<float>(PrefillRegion::kDenseOutput), kRows,
              row, column, c);
  }
};

/// Logits of the tokens that the launch names.
template <class Pass> struct HeadJob {
  using M = typename Pass::Model;
  static constexpr uint32_t kRows = M::kVocab, kK = M::kHidden,
                            kOperandStride = kPanelTokens;
  static constexpr bool kLayered = false;

  GROK_DEVICE static const uint8_t *operand(Pass &pass) {
    return pass.template region<uint8_t>(PrefillRegion::kHead);
  }
  GROK_DEVICE static uint32_t tokenTiles(Pass &) { return 1; }
  GROK_DEVICE static ProductTile tile(Pass &pass, uint32_t) {
    return {pass.params.places + Pass::Plan::kPlaceHead, 0, 0,
            pass.params.headCount, 0};
  }
  GROK_DEVICE static void store(Pass &pass, const ProductTile &tile,
                                uint32_t row, uint32_t column,
                                const float (&c)[4]) {
    float logits[4];
#pragma unroll
    for (uint32_t i = 0; i < 4; ++i)
      logits[i] = softCap(M::kOutputMultiplier * c[i], M::kFinalCap);
    storeSums(pass, tile,
              (float *)(pass.params.arena + Pass::Plan::kLogitsOffset), kRows,
              row, column, logits);
  }
};

} // namespace grok::device
