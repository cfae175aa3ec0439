// Causal grouped-query attention of a pass over the KV cache, which holds the
// pass's own keys and values too, in the flash form: blocks of 64 positions
// from the row's first on, in order, whatever the pass. A query's blocks end
// with its own position's; what later ones add to it is zero.
#pragma once

#include "codegen/Device/prefill/pass.h"
#include "codegen/Device/ptx/wgmma.h"

namespace grok::device {

/// A score in two parts. The level orders a row's scores; a difference of
/// levels times the factor is one of scores, in units of log 2. What all scores
/// of a row have in common falls out of their weights.
template <class M> struct Score {
  /// cap * tanh(x) = cap - 2 cap / (1 + e^(2 x)), which saturates on both
  /// sides: the level has an absolute error of about 1e-7.
  GROK_DEVICE static float level(float dot) {
    if constexpr (M::kAttentionCap > 0)
      return -ptx::reciprocalApprox(
          1 + ptx::exp2Approx(
                  dot * (2 * kLog2E * M::kAttentionScale / M::kAttentionCap)));
    return dot;
  }
  GROK_DEVICE static float factor(float temperature) {
    constexpr float kFactor =
        kLog2E *
        (M::kAttentionCap > 0 ? 2 * M::kAttentionCap : M::kAttentionScale);
    return kFactor * temperature;
  }
};

/// One block: kAttentionRows query rows, row i being query head i % group of
/// token first + i / group, of one kv head and one row of the batch.
template <class M, class P> struct FlashAttention {
  using Pass = device::Pass<M, P>;
  static constexpr uint32_t kHeadDim = M::kHeadDim,
                            kGroup = M::kHeads / M::kKvHeads,
                            kSteps = (kHeadDim + 15) / 16, // of 16 dimensions
      kRow = attentionRowBytes(kHeadDim);
  /// On the tensor cores the cache's values are transposed, and so are their
  /// rows here: of a dimension, 64 positions.
  static constexpr bool kTransposed = kTensorAttention<Pass>;
  static constexpr uint32_t kValueRow =
      kTransposed ? attentionRowBytes(kKvPositions) : kRow;
  /// The block's four warps multiply as a warpgroup. Keys and values are then
  /// operands of products as they lie in the arena: panels of 64 dimensions of
  /// the positions, and of 64 positions of the dimensions.
  static constexpr bool kWide =
      P::kSm >= 90 && kTransposed && kHeadDim % kPanelK == 0;
  static constexpr uint32_t kTile =
      kWide ? kKvPositions * kHeadDim * 2
            : attentionTileBytes(P::kPlanes, kHeadDim);
  static_assert(!kWide || kStageAlign + 4 * kTile <=
                              attentionSharedBytes(P::kPlanes, kHeadDim));
  /// A head's row can be copied 16 bytes at a time.
  static constexpr bool kCopies = kHeadDim % 8 == 0;

  Pass &pass;
  uint32_t row, kvHead; // of the batch
  uint32_t end;         // positions that are known
  uint32_t blocks;      // of positions that the block's tokens see

  GROK_DEVICE uint32_t place(uint32_t stage, uint32_t value) const {
    const uint32_t shared = ptx::sharedAddress(pass.shared());
    return (kWide ? (shared + kStageAlign - 1) / kStageAlign * kStageAlign
                  : shared) +
           (stage * 2 + value) * kTile;
  }
  /// Byte, within a block's keys or values, of position p and dimension d.
  GROK_DEVICE static uint32_t offset(uint32_t value, uint32_t p, uint32_t d) {
    return kTransposed && value ? d * kValueRow + p * 2 : p * kRow + d * 2;
  }

  /// Starts loading block b; positions that no one has written are zero.
  GROK_DEVICE void load(uint32_t b) {
#pragma unroll
    for (uint32_t value = 0; value < 2; ++value) {
      const uint8_t *from =
          kvBlockAddress(pass, pass.params.layer, row, b, value, kvHead);
      const uint32_t to = place(b % 2, value);
      if constexpr (kWide) {
        if (value)
          loadRows<true>(b, from, to);
        else
          loadRows<false>(b, from, to);
      } else if constexpr (kCopies) {
        // 16 bytes: 8 dimensions of a position, or the other way round.
        constexpr uint32_t kCount = kKvPositions * kHeadDim / 8;
        const bool transposed = kTransposed && value;
        const uint32_t words = (transposed ? kKvPositions : kHeadDim) / 8;
#pragma unroll
        for (uint32_t i = 0; i < kCount; i += kAttentionThreads) {
          const uint32_t r = (i + pass.tid) / words,
                         c = (i + pass.tid) % words * 8, p = transposed ? c : r,
                         d = transposed ? r : c, first = b * kKvPositions + p,
                         known = first < end ? end - first : 0;
          if (kCount % kAttentionThreads == 0 || i + pass.tid < kCount)
            ptx::copyAsync16(to + offset(value, p, d),
                             from + (value ? KvLayout<Pass>::value(p, d)
                                           : KvLayout<Pass>::key(p, d)),
                             !transposed ? (known ? 16 : 0)
                             : known < 8 ? known * 2
                                         : 16);
        }
      } else {
        uint8_t *shared = pass.shared() + (b % 2 * 2 + value) * kTile;
        for (uint32_t i = pass.tid; i < kKvPositions * kHeadDim;
             i += kAttentionThreads) {
          uint32_t p = i / kHeadDim, d = i % kHeadDim;
          *(uint16_t *)(shared + p * kRow + d * 2) =
              b * kKvPositions + p < end ? ((const uint16_t *)from)[i] : 0;
        }
      }
    }
    ptx::copyAsyncCommit();
  }

  /// Wide: a thread's copies of keys, 8 dimensions of a position, or of values,
  /// 8 positions of a dimension. They are so many rows apart that their
  /// addresses differ by the same in every thread.
  template <bool kValues>
  GROK_DEVICE void loadRows(uint32_t b, const uint8_t *from, uint32_t to) {
    using Layout = KvLayout<Pass>;
    constexpr uint32_t kWords = (kValues ? kKvPositions : kHeadDim) / 8,
                       kRows = kValues ? kHeadDim : kKvPositions,
                       kApart = kAttentionThreads / kWords;
    static_assert(kApart % (kValues ? 16 : 8) == 0);
    auto source = [](uint32_t r, uint32_t c) {
      return kValues ? Layout::value(c, r) : Layout::key(r, c);
    };
    auto target = [](uint32_t r, uint32_t c) {
      return uint32_t(operandOffset(kRows, r, c));
    };
    const uint32_t r = pass.tid / kWords, c = pass.tid % kWords * 8,
                   first = b * kKvPositions + (kValues ? c : r),
                   left = first < end ? end - first : 0;
    from += source(r, c);
    to += target(r, c);
#pragma unroll
    for (uint32_t i = 0; i < kRows; i += kApart) {
      const uint32_t bytes =
          kValues ? (left < 8 ? left * 2 : 16) : (i < left ? 16 : 0);
      ptx::copyAsync16(to + target(i, 0), from + source(i, 0), bytes);
    }
  }

  /// Dimensions past the head, up to a whole step of 16, are zero.
  GROK_DEVICE void clearPadding() {
    if constexpr (kHeadDim % 16 != 0)
      for (uint32_t i = pass.tid; i < 4 * kKvPositions * 16;
           i += kAttentionThreads) {
        uint32_t d = kHeadDim / 16 * 16 + i % 16;
        if (d >= kHeadDim)
          *(uint16_t *)(pass.shared() + i / 16 * kRow + d * 2) = 0;
      }
  }

  /// A lane's two query rows; those past the last token repeat it.
  struct Rows {
    uint32_t first, tokens; // of the block
    uint32_t position[2];
    float temperature[2];
  };
  struct QueryRow {
    uint32_t token, head;
    bool there;
  };
  /// Computed from the start each time, not kept.
  GROK_DEVICE QueryRow queryRow(const Rows &rows, uint32_t h) const {
    const uint32_t tid = ptx::opaque(pass.tid),
                   r = tid / 32 * 16 + tid % 32 / 4 + 8 * h, t = r / kGroup;
    const bool there = t < rows.tokens;
    return {rows.first + (there ? t : rows.tokens - 1),
            kvHead * kGroup + r % kGroup, there};
  }
  /// What a lane has of its rows: outputs, their weights' sum and the largest
  /// score so far.
  struct State {
    float out[2 * kSteps * 4], sum[2], top[2]; // the level of that score
  };
  static constexpr uint32_t kParts = kQueryParts<M, P>;
  using Query = ptx::U4[kParts][kSteps];

  GROK_DEVICE void loadQuery(const Rows &rows, Query &query) {
    const QueryRow row[2] = {queryRow(rows, 0), queryRow(rows, 1)};
#pragma unroll
    for (uint32_t part = 0; part < kParts; ++part)
#pragma unroll
      for (uint32_t s = 0; s < kSteps; ++s) {
        uint32_t word[4];
#pragma unroll
        for (uint32_t i = 0; i < 4; ++i) {
          const uint32_t d = s * 16 + i / 2 * 8 + pass.lane() % 4 * 2;
          const uint8_t *q =
              pass.template region<const uint8_t>(PrefillRegion::kQuery) +
              part * queryPartBytes<Pass>() +
              (uint64_t(row[i % 2].token) * M::kHeads + row[i % 2].head) *
                  kHeadDim * 2;
          word[i] = d < kHeadDim ? *(const uint32_t *)(q + d * 2) : 0;
        }
        query[part][s] = {word[0], word[1], word[2], word[3]};
      }
  }

  using Scores = float[8 * 4];    // [8 positions][4], and of the outputs too
  using Weights = uint32_t[8][2]; // pairs of 16-bit values

  /// d[4 at ..] += a b.
  template <uint32_t kSize>
  GROK_DEVICE static void multiply(float (&d)[kSize], uint32_t at,
                                   const ptx::U4 &a, uint32_t b0, uint32_t b1) {
    float c[4] = {d[4 * at], d[4 * at + 1], d[4 * at + 2], d[4 * at + 3]};
    ptx::mma<M::kBF16>(c, a, b0, b1);
#pragma unroll
    for (uint32_t i = 0; i < 4; ++i)
      d[4 * at + i] = c[i];
  }
  template <class T, uint32_t kSize>
  GROK_DEVICE static void settle(T (&d)[kSize]) {
#pragma unroll
    for (T &v : d)
      ptx::settled(v);
  }
  template <uint32_t kSize> GROK_DEVICE static void finish(float (&d)[kSize]) {
    ptx::wgmmaCommit();
    ptx::wgmmaWait<0>();
    settle(d);
  }

  /// Dot products of the query rows and the block's keys.
  GROK_DEVICE void multiplyKeys(uint32_t b, Query &query, Scores &score) {
    if constexpr (kWide) {
      settle(score);
      ptx::wgmmaFence();
#pragma unroll
      for (uint32_t s = 0; s < kSteps; ++s)
#pragma unroll
        for (uint32_t part = 0; part < kParts; ++part)
          ptx::wgmma<M::kBF16, kKvPositions>(
              score, query[part][s],
              ptx::wgmmaOperand(place(b % 2, 0)) +
                  (operandOffset(kKvPositions, 0, s * 16) >> 4));
      finish(score);
      // ptxas forgets that the next block needs the queries, too, unless they
      // are changed here: by nothing.
      const uint32_t zero = pass.params.tokens >> 31;
#pragma unroll
      for (auto &part : query)
#pragma unroll
        for (ptx::U4 &q : part)
          q = ptx::copied(q, zero);
    } else {
      // Two groups of 8 positions, the lower and upper 8 dimensions of a step.
      const uint32_t lane = pass.lane(),
                     key = place(b % 2, 0) + (lane / 16 * 8 + lane % 8) * kRow +
                           lane / 8 % 2 * 16;
#pragma unroll
      for (uint32_t s = 0; s < kSteps; ++s)
#pragma unroll
        for (uint32_t j = 0; j < 8; j += 2) {
          ptx::U4 k = ptx::loadMatrices(key + j * 8 * kRow + s * 32);
#pragma unroll
          for (uint32_t part = 0; part < kParts; ++part) {
            multiply(score, j, query[part][s], k.x, k.y);
            multiply(score, j + 1, query[part][s], k.z, k.w);
          }
        }
    }
  }

  /// The outputs' share of the block's values.
  GROK_DEVICE void multiplyValues(uint32_t b, Weights &weights, State &state) {
    auto operand = [&](uint32_t s) {
      return ptx::U4{weights[2 * s][0], weights[2 * s][1],
                     weights[2 * s + 1][0], weights[2 * s + 1][1]};
    };
    if constexpr (kWide) {
      settle(state.out);
#pragma unroll
      for (auto &pair : weights)
        settle(pair);
      ptx::wgmmaFence();
#pragma unroll
      for (uint32_t s = 0; s < 4; ++s)
        ptx::wgmma<M::kBF16, kHeadDim>(
            state.out, operand(s),
            ptx::wgmmaOperand(place(b % 2, 1)) +
                (operandOffset(kHeadDim, 0, s * 16) >> 4));
      finish(state.out);
    } else {
      // Positions 0 to 7 and 8 to 15 of a step, two groups of 8 dimensions.
      const uint32_t lane = pass.lane(),
                     value = place(b % 2, 1) +
                             (kTransposed
                                  ? (lane / 16 * 8 + lane % 8) * kValueRow +
                                        lane / 8 % 2 * 16
                                  : (lane / 8 % 2 * 8 + lane % 8) * kValueRow +
                                        lane / 16 * 16);
#pragma unroll
      for (uint32_t s = 0; s < 4; ++s)
#pragma unroll
        for (uint32_t n = 0; n < kSteps; ++n) {
          ptx::U4 v =
              kTransposed
                  ? ptx::loadMatrices(value + n * 16 * kValueRow + s * 32)
                  : ptx::loadMatricesTransposed(value + s * 16 * kValueRow +
                                                n * 32);
          multiply(state.out, 2 * n, operand(s), v.x, v.y);
          multiply(state.out, 2 * n + 1, operand(s), v.z, v.w);
        }
    }
  }

  /// Block b, which is in shared memory. `masked`: some row does not see all of
  /// it.
  GROK_DEVICE void attendBlock(uint32_t b, bool masked, const Rows &rows,
                               Query &query, State &state) {
    Scores score = {};
    multiplyKeys(b, query, score);
#pragma unroll
    for (float &v : score)
      v = Score<M>::level(v);
    if (masked)
#pragma unroll
      for (uint32_t i = 0; i < 32; ++i)
        if (b * kKvPositions + i / 4 * 8 + pass.lane() % 4 * 2 + i % 2 >
            rows.position[i % 4 / 2])
          score[i] = kNegativeInfinity;
    float best[2] = {state.top[0], state.top[1]};
#pragma unroll
    for (uint32_t i = 0; i < 32; ++i)
      best[i % 4 / 2] = __builtin_fmaxf(best[i % 4 / 2], score[i]);
    float factor[2], shift[2];
#pragma unroll
    for (uint32_t h = 0; h < 2; ++h) {
#pragma unroll
      for (uint32_t m = 1; m < 4; m *= 2)
        best[h] = __builtin_fmaxf(best[h], ptx::shuffleXor(best[h], m));
      factor[h] = Score<M>::factor(rows.temperature[h]);
      shift[h] = -(best[h] * factor[h]);
      // One, to the bit, if the block has no larger score.
      const float keep = ptx::exp2Approx((state.top[h] - best[h]) * factor[h]);
      state.top[h] = best[h];
      state.sum[h] *= keep;
#pragma unroll
      for (uint32_t n = 0; n < 2 * kSteps; ++n) {
        state.out[4 * n + 2 * h] *= keep;
        state.out[4 * n + 2 * h + 1] *= keep;
      }
    }
    Weights weights;
#pragma unroll
    for (uint32_t j = 0; j < 8; ++j)
#pragma unroll
      for (uint32_t h = 0; h < 2; ++h) {
        auto weight = [&](uint32_t i) {
          return ptx::exp2Approx(
              ptx::fma(score[4 * j + i], factor[h], shift[h]));
        };
        const float first = weight(2 * h), second = weight(2 * h + 1);
        state.sum[h] += first + second;
        weights[j][h] = roundWeights(first, second);
      }
    multiplyValues(b, weights, state);
  }

  /// Weights are at most 1, which needs no clamping.
  GROK_DEVICE static uint32_t roundWeights(float first, float second) {
    if constexpr (M::kBF16)
      return ptx::toBFloatPair(first, second);
    return ptx::toHalfPair(first, second);
  }

  GROK_DEVICE void run(uint32_t first, uint32_t tokens) {
    Rows rows;
    rows.first = first;
    rows.tokens = tokens;
#pragma unroll
    for (uint32_t h = 0; h < 2; ++h) {
      rows.position[h] = pass.token(queryRow(rows, h).token).position;
      rows.temperature[h] = attentionTemperature<M>(rows.position[h]);
    }
    // Blocks that every row of the tile sees as a whole.
    const uint32_t whole = (pass.token(first).position + 1) / kKvPositions;
    Query query;
    loadQuery(rows, query);
    State state{{}, {}, {kNegativeInfinity, kNegativeInfinity}};
    clearPadding();
    load(0);
#pragma unroll 1
    for (uint32_t b = 0; b < blocks; ++b) {
      ptx::copyAsyncWait<0>();
      // Nothing else is on its way: the fence would wait for it.
      if constexpr (kWide)
        ptx::fenceAsyncProxyShared();
      ptx::barSync(0, kAttentionThreads); // and the other stage has been read
      if (b + 1 < blocks)
        load(b + 1);
      attendBlock(b, b >= whole, rows, query, state);
    }
    ptx::barSync(0, kAttentionThreads);

    typename Pass::Attn operand{
        pass.template region<uint8_t>(PrefillRegion::kAttn)};
#pragma unroll
    for (uint32_t h = 0; h < 2; ++h) {
#pragma unroll
      for (uint32_t m = 1; m < 4; m *= 2)
        state.sum[h] += ptx::shuffleXor(state.sum[h], m);
      const float scale = 1.0f / state.sum[h];
      const QueryRow row = queryRow(rows, h);
#pragma unroll
      for (uint32_t n = 0; n < 2 * kSteps; ++n)
        if (uint32_t d = n * 8 + pass.lane() % 4 * 2; row.there && d < kHeadDim)
          operand.store(row.token, row.head * kHeadDim + d,
                        {state.out[4 * n + 2 * h] * scale,
                         state.out[4 * n + 2 * h + 1] * scale});
    }
  }
};

/// With split activations the cache is float32, and so is everything here: a
/// warp a query head of a token, one pass over the positions in order.
template <class M, class P>
GROK_DEVICE void exactAttention(Pass<M, P> &pass, uint32_t t, uint32_t head) {
  constexpr uint32_t kHeadDim = M::kHeadDim, kOwn = (kHeadDim + 31) / 32,
                     kGroup = M::kHeads / M::kKvHeads;
  const abi::PrefillToken &token = pass.token(t);
  const float *q = pass.template region<const float>(PrefillRegion::kQuery) +
                   (uint64_t(t) * M::kHeads + head) * kHeadDim;
  const float temperature = attentionTemperature<M>(token.position);
  float query[kOwn], out[kOwn] = {}, sum = 0, top = kNegativeInfinity;
#pragma unroll
  for (uint32_t i = 0; i < kOwn; ++i) {
    uint32_t d = i * 32 + pass.lane();
    query[i] = d < kHeadDim ? q[d] : 0.0f;
  }
#pragma unroll 1
  for (uint32_t p = 0; p <= token.position; ++p) {
    auto entry = [&](uint32_t value) {
      return (const float *)kvBlockAddress(pass, pass.params.layer, token.row,
                                           p / kKvPositions, value,
                                           head / kGroup) +
             p % kKvPositions * kHeadDim;
    };
    const float *key = entry(0), *values = entry(1);
    float dot = 0;
#pragma unroll
    for (uint32_t i = 0; i < kOwn; ++i)
      if (uint32_t d = i * 32 + pass.lane(); d < kHeadDim)
        dot = ptx::fma(query[i], key[d], dot);
#pragma unroll
    for (uint32_t m = 16; m; m >>= 1)
      dot += ptx::shuffleXor(dot, m);
    const float score =
        softCap(dot * M::kAttentionScale, M::kAttentionCap) * temperature;
    const float best = score > top ? score : top, keep = exp(top - best),
                weight = exp(score - best);
    top = best;
    sum = ptx::fma(sum, keep, weight);
#pragma unroll
    for (uint32_t i = 0; i < kOwn; ++i)
      if (uint32_t d = i * 32 + pass.lane(); d < kHeadDim)
        out[i] = ptx::fma(weight, values[d], out[i] * keep);
  }
  typename Pass<M, P>::Attn operand{
      pass.template region<uint8_t>(PrefillRegion::kAttn)};
#pragma unroll
  for (uint32_t i = 0; i < kOwn; ++i)
    if (uint32_t d = i * 32 + pass.lane(); d < kHeadDim)
      operand.store(t, head * kHeadDim + d, {out[i] / sum});
}

/// Blocks (tile of tokens, kv head): tiles never span rows of the batch, so
/// that the host says where each begins. The longest come first.
template <class M, class P>
GROK_DEVICE void attend(const abi::PrefillParams &params) {
  using Pass = device::Pass<M, P>;
  Pass pass{params};
  // What products read beyond a token's heads.
  constexpr uint32_t kPadding = Pass::Attn::kPadded - Pass::kAttnWidth;
  typename Pass::Attn operand{
      pass.template region<uint8_t>(PrefillRegion::kAttn)};
  if constexpr (kPadding > 0)
    for (uint32_t i = ptx::ctaid() * kAttentionThreads + pass.tid;
         i < params.tokens * kPadding; i += ptx::nctaid() * kAttentionThreads)
      operand.store(i / kPadding, Pass::kAttnWidth + i % kPadding, {0.0f});
  if constexpr (P::kPlanes == 2) {
    const uint32_t i = ptx::ctaid() * (kAttentionThreads / 32) + pass.warp();
    if (i < params.tokens * M::kHeads)
      exactAttention(pass, i / M::kHeads, i % M::kHeads);
  } else {
    constexpr uint32_t kTokens = kAttentionRows / (M::kHeads / M::kKvHeads);
    const uint32_t tiles = ptx::nctaid() / M::kKvHeads,
                   tile = tiles - 1 - ptx::ctaid() / M::kKvHeads,
                   first = tile * kTokens, left = params.tokens - first;
    uint32_t tokens = left < kTokens ? left : kTokens;
    for (uint32_t at = first; tokens > 0;) {
      // Tokens of one row of the batch.
      const abi::PrefillToken &begin = pass.token(at);
      uint32_t here = begin.end - begin.position;
      here = here < tokens ? here : tokens;
      FlashAttention<M, P> attention{
          pass, begin.row, ptx::ctaid() % M::kKvHeads, begin.end,
          (begin.position + here - 1) / kKvPositions + 1};
      attention.run(at, here);
      at += here;
      tokens -= here;
    }
  }
}

} // namespace grok::device
