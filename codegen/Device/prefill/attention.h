// Causal grouped-query attention of a pass over the KV cache, which holds the
// pass's own keys and values too, in the flash form: blocks of 64 positions
// from the row's first on, in order, whatever the pass. A query's blocks end
// with its own position's; what later ones add to it is zero.
#pragma once

#include "codegen/Device/prefill/pass.h"

namespace grok::device {

/// 2^x for x up to 0; 0 for -infinity.
GROK_DEVICE float weightOf(float x) { return ptx::exp2Approx(x); }

/// The score of a dot product in units of log 2: capped by cap * tanh, with an
/// absolute error of a few 1e-7 times the cap.
template <class M> GROK_DEVICE float scoreOf(float dot, float temperature) {
  float score;
  if constexpr (M::kAttentionCap > 0) {
    // tanh(x) = 1 - 2 / (1 + e^(2 x)); it saturates on both sides.
    constexpr float kCap = M::kAttentionCap * kLog2E;
    float e = ptx::exp2Approx(
        dot * (2 * kLog2E * M::kAttentionScale / M::kAttentionCap));
    score = ptx::fma(-2 * kCap, ptx::reciprocalApprox(1 + e), kCap);
  } else {
    score = dot * (M::kAttentionScale * kLog2E);
  }
  return M::kTemperatureLength > 0 ? score * temperature : score;
}

/// One block: kAttentionRows query rows, row i being query head i % group of
/// token first + i / group, of one kv head and one row of the batch.
template <class M, class P> struct FlashAttention {
  using Pass = device::Pass<M, P>;
  static constexpr uint32_t kHeadDim = M::kHeadDim,
                            kGroup = M::kHeads / M::kKvHeads,
                            kSteps = (kHeadDim + 15) / 16, // of 16 dimensions
      kRow = attentionRowBytes(kHeadDim),
                            kTile = attentionTileBytes(P::kPlanes, kHeadDim);
  /// On the tensor cores the cache's values are transposed, and so are their
  /// rows here: of a dimension, 64 positions.
  static constexpr bool kTransposed = kTensorAttention<Pass>;
  static constexpr uint32_t kValueRow =
      kTransposed ? attentionRowBytes(kKvPositions) : kRow;
  /// A head's row can be copied 16 bytes at a time.
  static constexpr bool kCopies = kHeadDim % 8 == 0;

  Pass &pass;
  uint32_t row, kvHead; // of the batch
  uint32_t end;         // positions that are known
  uint32_t blocks;      // of positions that the block's tokens see

  GROK_DEVICE uint32_t place(uint32_t stage, uint32_t value) const {
    return ptx::sharedAddress(pass.shared()) + (stage * 2 + value) * kTile;
  }

  /// Starts loading block b; positions that no one has written are zero.
  GROK_DEVICE void load(uint32_t b) {
#pragma unroll
    for (uint32_t value = 0; value < 2; ++value) {
      const uint8_t *from =
          kvBlockAddress(pass, pass.params.layer, row, b, value, kvHead);
      const uint32_t to = place(b % 2, value);
      if constexpr (kCopies) {
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
            ptx::copyAsync16(to + r * (value ? kValueRow : kRow) + c * 2,
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
    uint32_t token[2], head[2], position[2];
    bool there[2];
    float temperature[2];
  };
  /// What a lane has of its rows: outputs, their weights' sum and the largest
  /// score so far.
  struct State {
    float out[2 * kSteps][4], sum[2], top[2];
  };
  static constexpr uint32_t kParts = kQueryParts<M, P>;
  using Query = ptx::U4[kParts][kSteps];

  GROK_DEVICE void loadQuery(const Rows &rows, Query &query) {
#pragma unroll
    for (uint32_t part = 0; part < kParts; ++part)
#pragma unroll
      for (uint32_t s = 0; s < kSteps; ++s) {
        uint32_t word[4];
#pragma unroll
        for (uint32_t i = 0; i < 4; ++i) {
          uint32_t d = s * 16 + i / 2 * 8 + pass.lane() % 4 * 2, h = i % 2;
          const uint8_t *q =
              pass.template region<const uint8_t>(PrefillRegion::kQuery) +
              part * queryPartBytes<Pass>() +
              (uint64_t(rows.token[h]) * M::kHeads + rows.head[h]) * kHeadDim *
                  2;
          word[i] = d < kHeadDim ? *(const uint32_t *)(q + d * 2) : 0;
        }
        query[part][s] = {word[0], word[1], word[2], word[3]};
      }
  }

  /// Block b, which is in shared memory. kMasked: some row does not see all of
  /// it.
  template <bool kMasked>
  GROK_DEVICE void attendBlock(uint32_t b, const Rows &rows, const Query &query,
                               State &state) {
    const uint32_t lane = pass.lane();
    float score[8][4] = {};
    // Two groups of 8 positions, the lower and upper 8 dimensions of a step.
    const uint32_t key =
        place(b % 2, 0) + (lane / 16 * 8 + lane % 8) * kRow + lane / 8 % 2 * 16;
#pragma unroll
    for (uint32_t s = 0; s < kSteps; ++s)
#pragma unroll
      for (uint32_t j = 0; j < 8; j += 2) {
        ptx::U4 k = ptx::loadMatrices(key + j * 8 * kRow + s * 32);
#pragma unroll
        for (uint32_t part = 0; part < kParts; ++part) {
          ptx::mma<M::kBF16>(score[j], query[part][s], k.x, k.y);
          ptx::mma<M::kBF16>(score[j + 1], query[part][s], k.z, k.w);
        }
      }

    float best[2] = {state.top[0], state.top[1]};
#pragma unroll
    for (uint32_t j = 0; j < 8; ++j)
#pragma unroll
      for (uint32_t i = 0; i < 4; ++i) {
        const uint32_t h = i / 2,
                       p = b * kKvPositions + j * 8 + lane % 4 * 2 + i % 2;
        score[j][i] = scoreOf<M>(score[j][i], rows.temperature[h]);
        if (kMasked && p > rows.position[h])
          score[j][i] = kNegativeInfinity;
        best[h] = score[j][i] > best[h] ? score[j][i] : best[h];
      }
#pragma unroll
    for (uint32_t h = 0; h < 2; ++h) {
#pragma unroll
      for (uint32_t m = 1; m < 4; m *= 2) {
        float other = ptx::shuffleXor(best[h], m);
        best[h] = other > best[h] ? other : best[h];
      }
      const float keep = weightOf(state.top[h] - best[h]);
      state.top[h] = best[h];
      state.sum[h] *= keep;
#pragma unroll
      for (uint32_t n = 0; n < 2 * kSteps; ++n) {
        state.out[n][2 * h] *= keep;
        state.out[n][2 * h + 1] *= keep;
      }
    }
    uint32_t weights[8][2]; // pairs of 16-bit values
#pragma unroll
    for (uint32_t j = 0; j < 8; ++j)
#pragma unroll
      for (uint32_t h = 0; h < 2; ++h) {
        float first = weightOf(score[j][2 * h] - best[h]),
              second = weightOf(score[j][2 * h + 1] - best[h]);
        state.sum[h] += first + second;
        weights[j][h] = to16Pair<M::kBF16>(first, second);
      }

    // Positions 0 to 7 and 8 to 15 of a step, two groups of 8 dimensions.
    const uint32_t value =
        place(b % 2, 1) +
        (kTransposed
             ? (lane / 16 * 8 + lane % 8) * kValueRow + lane / 8 % 2 * 16
             : (lane / 8 % 2 * 8 + lane % 8) * kValueRow + lane / 16 * 16);
#pragma unroll
    for (uint32_t s = 0; s < 4; ++s) {
      const ptx::U4 w{weights[2 * s][0], weights[2 * s][1],
                      weights[2 * s + 1][0], weights[2 * s + 1][1]};
#pragma unroll
      for (uint32_t n = 0; n < kSteps; ++n) {
        ptx::U4 v = kTransposed
                        ? ptx::loadMatrices(value + n * 16 * kValueRow + s * 32)
                        : ptx::loadMatricesTransposed(
                              value + s * 16 * kValueRow + n * 32);
        ptx::mma<M::kBF16>(state.out[2 * n], w, v.x, v.y);
        ptx::mma<M::kBF16>(state.out[2 * n + 1], w, v.z, v.w);
      }
    }
  }

  GROK_DEVICE void run(uint32_t first, uint32_t tokens) {
    Rows rows;
#pragma unroll
    for (uint32_t h = 0; h < 2; ++h) {
      uint32_t r = pass.warp() * 16 + pass.lane() / 4 + 8 * h, t = r / kGroup;
      rows.there[h] = t < tokens;
      rows.token[h] = first + (rows.there[h] ? t : tokens - 1);
      rows.head[h] = kvHead * kGroup + r % kGroup;
      rows.position[h] = pass.token(rows.token[h]).position;
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
      if (b + 1 < blocks) {
        load(b + 1);
        ptx::copyAsyncWait<1>();
      } else {
        ptx::copyAsyncWait<0>();
      }
      ptx::barSync(0, kAttentionThreads);
      if (b < whole)
        attendBlock<false>(b, rows, query, state);
      else
        attendBlock<true>(b, rows, query, state);
      ptx::barSync(0, kAttentionThreads); // the stage has been read
    }

    typename Pass::Attn operand{
        pass.template region<uint8_t>(PrefillRegion::kAttn)};
#pragma unroll
    for (uint32_t h = 0; h < 2; ++h) {
#pragma unroll
      for (uint32_t m = 1; m < 4; m *= 2)
        state.sum[h] += ptx::shuffleXor(state.sum[h], m);
      const float scale = 1.0f / state.sum[h];
#pragma unroll
      for (uint32_t n = 0; n < 2 * kSteps; ++n)
        if (uint32_t d = n * 8 + pass.lane() % 4 * 2;
            rows.there[h] && d < kHeadDim)
          operand.store(
              rows.token[h], rows.head[h] * kHeadDim + d,
              {state.out[n][2 * h] * scale, state.out[n][2 * h + 1] * scale});
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
