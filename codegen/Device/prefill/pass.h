// What the prefill kernels share: the pass that they compute a part of, where
// its operands lie, and sums over a block.
#pragma once

#include "codegen/Device/attention.h"
#include "codegen/Device/ptx/matrix.h"
#include "runtime/bundle/PrefillMemory.h"

namespace grok::device {

/// The prefill kernels' part of the arena, in the order of prefillRegions.
enum class PrefillRegion : uint32_t {
  kTokens,
  kResidual,
  kNorm,
  kInput,
  kQuery,
  kAttn,
  kOutput,
  kScores,
  kExperts,
  kWeights,
  kPlaces,
  kGroups,
  kSorted,
  kAct,
  kDenseAct,
  kDenseOutput,
  kHead
};

inline constexpr uint32_t kNoPlace = ~0u; // of a token of a dropped expert

/// {count, counters} or a tile of tokens of one expert.
struct GroupTile {
  uint32_t expert; // of the first entry: how many follow
  uint32_t begin;  // place of the first token
  uint32_t tokens;
  uint32_t reserved;
};

/// Tokens in whole groups of 8: what products load, and where an expert's end.
GROK_DEVICE constexpr uint32_t wholeGroups(uint32_t tokens) {
  return (tokens + kPanelTokens - 1) / kPanelTokens * kPanelTokens;
}

/// Numbers of the next tiles of gate_up and of down, in what the first entry
/// has no use for.
inline constexpr uint32_t kGateUpCounter = 0, kDownCounter = 1;
template <class Pass> GROK_DEVICE uint32_t *tileCounters(Pass &pass) {
  return pass.template region<uint32_t>(PrefillRegion::kGroups) + 1;
}

/// A kernel's blocks may start before the launch whose results they read has
/// ended.
template <class P> GROK_DEVICE void awaitEarlierLaunch() {
  if constexpr (P::kSm >= 90) {
    ptx::letNextLaunchStart();
    ptx::awaitLaunchBefore();
  }
}

/// The sizes that the compiler planned with, from the constants of the
/// translation unit.
template <class M, class P> constexpr PrefillShape prefillShape() {
  DecodeShape d{};
  d.hidden = M::kHidden;
  d.heads = M::kHeads;
  d.kvHeads = M::kKvHeads;
  d.headDim = M::kHeadDim;
  d.experts = M::kExperts;
  d.expertsPerToken = M::kExpertsPerToken;
  d.expertWidth = M::kExpertWidth;
  d.denseWidth = M::kDenseWidth;
  d.vocab = M::kVocab;
  d.layers = M::kLayers;
  d.learnedRouting = !M::kHashRouting;
  d.maxBatch = P::kMaxBatch;
  d.maxSeq = P::kMaxSeq;
  d.planes = P::kPlanes;
  return {d, {P::kTokens, P::kTileTokens, P::kStages, P::kSharedBytes}};
}

/// Neighbouring values in one access, aligned to their size.
template <bool BF16, uint32_t kCount>
GROK_DEVICE void store16(uint8_t *to, const float (&v)[kCount]) {
  static_assert(kCount == 2 || kCount == 4 || kCount == 8);
  ptx::Words<kCount / 2> words;
#pragma unroll
  for (uint32_t i = 0; i < kCount / 2; ++i)
    words.v[i] = to16Pair<BF16>(v[2 * i], v[2 * i + 1]);
  *(ptx::Words<kCount / 2> *)to = words;
}

/// 16-bit values of an operand in the arena; `stride` tokens a panel.
template <class M, class P, uint32_t kStride, uint32_t kWidth>
struct PanelOperand {
  static constexpr uint64_t kPlaneBytes = operandBytes(kStride, kWidth, 1);
  /// Elements that products read: a row's fragments are whole.
  static constexpr uint32_t kPadded = (kWidth + kTileK - 1) / kTileK * kTileK;
  uint8_t *data;

  /// Elements k .. k + kCount - 1, which lie in one group of 8.
  template <uint32_t kCount>
  GROK_DEVICE void store(uint32_t token, uint32_t k,
                         const float (&v)[kCount]) const {
    uint8_t *to = data + operandOffset(kStride, token, k);
    storeRounded(to, v);
    if constexpr (P::kPlanes == 2) {
      float rest[kCount];
#pragma unroll
      for (uint32_t i = 0; i < kCount; ++i)
        rest[i] = rest16<M::kBF16>(v[i]);
      storeRounded(to + kPlaneBytes, rest);
    }
  }

private:
  template <uint32_t kCount>
  GROK_DEVICE static void storeRounded(uint8_t *to, const float (&v)[kCount]) {
    if constexpr (kCount == 1)
      *(uint16_t *)to = to16<M::kBF16>(v[0]);
    else
      store16<M::kBF16>(to, v);
  }
};

/// One block of a prefill kernel.
template <class M, class P> struct Pass {
  using Model = M;
  using Plan = P;
  static constexpr PrefillShape kShape = prefillShape<M, P>();
  static constexpr uint32_t kAttnWidth = M::kHeads * M::kHeadDim;
  static constexpr uint32_t kStride = kShape.stride();
  static constexpr uint32_t kSortedStride = kShape.sortedStride();
  using Input = PanelOperand<M, P, kStride, M::kHidden>;
  using Attn = PanelOperand<M, P, kStride, kAttnWidth>;
  using Sorted = PanelOperand<M, P, kSortedStride, M::kHidden>;
  using Act = PanelOperand<M, P, kSortedStride, M::kExpertWidth>;
  using DenseAct = PanelOperand<M, P, kStride, M::kDenseWidth>;
  using Head = PanelOperand<M, P, kPanelTokens, M::kHidden>;

  const abi::PrefillParams &params;
  uint32_t tid = ptx::tid();

  GROK_DEVICE uint32_t warp() const { return tid / 32; }
  GROK_DEVICE uint32_t lane() const { return tid % 32; }
  template <class T> GROK_DEVICE T *region(PrefillRegion r) const {
    return (T *)(params.arena + P::kPrefill[uint32_t(r)]);
  }
  GROK_DEVICE const abi::PrefillToken &token(uint32_t t) const {
    return region<const abi::PrefillToken>(PrefillRegion::kTokens)[t];
  }
  GROK_DEVICE const float *vectors(uint32_t layer) const {
    return (const float *)(params.weights + P::kVectorsOffset +
                           layer * P::kVectorsLayerBytes);
  }
  GROK_DEVICE uint8_t *shared() const { return (uint8_t *)grokShared; }
  /// A word a warp, for the i-th sum over a block of kTokenThreads.
  GROK_DEVICE float *sums(uint32_t i) const {
    return (float *)shared() + i * (kTokenThreads / 32);
  }
};

inline constexpr float kLog2E = 1.44269504f;

/// 16-bit parts of a query that the scores' product takes: bf16 alone would
/// cost more of a large score than the keys' rounding does.
template <class M, class P>
inline constexpr uint32_t kQueryParts = M::kBF16 && P::kPlanes == 1 ? 2 : 1;
/// Bytes from a query's first part to its second.
template <class Pass> GROK_DEVICE constexpr uint64_t queryPartBytes() {
  return uint64_t(Pass::Plan::kTokens) * Pass::kAttnWidth * 2;
}

/// Sum of a value over a block of kTokenThreads, in every thread; the order of
/// the sum depends on nothing. `parts` is a word a warp that no one reads any
/// more.
template <class Pass>
GROK_DEVICE float blockSum(Pass &pass, float v, float *parts) {
#pragma unroll
  for (uint32_t m = 16; m; m >>= 1)
    v += ptx::shuffleXor(v, m);
  if (pass.lane() == 0)
    parts[pass.warp()] = v;
  ptx::barSync(0, kTokenThreads);
  float sum = 0;
#pragma unroll
  for (uint32_t w = 0; w < kTokenThreads / 32; ++w)
    sum += parts[w];
  return sum;
}

} // namespace grok::device
