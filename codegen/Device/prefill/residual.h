// The residual stream of a pass, [token][D] float32, and the norms around it. A
// block a token; a thread has the same elements throughout.
#pragma once

#include "codegen/Device/prefill/pass.h"

namespace grok::device {

/// Elements of a row that a thread has, kWidth at a time.
template <class Pass> struct OwnedElements {
  static constexpr uint32_t kHidden = Pass::Model::kHidden;
  static constexpr uint32_t kWidth = kHidden % 4 == 0 ? 4 : 1;
  static constexpr uint32_t kPerRound = kTokenThreads * kWidth;
  static constexpr uint32_t kRounds = (kHidden + kPerRound - 1) / kPerRound;
  using Elements = float[kRounds][kWidth];

  /// Calls use(round, first element) for what the thread has.
  template <class Use> GROK_DEVICE static void forEach(Pass &pass, Use use) {
#pragma unroll
    for (uint32_t r = 0; r < kRounds; ++r)
      if (uint32_t i = r * kPerRound + pass.tid * kWidth; i < kHidden)
        use(r, i);
  }

  GROK_DEVICE static void load(const float *p, float (&v)[kWidth]) {
    ptx::loadFloats(p, v);
  }
  GROK_DEVICE static void store(float *p, const float (&v)[kWidth]) {
    ptx::storeFloats(p, v);
  }
  GROK_DEVICE static void loadAll(Pass &pass, const float *p, Elements &v) {
    forEach(pass, [&](uint32_t r, uint32_t i) { load(p + i, v[r]); });
  }
};

/// Stores one token of an operand: value(round, first element, v) gives the
/// thread's elements; what products read beyond them is zero.
template <class Pass, class Operand, class Value>
GROK_DEVICE void storeRow(Pass &pass, Operand operand, uint32_t token,
                          Value value) {
  using Owned = OwnedElements<Pass>;
  Owned::forEach(pass, [&](uint32_t r, uint32_t i) {
    float v[Owned::kWidth];
    value(r, i, v);
    operand.store(token, i, v);
  });
  constexpr uint32_t kPadding = Operand::kPadded - Owned::kHidden;
  if (kPadding > 0 && pass.tid < kPadding)
    operand.store(token, Owned::kHidden + pass.tid, {0.0f});
}

/// Where the normalised row goes that the next sub-block reads.
enum class NextInput : uint32_t {
  kLayer,   // the next layer's attention
  kExperts, // this layer's experts and dense MLP
  kNothing  // the head takes the rows that it needs by itself
};

/// What storeNormed needs beside h, asked for before anything is waited for.
template <NextInput kNext, class Pass> struct NormInputs {
  using Owned = OwnedElements<Pass>;
  static constexpr bool kSorts =
      kNext == NextInput::kExperts && Pass::Model::kHashRouting;
  typename Owned::Elements gain;
  uint32_t place; // among its expert's tokens

  GROK_DEVICE static NormInputs load(Pass &pass, uint32_t t,
                                     const float *gain) {
    NormInputs inputs;
    Owned::loadAll(pass, gain, inputs.gain);
    if constexpr (kSorts)
      inputs.place = pass.template region<uint32_t>(PrefillRegion::kPlaces)[t];
    return inputs;
  }
};

/// h has been stored; stores RMSNorm(h; gain) as the operand of what comes
/// next. With a learned router the experts' tokens are known later: the norm is
/// kept for them.
template <NextInput kNext, class Pass>
GROK_DEVICE void
storeNormed(Pass &pass, uint32_t t, const NormInputs<kNext, Pass> &inputs,
            float squares, const typename OwnedElements<Pass>::Elements &h,
            float *parts) {
  using M = typename Pass::Model;
  using Owned = OwnedElements<Pass>;
  const float factor = normFactor<Pass>(blockSum(pass, squares, parts));
  auto value = [&](uint32_t r, uint32_t, float (&v)[Owned::kWidth]) {
#pragma unroll
    for (uint32_t e = 0; e < Owned::kWidth; ++e)
      v[e] = h[r][e] * factor * inputs.gain[r][e];
  };
  if (pass.tid == 0)
    pass.template region<float>(PrefillRegion::kNorm)[t] = factor;
  if constexpr (kNext == NextInput::kLayer || M::kDenseWidth > 0)
    storeRow(pass,
             typename Pass::Input{
                 pass.template region<uint8_t>(PrefillRegion::kInput)},
             t, value);
  if constexpr (NormInputs<kNext, Pass>::kSorts)
    if (inputs.place != kNoPlace)
      storeRow(pass,
               typename Pass::Sorted{
                   pass.template region<uint8_t>(PrefillRegion::kSorted)},
               inputs.place, value);
}

/// h = multiplier * Emb[token], and the first layer's input.
template <class M, class P>
GROK_DEVICE void embedTokens(const abi::PrefillParams &params) {
  using Pass = device::Pass<M, P>;
  using Owned = OwnedElements<Pass>;
  Pass pass{params};
  const uint32_t t = ptx::ctaid(), id = uint32_t(pass.token(t).id);
  const abi::TilePlace place = params.places[P::kPlaceHead + id / kTileRows];
  constexpr uint32_t kSteps = (M::kHidden + kTileK - 1) / kTileK;
  auto element = [&](uint32_t i) {
    if constexpr (M::kTiedHead) {
      uint32_t step = i / kTileK, inBlock = step % P::kBlockSteps,
               before = step - inBlock, left = kSteps - before,
               here = left < P::kBlockSteps ? left : P::kBlockSteps;
      const uint16_t *fragment =
          (const uint16_t *)(params.weights + place.offset +
                             (uint64_t(place.groupTiles) * before +
                              place.inGroup * here + inBlock) *
                                 kFragmentBytes);
      return fragment[fragmentElement(id % kTileRows, i % kTileK)];
    } else {
      return (
          (const uint16_t
               *)(params.weights +
                  place.embedding))[uint64_t(id % kTileRows) * M::kHidden + i];
    }
  };
  const auto inputs =
      NormInputs<NextInput::kLayer, Pass>::load(pass, t, pass.vectors(0));
  typename Owned::Elements h;
  float squares = 0;
  float *out = pass.template region<float>(PrefillRegion::kResidual) +
               uint64_t(t) * M::kHidden;
  Owned::forEach(pass, [&](uint32_t r, uint32_t i) {
#pragma unroll
    for (uint32_t e = 0; e < Owned::kWidth; ++e) {
      h[r][e] = M::kEmbeddingMultiplier * from16<M::kBF16>(element(i + e));
      squares = ptx::fma(h[r][e], h[r][e], squares);
    }
    Owned::store(out + i, h[r]);
  });
  storeNormed(pass, t, inputs, squares, h, pass.sums(0));
}

/// h += RMSNorm(y; gain), then the next input. kExperts: y is attn_out's
/// output; else it is the sum of the token's experts, ascending, and the dense
/// MLP.
template <NextInput kNext, class M, class P>
GROK_DEVICE void addOutput(const abi::PrefillParams &params) {
  using Pass = device::Pass<M, P>;
  using Owned = OwnedElements<Pass>;
  constexpr bool kMoe = kNext != NextInput::kExperts,
                 kLast = kNext == NextInput::kNothing;
  Pass pass{params};
  // The last tokens first: their outputs were stored last, and L2 may have
  // them; and the next product begins with the first tokens.
  const uint32_t t = ptx::nctaid() - 1 - ptx::ctaid();
  if constexpr (!kMoe)
    if (t == 0 && pass.tid < 2)
      tileCounters(pass)[pass.tid] = 0;
  const float *outputs =
      pass.template region<const float>(PrefillRegion::kOutput);
  uint32_t place[M::kExpertsPerToken];
  float weight[M::kExpertsPerToken];
  if constexpr (kMoe)
#pragma unroll
    for (uint32_t j = 0; j < M::kExpertsPerToken; ++j) {
      uint32_t at = t * M::kExpertsPerToken + j;
      place[j] = pass.template region<uint32_t>(PrefillRegion::kPlaces)[at];
      weight[j] = pass.template region<float>(PrefillRegion::kWeights)[at];
    }
  typename Owned::Elements y, h, gain;
  float *residual = pass.template region<float>(PrefillRegion::kResidual) +
                    uint64_t(t) * M::kHidden;
  Owned::loadAll(pass, residual, h);
  Owned::loadAll(pass, pass.vectors(params.layer) + (kMoe ? 3 : 1) * M::kHidden,
                 gain);
  const auto inputs = NormInputs<kNext, Pass>::load(
      pass, t,
      pass.vectors(params.layer + (kMoe && !kLast ? 1 : 0)) +
          (kMoe ? 0 : 2) * M::kHidden);
  float squares = 0;
  Owned::forEach(pass, [&](uint32_t r, uint32_t i) {
    if constexpr (!kMoe) {
      Owned::load(outputs + uint64_t(t) * M::kHidden + i, y[r]);
    } else {
#pragma unroll
      for (uint32_t e = 0; e < Owned::kWidth; ++e)
        y[r][e] = 0;
#pragma unroll
      for (uint32_t j = 0; j < M::kExpertsPerToken; ++j) {
        if (place[j] == kNoPlace)
          continue;
        float v[Owned::kWidth];
        Owned::load(outputs + uint64_t(place[j]) * M::kHidden + i, v);
#pragma unroll
        for (uint32_t e = 0; e < Owned::kWidth; ++e)
          y[r][e] = ptx::fma(weight[j], v[e], y[r][e]);
      }
      if constexpr (M::kDenseWidth > 0) {
        float v[Owned::kWidth];
        Owned::load(
            pass.template region<const float>(PrefillRegion::kDenseOutput) +
                uint64_t(t) * M::kHidden + i,
            v);
#pragma unroll
        for (uint32_t e = 0; e < Owned::kWidth; ++e)
          y[r][e] = (v[e] + y[r][e]) * 0.707106769f;
      }
    }
#pragma unroll
    for (uint32_t e = 0; e < Owned::kWidth; ++e)
      squares = ptx::fma(y[r][e], y[r][e], squares);
  });
  const float factor = normFactor<Pass>(blockSum(pass, squares, pass.sums(0)));
  squares = 0;
  Owned::forEach(pass, [&](uint32_t r, uint32_t i) {
#pragma unroll
    for (uint32_t e = 0; e < Owned::kWidth; ++e) {
      h[r][e] = ptx::fma(factor, y[r][e] * gain[r][e], h[r][e]);
      squares = ptx::fma(h[r][e], h[r][e], squares);
    }
    Owned::store(residual + i, h[r]);
  });
  if constexpr (!kLast)
    storeNormed(pass, t, inputs, squares, h, pass.sums(1));
}

/// RMSNorm(h; gain) of a token, from the norm that was kept, to every place
/// that a learned router gave it.
template <class M, class P>
GROK_DEVICE void sortTokens(const abi::PrefillParams &params) {
  using Pass = device::Pass<M, P>;
  using Owned = OwnedElements<Pass>;
  Pass pass{params};
  const uint32_t t = ptx::ctaid();
  const float factor = pass.template region<float>(PrefillRegion::kNorm)[t];
  const float *h = pass.template region<const float>(PrefillRegion::kResidual) +
                   uint64_t(t) * M::kHidden,
              *gain = pass.vectors(params.layer) + 2 * M::kHidden;
#pragma unroll
  for (uint32_t j = 0; j < M::kExpertsPerToken; ++j) {
    uint32_t place = pass.template region<uint32_t>(
        PrefillRegion::kPlaces)[t * M::kExpertsPerToken + j];
    if (place == kNoPlace)
      continue;
    storeRow(pass,
             typename Pass::Sorted{
                 pass.template region<uint8_t>(PrefillRegion::kSorted)},
             place, [&](uint32_t, uint32_t i, float (&v)[Owned::kWidth]) {
               float x[Owned::kWidth];
               Owned::load(h + i, x);
               Owned::load(gain + i, v);
#pragma unroll
               for (uint32_t e = 0; e < Owned::kWidth; ++e)
                 v[e] = x[e] * factor * v[e];
             });
  }
}

/// The final norm of a token whose logits are wanted.
template <class M, class P>
GROK_DEVICE void gatherHead(const abi::PrefillParams &params) {
  using Pass = device::Pass<M, P>;
  using Owned = OwnedElements<Pass>;
  Pass pass{params};
  const uint32_t t = params.headToken[ptx::ctaid()];
  const float *residual =
      pass.template region<const float>(PrefillRegion::kResidual) +
      uint64_t(t) * M::kHidden;
  float h[Owned::kRounds][Owned::kWidth], squares = 0;
  Owned::forEach(pass, [&](uint32_t r, uint32_t i) {
    Owned::load(residual + i, h[r]);
#pragma unroll
    for (uint32_t e = 0; e < Owned::kWidth; ++e)
      squares = ptx::fma(h[r][e], h[r][e], squares);
  });
  const float factor = normFactor<Pass>(blockSum(pass, squares, pass.sums(0)));
  const float *gain = pass.vectors(M::kLayers);
  storeRow(
      pass,
      typename Pass::Head{pass.template region<uint8_t>(PrefillRegion::kHead)},
      ptx::ctaid(), [&](uint32_t r, uint32_t i, float (&v)[Owned::kWidth]) {
        Owned::load(gain + i, v);
#pragma unroll
        for (uint32_t e = 0; e < Owned::kWidth; ++e)
          v[e] = h[r][e] * factor * v[e];
      });
}

} // namespace grok::device
