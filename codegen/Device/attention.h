// Grouped-query attention over the KV cache in the flash form, with fixed
// splits: a task is one row, one kv head and one block of 64 positions; its
// partial outputs are merged per query head in an order that depends on the
// position alone.
#pragma once

#include "codegen/Device/residual.h"

namespace grok::device {

/// Element type of the KV cache: 16 bits for single activations, float32 for
/// split ones.
template <class M, class P> struct KvElement {
  static constexpr bool kWide = P::kPlanes == 2;
  static constexpr uint32_t kBytes = kWide ? 4 : 2;
  /// The value that a later step will read back.
  GROK_DEVICE static float round(float v) {
    return kWide ? v : from16<M::kBF16>(to16<M::kBF16>(v));
  }
  GROK_DEVICE static void store(uint8_t *p, float v) {
    if constexpr (kWide)
      *(float *)p = v;
    else
      *(uint16_t *)p = to16<M::kBF16>(v);
  }
  GROK_DEVICE static float load(const uint8_t *p) {
    if constexpr (kWide)
      return ptx::loadL2((const float *)p);
    else
      return from16<M::kBF16>(ptx::loadL2((const uint16_t *)p));
  }
  /// Consecutive elements of one load, kept as they are stored until they are
  /// used.
  static constexpr uint32_t kVector = M::kHeadDim % 8 == 0 ? 16 / kBytes : 1;
  GROK_DEVICE static ptx::U4 loadVector(const uint8_t *p) {
    if constexpr (kVector == 1)
      return {__builtin_bit_cast(uint32_t, load(p)), 0, 0, 0};
    return ptx::loadL2((const void *)p);
  }
  GROK_DEVICE static ptx::U4 fromShared(const uint8_t *p) {
    if constexpr (kVector == 1)
      return {__builtin_bit_cast(
                  uint32_t, kWide ? *(const float *)p
                                  : from16<M::kBF16>(*(const uint16_t *)p)),
              0, 0, 0};
    return ptx::loadShared16(ptx::sharedAddress(p));
  }
  /// Element i of a loaded vector; i is a constant after unrolling.
  GROK_DEVICE static float element(const ptx::U4 &v, uint32_t i) {
    if constexpr (kVector == 1)
      return __builtin_bit_cast(float, v.x);
    uint32_t at = i * kBytes / 4, word = at == 0   ? v.x
                                         : at == 1 ? v.y
                                         : at == 2 ? v.z
                                                   : v.w;
    if constexpr (kWide)
      return __builtin_bit_cast(float, word);
    return from16<M::kBF16>(uint16_t(i % 2 ? word >> 16 : word));
  }
};

/// First byte of [64][dh] of one row, block, layer, K (0) or V (1), and kv
/// head.
template <class B>
GROK_DEVICE uint8_t *kvBlockAddress(B &block, uint32_t row, uint32_t kvBlock,
                                    uint32_t value, uint32_t head) {
  using M = typename B::Model;
  constexpr uint64_t kHeadBytes = uint64_t(kKvPositions) * M::kHeadDim *
                                  KvElement<M, typename B::Plan>::kBytes;
  uint64_t index =
      ((uint64_t(row) * block.params.kvRowBlocks + kvBlock) * M::kLayers +
       block.layer()) *
          2 +
      value;
  return block.params.arena + B::Plan::kKvOffset +
         (index * M::kKvHeads + head) * kHeadBytes;
}

template <class B> GROK_DEVICE uint64_t *queryWords(B &block, uint32_t row) {
  return block.template region<uint64_t>(Region::kQ) +
         (block.parity() * B::Plan::kMaxBatch + row) * B::kAttnWidth;
}
/// Words [K or V][kv head][dh] of the position that this step computes.
template <class B> GROK_DEVICE uint64_t *newKvWords(B &block, uint32_t row) {
  return block.template region<uint64_t>(Region::kKvNew) +
         (block.parity() * B::Plan::kMaxBatch + row) *
             (2 * B::Model::kKvHeads * B::Model::kHeadDim);
}
/// Words {max, sum, output[dh]} of one row, query head and block.
template <class B>
GROK_DEVICE uint64_t *partialWords(B &block, uint32_t row, uint32_t head,
                                   uint32_t kvBlock) {
  uint64_t index =
      (uint64_t(block.parity()) * B::Plan::kMaxBatch + row) * B::Model::kHeads +
      head;
  return block.template region<uint64_t>(Region::kPartials) +
         (index * B::kShape.kvBlocks() + kvBlock) * (B::Model::kHeadDim + 2);
}
template <class B> GROK_DEVICE uint64_t *attnWords(B &block, uint32_t row) {
  return block.template region<uint64_t>(Region::kAttn) +
         (block.parity() * B::Plan::kMaxBatch + row) * B::kAttnWidth;
}

/// QKV projection of the normalised rows, RoPE on q and k; q and the new k and
/// v are handed over, k and v stored.
template <class B> GROK_DEVICE void qkvPhase(B &block, RingReader<B> &ring) {
  using M = typename B::Model;
  using P = typename B::Plan;
  using Kv = KvElement<M, P>;
  constexpr uint32_t kHeadDim = M::kHeadDim;
  const float *gain = block.vectors(block.layer());
  bool staged = false;
  matvec(
      block, ring, P::kMatrixQkv, (M::kHidden + kTileK - 1) / kTileK,
      block.params.rows, staged, Phase::kQkv,
      [&](uint32_t k0, uint32_t count) { stageNormed(block, gain, k0, count); },
      [&](Output out, float value, float partner) {
        uint32_t matrixRow = out.tile * kTileRows + out.r;
        uint32_t head = matrixRow / kHeadDim, r = matrixRow % kHeadDim,
                 b = out.row;
        if (!block.rowActive(b) || head >= M::kHeads + 2 * M::kKvHeads)
          return;
        uint32_t dim = r;
        if (head < M::kHeads + M::kKvHeads) { // rows 2j and 2j + 1 are
                                              // dimensions j and j + dh/2
          uint32_t j = r / 2;
          const float *angle =
              block.template region<const float>(Region::kRope) +
              (uint64_t(block.position(b)) * (kHeadDim / 2) + j) * 2;
          float cosine = angle[0], sine = angle[1];
          value = r % 2 ? ptx::fma(value, cosine, partner * sine)
                        : ptx::fma(value, cosine, -(partner * sine));
          dim = r % 2 ? j + kHeadDim / 2 : j;
        }
        if (head < M::kHeads) {
          publish(queryWords(block, b) + head * kHeadDim + dim, value,
                  block.epoch());
          return;
        }
        uint32_t kind = head < M::kHeads + M::kKvHeads ? 0 : 1;
        uint32_t kvHead = head - M::kHeads - kind * M::kKvHeads;
        uint32_t position = block.position(b);
        publish(newKvWords(block, b) +
                    (kind * M::kKvHeads + kvHead) * kHeadDim + dim,
                Kv::round(value), block.epoch());
        Kv::store(
            kvBlockAddress(block, b, position / kKvPositions, kind, kvHead) +
                (position % kKvPositions * kHeadDim + dim) * Kv::kBytes,
            value);
      });
}

/// One task: the partial attention of every query head of a kv head over one
/// block of positions.
template <class B>
GROK_DEVICE void attentionTask(B &block, uint32_t b, uint32_t kvHead,
                               uint32_t kvBlock) {
  using M = typename B::Model;
  using Kv = KvElement<M, typename B::Plan>;
  constexpr uint32_t kHeadDim = M::kHeadDim, kGroup = M::kHeads / M::kKvHeads;
  static_assert(kHeadDim <= kConsumers,
                "a thread for every dimension of a head");
  const uint32_t position = block.position(b), first = kvBlock * kKvPositions;
  const uint32_t count =
      position + 1 - first < kKvPositions ? position + 1 - first : kKvPositions;
  // The position of this step is not in the cache yet for other slots: its k
  // and v are taken from their words.
  const uint32_t fresh =
      kvBlock == position / kKvPositions ? count - 1 : kKvPositions;
  const uint8_t *keys = kvBlockAddress(block, b, kvBlock, 0, kvHead),
                *values = kvBlockAddress(block, b, kvBlock, 1, kvHead);
  const uint64_t *freshKey = newKvWords(block, b) + kvHead * kHeadDim;
  const uint64_t *freshValue = freshKey + M::kKvHeads * kHeadDim;

  // The newest key, [dh], as the cache will hold it; first, for its alignment.
  uint8_t *newKey = (uint8_t *)block.scratch();
  float *valueRows = block.scratch() + kHeadDim;  // [64][dh]
  float *q = valueRows + kKvPositions * kHeadDim; // [group][dh]
  float *scores = q + kGroup * kHeadDim; // [group][64], then probabilities
  float *summary = scores + kGroup * kKvPositions; // [group][max, sum]
  float *outputs = summary + kGroup * 2;           // [part][group][dh]

  // Keys of earlier positions depend on nothing in this layer: they are on
  // their way while the queries are awaited.
  uint32_t p = block.tid / 8,
           part = block.tid %
                  8; // 8 threads a position, each every 8th vector of the head
  constexpr uint32_t kVectors =
      (kHeadDim + 8 * Kv::kVector - 1) / (8 * Kv::kVector);
  auto loadKey = [&](uint32_t at) -> ptx::U4 {
    if (p < count && p != fresh && at < kHeadDim)
      return Kv::loadVector(keys + (p * kHeadDim + at) * Kv::kBytes);
    return {};
  };
  constexpr bool kKeysAhead = B::Plan::kSm >= 90; // sm_80 would spill
  ptx::U4 k[kVectors];
  if constexpr (kKeysAhead)
#pragma unroll
    for (uint32_t j = 0; j < kVectors; ++j)
      k[j] = loadKey((part + 8 * j) * Kv::kVector);
  constexpr uint32_t kVectorsPerRow = kHeadDim / Kv::kVector;
  constexpr uint32_t kValueVectors =
      (kKvPositions * kVectorsPerRow + kConsumers - 1) / kConsumers;
  block.sync(); // the scratch of the task before has been read
  forEachWord(block, queryWords(block, b) + kvHead * kGroup * kHeadDim,
              kGroup * kHeadDim, Phase::kAttention,
              [&](uint32_t i, float x) { q[i] = x; });
  if (fresh < kKvPositions) {
    forEachWord(
        block, freshKey, kHeadDim, Phase::kAttention,
        [&](uint32_t i, float x) { Kv::store(newKey + i * Kv::kBytes, x); });
    forEachWord(
        block, freshValue, kHeadDim, Phase::kAttention,
        [&](uint32_t i, float x) { valueRows[fresh * kHeadDim + i] = x; });
  }
#pragma unroll 1 // a vector at a time: registers are short here
  for (uint32_t j = 0; j < kValueVectors; ++j) {
    uint32_t at = block.tid + j * kConsumers;
    if (at / kVectorsPerRow >= count || at / kVectorsPerRow == fresh)
      continue;
    ptx::U4 vector = Kv::loadVector(values + at * (Kv::kVector * Kv::kBytes));
#pragma unroll
    for (uint32_t i = 0; i < Kv::kVector; ++i)
      valueRows[at * Kv::kVector + i] = Kv::element(vector, i);
  }
  block.sync();
  block.beginPhase();

  { // Scores
    float dot[kGroup] = {};
#pragma unroll kKeysAhead ? kVectors : 1
    for (uint32_t j = 0; j < kVectors; ++j) {
      uint32_t at = (part + 8 * j) * Kv::kVector;
      if (p >= count || at >= kHeadDim)
        break;
      const ptx::U4 stored = p == fresh
                                 ? Kv::fromShared(newKey + at * Kv::kBytes)
                             : kKeysAhead ? k[j]
                                          : loadKey(at);
      float key[Kv::kVector];
#pragma unroll
      for (uint32_t i = 0; i < Kv::kVector; ++i)
        key[i] = Kv::element(stored, i);
#pragma unroll
      for (uint32_t g = 0; g < kGroup; ++g) {
        asm volatile("" ::: "memory"); // one head's queries in registers
#pragma unroll
        for (uint32_t i = 0; i < Kv::kVector; ++i)
          dot[g] = ptx::fma(q[g * kHeadDim + at + i], key[i], dot[g]);
      }
    }
    float temperature = 1;
    if (M::kTemperatureLength > 0 && position > M::kTemperatureLength)
      temperature = ptx::log2Approx(float(position)) /
                    ptx::log2Approx(float(M::kTemperatureLength));
    // Every one of the 8 threads gets a head's sum; each finishes one head.
#pragma unroll
    for (uint32_t first8 = 0; first8 < kGroup; first8 += 8) {
      float mine = 0;
#pragma unroll
      for (uint32_t g = first8; g < kGroup && g < first8 + 8; ++g) {
        float sum = dot[g];
#pragma unroll
        for (uint32_t m = 1; m < 8; m *= 2)
          sum += ptx::shuffleXor(sum, m);
        mine = part == g - first8 ? sum : mine;
      }
      if (first8 + part < kGroup)
        scores[(first8 + part) * kKvPositions + p] =
            p < count ? softCap(mine * M::kAttentionScale, M::kAttentionCap) *
                            temperature
                      : kNegativeInfinity;
    }
  }
  block.sync();
  block.beginPhase();

  for (uint32_t g = block.warp(); g < kGroup;
       g += kWarps) { // softmax within the block: a warp a head
    float *s = scores + g * kKvPositions;
    float s0 = s[block.lane()], s1 = s[block.lane() + 32];
    float top = s0 > s1 ? s0 : s1;
#pragma unroll
    for (uint32_t m = 16; m; m >>= 1) {
      float other = ptx::shuffleXor(top, m);
      top = other > top ? other : top;
    }
    float p0 = exp(s0 - top), p1 = exp(s1 - top), sum = p0 + p1;
#pragma unroll
    for (uint32_t m = 16; m; m >>= 1)
      sum += ptx::shuffleXor(sum, m);
    s[block.lane()] = p0;
    s[block.lane() + 32] = p1;
    if (block.lane() == 0) {
      summary[2 * g] = top;
      summary[2 * g + 1] = sum;
    }
  }
  block.sync();
  block.beginPhase();

  constexpr uint32_t kParts =
      kConsumers /
      kHeadDim; // groups of dh threads, each every kParts-th position
  const uint32_t d = block.tid % kHeadDim, group = block.tid / kHeadDim;
  if (group < kParts) {
    float out[kGroup] = {};
    for (uint32_t p = group; p < count; p += kParts) {
      float x = valueRows[p * kHeadDim + d];
#pragma unroll
      for (uint32_t g = 0; g < kGroup; ++g)
        out[g] = ptx::fma(scores[g * kKvPositions + p], x, out[g]);
    }
#pragma unroll
    for (uint32_t g = 0; g < kGroup; ++g)
      outputs[(group * kGroup + g) * kHeadDim + d] = out[g];
  }
  block.sync();
  block.beginPhase();
  for (uint32_t i = block.tid; i < kGroup * kHeadDim; i += kConsumers) {
    uint32_t g = i / kHeadDim;
    float sum = 0;
#pragma unroll
    for (uint32_t other = 0; other < kParts; ++other)
      sum += outputs[other * kGroup * kHeadDim + i];
    uint64_t *words = partialWords(block, b, kvHead * kGroup + g, kvBlock);
    publish(words + 2 + i % kHeadDim, sum, block.epoch());
    if (i % kHeadDim < 2)
      publish(words + i % kHeadDim, summary[2 * g + i % kHeadDim],
              block.epoch());
  }
}

/// Tasks are dealt to the slots in turn: slot s takes tasks s, s + slots, ...
/// of (row, kv head, block).
template <class B> GROK_DEVICE void attentionPhase(B &block) {
  using M = typename B::Model;
  uint32_t next = block.slot(), base = 0;
  for (uint32_t b = 0; b < block.params.rows; ++b) {
    if (!block.rowActive(b))
      continue;
    uint32_t blocks = block.position(b) / kKvPositions + 1;
    for (; next < base + blocks * M::kKvHeads; next += B::Plan::kSlots)
      attentionTask(block, b, (next - base) / blocks, (next - base) % blocks);
    base += blocks * M::kKvHeads;
  }
}

/// One block's maximum, sum and output of dimension d, asked for at once.
template <class B>
GROK_DEVICE void awaitPartial(B &block, const uint64_t *words, uint32_t d,
                              float &m, float &l, float &o) {
  const uint32_t epoch = block.epoch();
  uint64_t top, sum, out;
  uint32_t since = 0;
  for (uint32_t polls = 1;; ++polls) {
    top = ptx::loadRelaxed(words);
    sum = ptx::loadRelaxed(words + 1);
    out = ptx::loadRelaxed(words + 2 + d);
    if ((wordEpoch(top) == epoch && wordEpoch(sum) == epoch &&
         wordEpoch(out) == epoch) ||
        (polls % kPollsBetweenChecks == 0 &&
         gaveUp(block, since, Phase::kMerge)))
      break;
  }
  m = wordValue(top);
  l = wordValue(sum);
  o = wordValue(out);
}

/// Merges the blocks' partial outputs of one row and query head: out = sum_i
/// e^(m_i - m) o_i / sum_i e^(m_i - m) l_i.
template <class B>
GROK_DEVICE void mergeTask(B &block, uint32_t b, uint32_t head) {
  constexpr uint32_t kHeadDim = B::Model::kHeadDim,
                     kParts = kConsumers / kHeadDim;
  float *maxima = block.scratch(), *sums = maxima + kParts,
        *outputs = sums + kParts; // [part], [part], [part][dh]
  uint32_t d = block.tid % kHeadDim, part = block.tid / kHeadDim;
  float top = kNegativeInfinity, sum = 0, out = 0;
  block.sync(); // the scratch of the task before has been read
  if (part < kParts) {
    for (uint32_t i = part; i <= block.position(b) / kKvPositions;
         i += kParts) {
      float m, l, o;
      awaitPartial(block, partialWords(block, b, head, i), d, m, l, o);
      float newTop = m > top ? m : top;
      float keep = exp(top - newTop), add = exp(m - newTop);
      sum = ptx::fma(sum, keep, l * add);
      out = ptx::fma(out, keep, o * add);
      top = newTop;
    }
    if (d == 0) {
      maxima[part] = top;
      sums[part] = sum;
    }
    outputs[part * kHeadDim + d] = out;
  }
  block.sync();
  if (part == 0) {
#pragma unroll 1 // unrolled, the parts of small heads would spill
    for (uint32_t i = 1; i < kParts; ++i)
      top = maxima[i] > top ? maxima[i] : top;
    sum = 0;
    out = 0;
#pragma unroll 1
    for (uint32_t i = 0; i < kParts; ++i) {
      float scale = exp(maxima[i] - top);
      sum = ptx::fma(sums[i], scale, sum);
      out = ptx::fma(outputs[i * kHeadDim + d], scale, out);
    }
    publish(attnWords(block, b) + head * kHeadDim + d, out / sum,
            block.epoch());
  }
}

template <class B> GROK_DEVICE void mergePhase(B &block) {
  constexpr uint32_t kHeads = B::Model::kHeads;
  uint32_t next = block.slot(), base = 0;
  for (uint32_t b = 0; b < block.params.rows; ++b) {
    if (!block.rowActive(b))
      continue;
    for (; next < base + kHeads; next += B::Plan::kSlots)
      mergeTask(block, b, next - base);
    base += kHeads;
  }
}

/// y = Wo o.
template <class B>
GROK_DEVICE void attnOutPhase(B &block, RingReader<B> &ring) {
  using M = typename B::Model;
  using P = typename B::Plan;
  uint64_t *y = block.template region<uint64_t>(Region::kYAttn) +
                block.parity() * P::kMaxBatch * M::kHidden;
  bool staged = false;
  matvec(
      block, ring, P::kMatrixAttnOut, (B::kAttnWidth + kTileK - 1) / kTileK,
      block.params.rows, staged, Phase::kAttnOut,
      [&](uint32_t k0, uint32_t count) {
        for (uint32_t b = 0; b < block.params.rows; ++b)
          if (block.rowActive(b))
            stageWords(block, attnWords(block, b), B::kAttnWidth, b, k0, count,
                       Phase::kAttnOut);
      },
      [&](Output out, float value, float) {
        uint32_t row = out.tile * kTileRows + out.r;
        if (block.rowActive(out.row) && row < M::kHidden)
          publish(y + out.row * M::kHidden + row, value, block.epoch());
      });
}

} // namespace grok::device
