// Which experts a pass's tokens use, and their order by expert. Once a pass
// with hash routing, once a layer with a learned router; the order depends on
// nothing but the choices.
#pragma once

#include "codegen/Device/prefill/pass.h"

namespace grok::device {

/// Hash routing: a thread a token.
template <class M, class P>
GROK_DEVICE void hashExperts(const abi::PrefillParams &params) {
  using Pass = device::Pass<M, P>;
  Pass pass{params};
  const uint32_t t = ptx::ctaid() * kTokenThreads + pass.tid;
  if (t >= params.tokens)
    return;
  const abi::PrefillToken &token = pass.token(t);
  uint32_t h = uint32_t(token.id) * M::kTokenMultiplier +
               token.position * M::kPositionMultiplier;
  if constexpr (M::kHashBits < 32)
    h &= (1u << M::kHashBits) - 1;
  const uint32_t index =
      ((h >> M::kIndexShift) + (token.position & M::kPositionOffsetMask)) &
      M::kIndexMask;
  pass.template region<uint32_t>(PrefillRegion::kExperts)[t] =
      h % M::kNumGroups * M::kExpertsPerGroup + index;
  pass.template region<float>(PrefillRegion::kWeights)[t] = 1;
}

/// A learned router's scores of kRouterTokens tokens, float32: thread (e, t)
/// has experts e, e + 16, ... of token t, each one chain of sums along D.
template <class M, class P>
GROK_DEVICE void scoreExperts(const abi::PrefillParams &params) {
  using Pass = device::Pass<M, P>;
  constexpr uint32_t kRow = kRouterK + 4; // floats of a staged row
  constexpr uint32_t kLanes = kTokenThreads / kRouterTokens;
  constexpr uint32_t kOwn = (M::kExperts + kLanes - 1) / kLanes;
  Pass pass{params};
  float *x = (float *)pass.shared(), *w = x + kRouterTokens * kRow;
  const uint32_t first = ptx::ctaid() * kRouterTokens;
  const float *residual =
                  pass.template region<const float>(PrefillRegion::kResidual),
              *norm = pass.template region<const float>(PrefillRegion::kNorm),
              *gain = pass.vectors(params.layer) + 2 * M::kHidden,
              *weights = pass.vectors(params.layer) + 4 * M::kHidden;
  const uint32_t mine = pass.tid % kRouterTokens, e0 = pass.tid / kRouterTokens;
  float dot[kOwn] = {};
#pragma unroll 1
  for (uint32_t k0 = 0; k0 < M::kHidden; k0 += kRouterK) {
    ptx::barSync(0, kTokenThreads);
    for (uint32_t i = pass.tid; i < kRouterTokens * kRouterK;
         i += kTokenThreads) {
      uint32_t t = first + i / kRouterK, k = k0 + i % kRouterK;
      x[i / kRouterK * kRow + i % kRouterK] =
          t < params.tokens && k < M::kHidden
              ? residual[uint64_t(t) * M::kHidden + k] * norm[t] * gain[k]
              : 0.0f;
    }
    for (uint32_t i = pass.tid; i < M::kExperts * kRouterK;
         i += kTokenThreads) {
      uint32_t e = i / kRouterK, k = k0 + i % kRouterK;
      w[e * kRow + i % kRouterK] =
          k < M::kHidden ? weights[e * M::kHidden + k] : 0.0f;
    }
    ptx::barSync(0, kTokenThreads);
#pragma unroll 4
    for (uint32_t k = 0; k < kRouterK; ++k)
#pragma unroll
      for (uint32_t j = 0; j < kOwn; ++j)
        if (uint32_t e = e0 + j * kLanes; e < M::kExperts)
          dot[j] = ptx::fma(w[e * kRow + k], x[mine * kRow + k], dot[j]);
  }
#pragma unroll
  for (uint32_t j = 0; j < kOwn; ++j)
    if (uint32_t e = e0 + j * kLanes;
        e < M::kExperts && first + mine < params.tokens)
      pass.template region<float>(
          PrefillRegion::kScores)[uint64_t(first + mine) * M::kExperts + e] =
          dot[j];
}

/// The k experts of a token with the largest softmax, ties to the lower index,
/// ascending, with their weights: a warp a token.
template <class M, class P>
GROK_DEVICE void chooseExperts(const abi::PrefillParams &params) {
  using Pass = device::Pass<M, P>;
  constexpr uint32_t kOfLane = (M::kExperts + 31) / 32,
                     kK = M::kExpertsPerToken;
  Pass pass{params};
  const uint32_t t = ptx::ctaid() * (kTokenThreads / 32) + pass.warp(),
                 lane = pass.lane();
  if (t >= params.tokens) // the whole warp
    return;
  const float *scores =
      pass.template region<const float>(PrefillRegion::kScores) +
      uint64_t(t) * M::kExperts;
  float p[kOfLane], top = kNegativeInfinity, sum = 0;
#pragma unroll
  for (uint32_t j = 0; j < kOfLane; ++j) {
    uint32_t e = j * 32 + lane;
    p[j] =
        e < M::kExperts ? softCap(scores[e], M::kRouterCap) : kNegativeInfinity;
    top = p[j] > top ? p[j] : top;
  }
#pragma unroll
  for (uint32_t m = 16; m; m >>= 1) {
    float other = ptx::shuffleXor(top, m);
    top = other > top ? other : top;
  }
#pragma unroll
  for (uint32_t j = 0; j < kOfLane; ++j) {
    p[j] = j * 32 + lane < M::kExperts ? exp(p[j] - top) : -1.0f;
    sum += p[j] > 0 ? p[j] : 0.0f;
  }
#pragma unroll
  for (uint32_t m = 16; m; m >>= 1)
    sum += ptx::shuffleXor(sum, m);
  uint32_t chosen[kK];
  float weight[kK];
#pragma unroll
  for (uint32_t i = 0; i < kK; ++i) {
    float best = -1;
    uint32_t bestExpert = M::kExperts;
#pragma unroll
    for (uint32_t j = 0; j < kOfLane; ++j)
      if (p[j] > best) {
        best = p[j];
        bestExpert = j * 32 + lane;
      }
#pragma unroll
    for (uint32_t m = 16; m; m >>= 1) {
      float other = ptx::shuffleXor(best, m);
      uint32_t otherExpert = ptx::shuffleXor(bestExpert, m);
      if (other > best || (other == best && otherExpert < bestExpert)) {
        best = other;
        bestExpert = otherExpert;
      }
    }
    chosen[i] = bestExpert;
    weight[i] = best / sum;
#pragma unroll
    for (uint32_t j = 0; j < kOfLane; ++j)
      p[j] = bestExpert == j * 32 + lane ? -1.0f : p[j];
  }
  if (lane != 0)
    return;
#pragma unroll
  for (uint32_t i = 0; i < kK; ++i) {
    uint32_t rank = 0;
#pragma unroll
    for (uint32_t j = 0; j < kK; ++j)
      rank += chosen[j] < chosen[i] ? 1 : 0;
    pass.template region<uint32_t>(PrefillRegion::kExperts)[t * kK + rank] =
        chosen[i];
    pass.template region<float>(PrefillRegion::kWeights)[t * kK + rank] =
        weight[i];
  }
}

/// The tokens of an expert in as few tiles as possible, of nearly the same
/// width.
template <class Pass> struct ExpertTokens {
  uint32_t tokens, tiles, width;

  GROK_DEVICE explicit ExpertTokens(uint32_t tokens)
      : tokens(tokens),
        tiles((tokens + Pass::Plan::kTileTokens - 1) / Pass::Plan::kTileTokens),
        width(tiles ? wholeGroups((tokens + tiles - 1) / tiles) : 0) {}
};

/// Gives every token a place among its expert's, in the order of the tokens,
/// and cuts each expert's tokens into tiles, the widest first: one block.
template <class M, class P>
GROK_DEVICE void groupTokens(const abi::PrefillParams &params) {
  using Pass = device::Pass<M, P>;
  constexpr uint32_t kExperts = M::kExperts, kGroupWarps = kGroupThreads / 32;
  Pass pass{params};
  uint32_t *counts = (uint32_t *)pass.shared(), // [warp][expert]
      *totals = counts + kGroupWarps * kExperts, *begins = totals + kExperts;
  const uint32_t *experts =
      pass.template region<const uint32_t>(PrefillRegion::kExperts);
  uint32_t *places = pass.template region<uint32_t>(PrefillRegion::kPlaces);
  GroupTile *tiles = pass.template region<GroupTile>(PrefillRegion::kGroups);
  const uint32_t count = params.tokens * M::kExpertsPerToken,
                 rounds = (count + kGroupThreads - 1) / kGroupThreads,
                 warp = pass.warp(), lane = pass.lane();
  uint32_t *own = counts + warp * kExperts;
  for (uint32_t i = pass.tid; i < kGroupWarps * kExperts; i += kGroupThreads)
    counts[i] = 0;
  ptx::barSync(0, kGroupThreads);

  // A warp takes `rounds` times 32 entries that follow one another. Entries of
  // dropped experts are counted as one more expert, which no one asks for.
  auto forEachRound = [&](auto use) {
    for (uint32_t r = 0; r < rounds; ++r) {
      uint32_t i = (warp * rounds + r) * 32 + lane,
               expert = i < count ? experts[i] : kExperts;
      bool kept = expert < kExperts && P::kPlaceGateUp[expert] != kNoPlace;
      uint32_t same = ptx::matchAny(~0u, kept ? expert : kExperts);
      use(i, kept, expert, same);
      ptx::warpSync();
    }
  };
  forEachRound([&](uint32_t, bool kept, uint32_t expert, uint32_t same) {
    if (kept && lane == uint32_t(__builtin_ctz(same)))
      own[expert] += __builtin_popcount(same);
  });
  ptx::barSync(0, kGroupThreads);
  for (uint32_t e = pass.tid; e < kExperts; e += kGroupThreads) {
    uint32_t sum = 0;
    for (uint32_t w = 0; w < kGroupWarps; ++w) {
      uint32_t here = counts[w * kExperts + e];
      counts[w * kExperts + e] = sum;
      sum += here;
    }
    totals[e] = sum;
  }
  ptx::barSync(0, kGroupThreads);
  for (uint32_t e = pass.tid; e < kExperts; e += kGroupThreads) {
    const ExpertTokens<Pass> own(totals[e]);
    uint32_t begin = 0, first = 1, used = 0;
    for (uint32_t f = 0; f < kExperts; ++f) {
      const ExpertTokens<Pass> other(totals[f]);
      begin += f < e ? wholeGroups(other.tokens) : 0;
      first += other.width > own.width || (other.width == own.width && f < e)
                   ? other.tiles
                   : 0;
      used += other.tiles;
    }
    begins[e] = begin;
    for (uint32_t i = 0, at = 0; i < own.tiles; ++i, at += own.width)
      tiles[first + i] = {
          e, begin + at,
          own.tokens - at < own.width ? own.tokens - at : own.width, 0};
    if (e == 0)
      tiles[0] = {used, 0, 0, 0};
  }
  ptx::barSync(0, kGroupThreads);
  forEachRound([&](uint32_t i, bool kept, uint32_t expert, uint32_t same) {
    uint32_t before = kept ? own[expert] : 0;
    ptx::warpSync();
    if (kept && lane == uint32_t(__builtin_ctz(same)))
      own[expert] += __builtin_popcount(same);
    if (i < count)
      places[i] = kept ? begins[expert] + before +
                             __builtin_popcount(same & ((1u << lane) - 1))
                       : kNoPlace;
  });
}

} // namespace grok::device
