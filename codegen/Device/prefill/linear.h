// The other matrix products of a prefill pass, and what becomes of their sums.
#pragma once

#include "codegen/Device/prefill/product.h"

namespace grok::device {

/// What these products have in common: they look nothing up, and read an
/// operand of kWidth elements a token that lies in a region.
template <class Pass, PrefillRegion kFrom, uint32_t kWidth> struct PlainJob {
  static constexpr uint32_t kK = kWidth;
  static constexpr bool kLayered = true;
  template <class Chunk> struct Place {};
  struct Lookup {};

  GROK_DEVICE static const uint8_t *operand(Pass &pass) {
    return pass.template region<uint8_t>(kFrom);
  }
  template <class Chunk>
  GROK_DEVICE static Place<Chunk> locate(Pass &, const ProductTile &,
                                         const Chunk &) {
    return {};
  }
  template <class Chunk>
  GROK_DEVICE static Lookup lookUp(Pass &, const ProductTile &, Place<Chunk>,
                                   const Chunk &) {
    return {};
  }
};

/// value(sum) of every sum, float32, [token][kRows]. A thread has 4 rows of a
/// token, and its neighbours the token's other rows.
template <uint32_t kRows, class Chunk, class Value>
GROK_DEVICE void storeSums(const ProductTile &tile, const Chunk &chunk,
                           float *out, Value value) {
  constexpr uint32_t kOfToken = Chunk::kRows / 4, // threads
      kTogether = Chunk::kThreads / kOfToken;     // tokens
  const uint32_t own = chunk.thread % kOfToken * 4, row = chunk.row + own;
#pragma unroll
  for (uint32_t i = 0; i < kChunkTokens / kTogether; ++i) {
    const uint32_t slot = i * kTogether + chunk.thread / kOfToken,
                   t = chunk.token(slot);
    if (t >= tile.tokens)
      continue;
    float v[4];
    chunk.load(slot, own, v);
    float *to = out + uint64_t(tile.begin + t) * kRows + row;
#pragma unroll
    for (uint32_t j = 0; j < 4; ++j)
      v[j] = value(v[j]);
    if constexpr (kRows % 4 == 0) {
      if (row < kRows)
        ptx::storeFloats(to, v);
    } else {
#pragma unroll
      for (uint32_t j = 0; j < 4; ++j)
        if (row + j < kRows)
          to[j] = v[j];
    }
  }
}

/// A product whose sums are a sub-block's output.
template <class Pass, PrefillRegion kFrom, uint32_t kWidth, PrefillRegion kTo>
struct OutputJob : PlainJob<Pass, kFrom, kWidth> {
  static constexpr uint32_t kRows = Pass::Model::kHidden;

  template <class Chunk>
  GROK_DEVICE static void store(Pass &pass, const ProductTile &tile,
                                const Chunk &chunk,
                                typename OutputJob::Lookup) {
    storeSums<kRows>(tile, chunk, pass.template region<float>(kTo),
                     [](float sum) { return sum; });
  }
};

template <class Pass>
struct AttnOutJob : PromptTiles<Pass, Pass::Plan::kPlaceAttnOut>,
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

/// gelu(gate) * up of an MLP of `kActs` activations, as an operand. A thread
/// has a token and a piece of 16 rows: 8 activations.
template <class Pass, PrefillRegion kFrom, class Act, uint32_t kActs,
          PrefillRegion kTo>
struct GateUp : PlainJob<Pass, kFrom, Pass::Model::kHidden> {
  static constexpr uint32_t kRows = 2 * kActs;

  template <class Chunk>
  GROK_DEVICE static void store(Pass &pass, const ProductTile &tile,
                                const Chunk &chunk, typename GateUp::Lookup) {
    constexpr uint32_t kCount = 8;
    const uint32_t slot = chunk.thread / Chunk::kPieces,
                   own = chunk.thread % Chunk::kPieces * 16,
                   t = chunk.token(slot), first = (chunk.row + own) / 2;
    if (t >= tile.tokens)
      return;
    float v[2 * kCount], act[kCount];
    chunk.load(slot, own, v);
    // Rows past the matrix are not what memory holds there, but zero.
#pragma unroll
    for (uint32_t i = 0; i < kCount; ++i)
      act[i] = first + i < kActs
                   ? activation<Pass::Model::kGeluErf>(v[2 * i]) * v[2 * i + 1]
                   : 0.0f;
    Act{pass.template region<uint8_t>(kTo)}.store(tile.begin + t, first, act);
  }
};

template <class Pass>
struct GateUpJob : ExpertTiles<Pass, Pass::Plan::kPlaceGateUp, kGateUpCounter>,
                   GateUp<Pass, PrefillRegion::kSorted, typename Pass::Act,
                          Pass::Model::kExpertWidth, PrefillRegion::kAct> {};

template <class Pass>
struct DownJob : ExpertTiles<Pass, Pass::Plan::kPlaceDown, kDownCounter>,
                 OutputJob<Pass, PrefillRegion::kAct, Pass::Model::kExpertWidth,
                           PrefillRegion::kOutput> {};

template <class Pass>
struct DenseGateUpJob
    : PromptTiles<Pass, Pass::Plan::kPlaceDenseGateUp>,
      GateUp<Pass, PrefillRegion::kInput, typename Pass::DenseAct,
             Pass::Model::kDenseWidth, PrefillRegion::kDenseAct> {
  static constexpr uint32_t kOperandStride = Pass::kStride;
};

template <class Pass>
struct DenseDownJob
    : PromptTiles<Pass, Pass::Plan::kPlaceDenseDown>,
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

  static constexpr bool kShared = false;
  template <uint32_t kRowBlocks> struct Tiles {
    static constexpr uint32_t count = kRowBlocks;
    GROK_DEVICE explicit Tiles(Pass &) {}
    GROK_DEVICE ProductTile at(Pass &pass, uint32_t i) const {
      return {pass.params.places + Pass::Plan::kPlaceHead, i * kTileHeightTiles,
              0, pass.params.headCount};
    }
  };
  template <class Chunk>
  GROK_DEVICE static void store(Pass &pass, const ProductTile &tile,
                                const Chunk &chunk, typename HeadJob::Lookup) {
    storeSums<kRows>(tile, chunk,
                     (float *)(pass.params.arena + Pass::Plan::kLogitsOffset),
                     [](float sum) {
                       return softCap(M::kOutputMultiplier * sum, M::kFinalCap);
                     });
  }
};

} // namespace grok::device
