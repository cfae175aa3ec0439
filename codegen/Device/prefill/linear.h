// The matrix products of a prefill pass, and what becomes of their sums.
#pragma once

#include "codegen/Device/prefill/product.h"

namespace grok::device {

// Rows 2 i and 2 i + 1 of the 16 x 8 sums lie in lanes that differ in bit 2.
// Each lane keeps both of one token, once for the upper 8 rows and once for the
// lower ones (`half`).

/// The first of the lane's two rows, 0 .. 14, and its token, 0 .. 7.
GROK_DEVICE uint32_t rowOfPair(uint32_t lane, uint32_t half) {
  return lane / 8 * 2 + half * 8;
}
GROK_DEVICE uint32_t tokenOfPair(uint32_t lane) {
  return lane % 4 * 2 + lane / 4 % 2;
}
struct RowPair {
  float first, second;
};
GROK_DEVICE RowPair rowPair(uint32_t lane, const float (&c)[4], uint32_t half) {
  const bool odd = lane & 4;
  const float own = c[2 * half], next = c[2 * half + 1];
  float other = ptx::shuffleXor(odd ? own : next, 4);
  return {odd ? other : own, odd ? next : other};
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
template <class Pass>
struct QkvJob : PromptTiles<Pass,
                            (Pass::Model::kHeads + 2 * Pass::Model::kKvHeads) *
                                Pass::Model::kHeadDim,
                            Pass::Plan::kPlaceQkv> {
  using M = typename Pass::Model;
  using P = typename Pass::Plan;
  using Kv = KvElement<M, P>;
  static constexpr uint32_t kHeadDim = M::kHeadDim;
  static constexpr uint32_t kRows = (M::kHeads + 2 * M::kKvHeads) * kHeadDim,
                            kK = M::kHidden, kOperandStride = Pass::kStride;
  static constexpr bool kLayered = true;
  /// A warp's rows belong to one head, so that pairs of them can be stored.
  static constexpr bool kPairs = kHeadDim % 16 == 0 && P::kPlanes == 1;

  /// Of the lane's token: the query head, or the block of positions of a key or
  /// value head, that each of its row pairs belongs to, its position in that
  /// block, and the angle by which the pair turns.
  struct Lookup {
    uint8_t *head[2];
    uint32_t position;
    float cosine[2], sine[2];
  };

  GROK_DEVICE static const uint8_t *operand(Pass &pass) {
    return pass.template region<uint8_t>(PrefillRegion::kInput);
  }

  GROK_DEVICE static uint8_t *headAddress(Pass &pass,
                                          const abi::PrefillToken &token,
                                          uint32_t t, uint32_t head) {
    if (head < M::kHeads)
      return pass.template region<uint8_t>(PrefillRegion::kQuery) +
             (uint64_t(t) * M::kHeads + head) * kHeadDim * Kv::kBytes;
    const uint32_t value = head < M::kHeads + M::kKvHeads ? 0 : 1;
    return kvBlockAddress(pass, pass.params.layer, token.row,
                          token.position / kKvPositions, value,
                          head - M::kHeads - value * M::kKvHeads);
  }

  /// Where dimension d of the head goes.
  GROK_DEVICE static uint8_t *place(const Lookup &found, uint32_t half,
                                    uint32_t head, uint32_t d) {
    using Layout = KvLayout<Pass>;
    return found.head[half] + (head < M::kHeads ? d * Kv::kBytes
                               : turns(head)
                                   ? Layout::key(found.position, d)
                                   : Layout::value(found.position, d));
  }

  GROK_DEVICE static Lookup lookUp(Pass &pass, const ProductTile &tile,
                                   uint32_t row, uint32_t column) {
    Lookup found;
    uint32_t t = column + tokenOfPair(pass.lane());
    t = tile.begin + (t < tile.tokens ? t : 0);
    const abi::PrefillToken token = pass.token(t);
    found.position = token.position % kKvPositions;
    const float *angles = (const float *)(pass.params.arena + P::kRopeOffset) +
                          uint64_t(token.position) * kHeadDim;
#pragma unroll
    for (uint32_t half = 0; half < 2; ++half) {
      // Warps whose rows are of one head compute its address once.
      const uint32_t r = row + (kPairs ? 0 : rowOfPair(pass.lane(), half)),
                     head = r / kHeadDim,
                     j = (row + rowOfPair(pass.lane(), half)) % kHeadDim / 2;
      found.head[half] =
          kPairs && half ? found.head[0] : headAddress(pass, token, t, head);
      if (head < M::kHeads + M::kKvHeads) {
        float angle[2];
        ptx::loadFloats(angles + 2 * j, angle);
        found.cosine[half] = angle[0];
        found.sine[half] = angle[1];
      }
    }
    return found;
  }

  GROK_DEVICE static void store(Pass &pass, const ProductTile &tile,
                                uint32_t row, uint32_t column,
                                const float (&c)[4], const Lookup &found) {
    const bool there = column + tokenOfPair(pass.lane()) < tile.tokens;
    RowPair pairs[2];
#pragma unroll
    for (uint32_t half = 0; half < 2; ++half) {
      pairs[half] = rowPair(pass.lane(), c, half);
      const uint32_t r = kPairs ? row : row + rowOfPair(pass.lane(), half);
      if (turns(r / kHeadDim)) // rows 2 j and 2 j + 1 are j and j + dh / 2
        pairs[half] = {ptx::fma(pairs[half].first, found.cosine[half],
                                -(pairs[half].second * found.sine[half])),
                       ptx::fma(pairs[half].second, found.cosine[half],
                                pairs[half].first * found.sine[half])};
    }
    if constexpr (kPairs) {
      // All lanes turn, or none; matrices end with whole heads.
      const bool turning = turns(row / kHeadDim);
      const uint32_t upper = pass.lane() >> 3 & 1;
      if (turning)
#pragma unroll
        for (uint32_t half = 0; half < 2; ++half) {
          // The lower lane of two keeps dimensions j and j + 1, the upper one
          // those half a head further.
          Neighbours n =
              neighbours(pass.lane(), pairs[half].first, pairs[half].second);
          pairs[half] = {n.first, n.second};
        }
      const uint32_t base = row % kHeadDim,
                     d = turning ? base / 2 + (pass.lane() >> 4) * 4 +
                                       upper * (kHeadDim / 2)
                                 : base + upper * 8 + (pass.lane() >> 4) * 4;
      const bool stores = there && row < kRows;
      const uint32_t head = row / kHeadDim;
      uint8_t *to = place(found, 0, head, d);
      // Neighbouring dimensions of a value lie apart on the tensor cores.
      const uint32_t step = kTensorAttention<Pass> && !turning
                                ? uint32_t(place(found, 0, head, d + 1) - to)
                                : 2;
      storeFour(to, step, turning, stores, pass.lane(),
                to16Pair<M::kBF16>(pairs[0].first, pairs[0].second),
                to16Pair<M::kBF16>(pairs[1].first, pairs[1].second));
      if constexpr (kQueryParts<M, P> == 2)
        storeFour(to + queryPartBytes<Pass>(), 2, turning,
                  stores && head < M::kHeads, pass.lane(),
                  to16Pair<M::kBF16>(rest16<M::kBF16>(pairs[0].first),
                                     rest16<M::kBF16>(pairs[0].second)),
                  to16Pair<M::kBF16>(rest16<M::kBF16>(pairs[1].first),
                                     rest16<M::kBF16>(pairs[1].second)));
    } else {
#pragma unroll
      for (uint32_t half = 0; half < 2; ++half) {
        const uint32_t r = row + rowOfPair(pass.lane(), half),
                       head = r / kHeadDim, j = r % kHeadDim / 2,
                       d = turns(head) ? j : 2 * j,
                       next = turns(head) ? j + kHeadDim / 2 : 2 * j + 1;
        if (!there || r >= kRows)
          continue;
        Kv::store(place(found, half, head, d), pairs[half].first);
        Kv::store(place(found, half, head, next), pairs[half].second);
        if (kQueryParts<M, P> == 2 && head < M::kHeads) {
          uint8_t *to = found.head[half] + queryPartBytes<Pass>();
          *(uint16_t *)(to + d * 2) =
              to16<M::kBF16>(rest16<M::kBF16>(pairs[half].first));
          *(uint16_t *)(to + next * 2) =
              to16<M::kBF16>(rest16<M::kBF16>(pairs[half].second));
        }
      }
    }
  }

private:
  /// Whether a head is one of the queries or keys.
  GROK_DEVICE static bool turns(uint32_t head) {
    return head < M::kHeads + M::kKvHeads;
  }
  /// Two pairs of 16-bit values of a lane, of the upper and the lower 8 rows,
  /// to four that lie `step` bytes apart: lanes that differ in bit 4 (turned
  /// rows) or bit 3 exchange one of them.
  GROK_DEVICE static void storeFour(uint8_t *to, uint32_t step, bool turning,
                                    bool stores, uint32_t lane, uint32_t upper,
                                    uint32_t lower) {
    const uint32_t bit = turning ? 16 : 8;
    const bool second = lane & bit;
    uint32_t other = ptx::shuffleXor(second ? upper : lower, bit);
    uint32_t low = second ? other : upper, high = second ? lower : other;
    if (!stores)
      return;
    if (step == 2) {
      *(uint64_t *)to = uint64_t(high) << 32 | low;
      return;
    }
    *(uint16_t *)to = uint16_t(low);
    *(uint16_t *)(to + step) = uint16_t(low >> 16);
    *(uint16_t *)(to + 2 * step) = uint16_t(high);
    *(uint16_t *)(to + 3 * step) = uint16_t(high >> 16);
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

/// What most products have in common: they look nothing up, and read an operand
/// of kWidth elements a token that lies in a region.
template <class Pass, PrefillRegion kFrom, uint32_t kWidth> struct PlainJob {
  static constexpr uint32_t kK = kWidth;
  static constexpr bool kLayered = true;
  struct Lookup {};

  GROK_DEVICE static const uint8_t *operand(Pass &pass) {
    return pass.template region<uint8_t>(kFrom);
  }
  GROK_DEVICE static Lookup lookUp(Pass &, const ProductTile &, uint32_t,
                                   uint32_t) {
    return {};
  }
};

/// A product whose sums are a sub-block's output.
template <class Pass, PrefillRegion kFrom, uint32_t kWidth, PrefillRegion kTo>
struct OutputJob : PlainJob<Pass, kFrom, kWidth> {
  static constexpr uint32_t kRows = Pass::Model::kHidden;

  GROK_DEVICE static void store(Pass &pass, const ProductTile &tile,
                                uint32_t row, uint32_t column,
                                const float (&c)[4],
                                const typename OutputJob::Lookup &) {
    storeSums(pass, tile, pass.template region<float>(kTo), kRows, row, column,
              c);
  }
};

template <class Pass>
struct AttnOutJob
    : PromptTiles<Pass, Pass::Model::kHidden, Pass::Plan::kPlaceAttnOut>,
      OutputJob<Pass, PrefillRegion::kAttn, Pass::kAttnWidth,
                PrefillRegion::kOutput> {
  static constexpr uint32_t kOperandStride = Pass::kStride;
};

/// GELU. The tanh form without a quotient of differences: z / (1 + e^(-2 u)).
template <bool kErf> GROK_DEVICE float activation(float z) {
  if constexpr (kErf)
    return gelu<true>(z);
  constexpr float kFactor = -2 * 0.797884583f * kLog2E;
  float u = ptx::fma(0.044715f * z * z, z, z);
  return z * ptx::reciprocalApprox(1 + ptx::exp2Approx(kFactor * u));
}

/// gelu(gate) * up of pairs of rows, as an operand.
template <class Operand, bool kErf, class Pass>
GROK_DEVICE void storeActivations(Pass &pass, const ProductTile &tile,
                                  Operand operand, uint32_t width, uint32_t row,
                                  uint32_t column, const float (&c)[4]) {
  float act[2]; // of f and of f + 4
#pragma unroll
  for (uint32_t half = 0; half < 2; ++half) {
    const RowPair pair = rowPair(pass.lane(), c, half);
    // Rows past the matrix are not what memory holds there, but zero.
    act[half] = (row + rowOfPair(pass.lane(), half)) / 2 < width
                    ? activation<kErf>(pair.first) * pair.second
                    : 0.0f;
  }
  const uint32_t f = row / 2 + pass.lane() / 8,
                 token = column + tokenOfPair(pass.lane());
  const Neighbours n = neighbours(pass.lane(), act[0], act[1]);
  if (token < tile.tokens)
    operand.store(tile.begin + token, pass.lane() & 8 ? f - 1 + 4 : f,
                  {n.first, n.second});
}

/// The tiles of all experts that some token has chosen.
template <class Pass> GROK_DEVICE const GroupTile *groupTiles(Pass &pass) {
  return pass.template region<const GroupTile>(PrefillRegion::kGroups);
}

/// Part of a job: the tiles of all experts, whose first places are `places`.
template <class Pass, const auto &places> struct ExpertTiles {
  static constexpr uint32_t kOperandStride = Pass::kSortedStride;
  GROK_DEVICE static uint32_t tokenTiles(Pass &pass) {
    return groupTiles(pass)[0].expert;
  }
  GROK_DEVICE static ProductTile tile(Pass &pass, uint32_t i) {
    const GroupTile &group = groupTiles(pass)[1 + i];
    return {pass.params.places + places[group.expert], 0, group.begin,
            group.tokens, group.expert};
  }
};

/// gelu(gate) * up of an MLP of `kActs` activations, as an operand.
template <class Pass, PrefillRegion kFrom, class Act, uint32_t kActs,
          PrefillRegion kTo>
struct GateUp : PlainJob<Pass, kFrom, Pass::Model::kHidden> {
  static constexpr uint32_t kRows = 2 * kActs;

  GROK_DEVICE static void store(Pass &pass, const ProductTile &tile,
                                uint32_t row, uint32_t column,
                                const float (&c)[4],
                                const typename GateUp::Lookup &) {
    storeActivations<Act, Pass::Model::kGeluErf>(
        pass, tile, {pass.template region<uint8_t>(kTo)}, kActs, row, column,
        c);
  }
};

template <class Pass>
struct GateUpJob : ExpertTiles<Pass, Pass::Plan::kPlaceGateUp>,
                   GateUp<Pass, PrefillRegion::kSorted, typename Pass::Act,
                          Pass::Model::kExpertWidth, PrefillRegion::kAct> {};

template <class Pass>
struct DownJob : ExpertTiles<Pass, Pass::Plan::kPlaceDown>,
                 OutputJob<Pass, PrefillRegion::kAct, Pass::Model::kExpertWidth,
                           PrefillRegion::kOutput> {};

template <class Pass>
struct DenseGateUpJob
    : PromptTiles<Pass, 2 * Pass::Model::kDenseWidth,
                  Pass::Plan::kPlaceDenseGateUp>,
      GateUp<Pass, PrefillRegion::kInput, typename Pass::DenseAct,
             Pass::Model::kDenseWidth, PrefillRegion::kDenseAct> {
  static constexpr uint32_t kOperandStride = Pass::kStride;
};

template <class Pass>
struct DenseDownJob
    : PromptTiles<Pass, Pass::Model::kHidden, Pass::Plan::kPlaceDenseDown>,
      OutputJob<Pass, PrefillRegion::kDenseAct, Pass::Model::kDenseWidth,
                PrefillRegion::kDenseOutput> {
  static constexpr uint32_t kOperandStride = Pass::kStride;
};

/// Logits of the tokens that the launch names.
template <class Pass>
struct HeadJob : PlainJob<Pass, PrefillRegion::kHead, Pass::Model::kHidden> {
  using M = typename Pass::Model;
  static constexpr uint32_t kRows = M::kVocab, kOperandStride = kPanelTokens;
  static constexpr bool kLayered = false;

  GROK_DEVICE static uint32_t tokenTiles(Pass &) { return 1; }
  GROK_DEVICE static ProductTile tile(Pass &pass, uint32_t) {
    return {pass.params.places + Pass::Plan::kPlaceHead, 0, 0,
            pass.params.headCount, 0};
  }
  GROK_DEVICE static void store(Pass &pass, const ProductTile &tile,
                                uint32_t row, uint32_t column,
                                const float (&c)[4],
                                const typename HeadJob::Lookup &) {
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
