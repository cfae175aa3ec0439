// An attention task by float32 products, for a float32 KV cache and for heads
// that are not whole k32 steps.
#pragma once

#include "codegen/Device/attention_common.h"

namespace grok::device {

/// The parts of the block's scratch that an attention task uses.
template <class B> struct AttentionScratch {
  static constexpr uint32_t kHeadDim = B::Model::kHeadDim,
                            kGroup = B::Model::kHeads / B::Model::kKvHeads,
                            kParts = attentionParts(kHeadDim);
  float *newKey;     // [dh]: of the position that this step computes, which is
                     // not in the cache yet for other slots
  float *newValue;   // [dh]
  float *queries;    // [group][dh], each in the order of queryPlace
  float *outputs;    // [part][group][dh]
  float *weights;    // [64][group]: scores, then their exponentials
  float *newWeights; // [group]: of the new position
  float *sums;       // [part][group]

  GROK_DEVICE static AttentionScratch of(B &block) {
    AttentionScratch s;
    s.newKey = block.scratch();
    s.newValue = s.newKey + kHeadDim;
    s.queries = s.newValue + kHeadDim;
    s.outputs = s.queries + kGroup * kHeadDim;
    s.weights = s.outputs + kParts * kGroup * kHeadDim;
    s.newWeights = s.weights + kKvPositions * kGroup;
    s.sums = s.newWeights + kGroup;
    return s;
  }
};

/// Elements that a thread takes of a key at once: 16 bytes of the cache.
template <class B>
inline constexpr uint32_t kKeyVector =
    B::Model::kHeadDim % 8 == 0
        ? 16 / KvElement<typename B::Model, typename B::Plan>::kBytes
        : 2;

/// Place of dimension d of a query: 8 dimensions that go with a vector of the
/// cache are two halves, and the halves of all vectors lie side by side, so
/// that threads with neighbouring vectors read neighbouring words.
template <class B> GROK_DEVICE uint32_t queryPlace(uint32_t d) {
  if constexpr (kKeyVector<B> != 8)
    return d;
  return d % 8 / 4 * (B::Model::kHeadDim / 2) + d / 8 * 4 + d % 4;
}

/// From a scaled dot product to what is stored of a score: e^score where scores
/// are bounded.
template <class M>
GROK_DEVICE float attentionWeight(float dot, float temperature) {
  float score =
      softCap(dot * M::kAttentionScale, M::kAttentionCap) * temperature;
  return kBoundedScores<M> ? exp(score) : score;
}

/// Weights (or scores) of the `cached` keys in the ring for every query head of
/// the group, 8 threads a position; 0 (or -infinity) for the others of the 64.
template <class B>
GROK_DEVICE void cachedWeights(B &block, RingReader<B> &ring,
                               AttentionScratch<B> &scratch, uint32_t cached,
                               float temperature) {
  using M = typename B::Model;
  using Kv = KvElement<M, typename B::Plan>;
  constexpr uint32_t kHeadDim = M::kHeadDim,
                     kGroup = AttentionScratch<B>::kGroup;
  constexpr uint32_t kVector = kKeyVector<B>, kRun = kVector < 4 ? kVector : 4;
  constexpr uint32_t kVectors = (kHeadDim + 8 * kVector - 1) / (8 * kVector);
  const uint32_t part = block.tid % 8;
  // A few heads at a time: their sums fit the registers.
  constexpr uint32_t kMostHeads = B::Plan::kSm >= 90 ? 4 : 2;
  constexpr uint32_t kHeads = kGroup < kMostHeads ? kGroup : kMostHeads,
                     kRounds = (kGroup + kHeads - 1) / kHeads;
#pragma unroll 1
  for (uint32_t i = block.tid / 8; i < kKvPositions * kRounds;
       i += kConsumers / 8) {
    const uint32_t p = i % kKvPositions, g0 = i / kKvPositions * kHeads;
    const bool there = p < cached;
    float dot[kHeads] = {};
#pragma unroll kVectors <= 2 ? kVectors : 1
    for (uint32_t j = 0; j < kVectors; ++j) {
      uint32_t at = (part + 8 * j) * kVector;
      if (!there || at >= kHeadDim)
        break;
      float key[kVector];
      Kv::template load<kVector>(
          ring.address(block, (p * kHeadDim + at) * Kv::kBytes), key);
#pragma unroll
      for (uint32_t g = 0; g < kHeads; ++g) {
        uint32_t head = g0 + g < kGroup ? g0 + g : kGroup - 1;
#pragma unroll
        for (uint32_t i = 0; i < kVector; i += kRun) {
          float q[kRun];
          ptx::loadSharedFloats(
              scratch.queries + head * kHeadDim + queryPlace<B>(at + i), q);
#pragma unroll
          for (uint32_t r = 0; r < kRun; ++r)
            dot[g] = ptx::fma(q[r], key[i + r], dot[g]);
        }
      }
    }
    float mine = 0; // every one of the first threads finishes one head
#pragma unroll
    for (uint32_t g = 0; g < kHeads; ++g) {
      float sum = dot[g];
#pragma unroll
      for (uint32_t m = 1; m < 8; m *= 2)
        sum += ptx::shuffleXor(sum, m);
      mine = part == g ? sum : mine;
    }
    if (part < kHeads && g0 + part < kGroup)
      scratch.weights[p * kGroup + g0 + part] =
          there ? attentionWeight<M>(mine, temperature)
                : (kBoundedScores<M> ? 0.0f : kNegativeInfinity);
  }
}

/// The same of the new key: a warp a head, taken from the last warps, which
/// have the least to do while few keys are cached.
template <class B>
GROK_DEVICE void newWeight(B &block, AttentionScratch<B> &scratch,
                           float temperature) {
  using M = typename B::Model;
  constexpr uint32_t kHeadDim = M::kHeadDim,
                     kGroup = AttentionScratch<B>::kGroup;
#pragma unroll 1
  for (uint32_t g = kWarps - 1 - block.warp(); g < kGroup; g += kWarps) {
    float dot = 0;
#pragma unroll
    for (uint32_t d = 0; d < kHeadDim; d += 32)
      if (d + block.lane() < kHeadDim)
        dot = ptx::fma(
            scratch.queries[g * kHeadDim + queryPlace<B>(d + block.lane())],
            scratch.newKey[d + block.lane()], dot);
#pragma unroll
    for (uint32_t m = 16; m; m >>= 1)
      dot += ptx::shuffleXor(dot, m);
    if (block.lane() == 0)
      scratch.newWeights[g] = attentionWeight<M>(dot, temperature);
  }
}

/// Scores to e^(score - largest), a warp a head; the largest is handed over.
template <class B>
GROK_DEVICE void relativeWeights(B &block, AttentionScratch<B> &scratch,
                                 uint64_t *words, uint64_t wordsOfHead,
                                 bool newest) {
  constexpr uint32_t kGroup = AttentionScratch<B>::kGroup;
  for (uint32_t g = block.warp(); g < kGroup; g += kWarps) {
    float &first = scratch.weights[block.lane() * kGroup + g],
          &second = scratch.weights[(block.lane() + 32) * kGroup + g],
          &last = scratch.newWeights[g];
    float top = first > second ? first : second;
    top = newest && last > top ? last : top;
#pragma unroll
    for (uint32_t m = 16; m; m >>= 1) {
      float other = ptx::shuffleXor(top, m);
      top = other > top ? other : top;
    }
    first = exp(first - top);
    second = exp(second - top);
    ptx::warpSync();
    if (block.lane() == 0) {
      last = exp(last - top);
      publish(words + g * wordsOfHead + 1, top, block.epoch());
    }
  }
  block.sync();
}

/// Weighted sums of the values and sums of the weights, by groups of threads:
/// group i takes cached positions i, i + parts, ..., the first group also the
/// new one; a thread takes two dimensions.
template <class B>
GROK_DEVICE void attentionOutputs(B &block, RingReader<B> &ring,
                                  AttentionScratch<B> &scratch, uint32_t cached,
                                  bool newest) {
  using Scratch = AttentionScratch<B>;
  using Kv = KvElement<typename B::Model, typename B::Plan>;
  constexpr uint32_t kHeadDim = Scratch::kHeadDim, kGroup = Scratch::kGroup;
  constexpr uint32_t kTogether = kGroup <= 4 ? 4 : B::Plan::kSm >= 90 ? 2 : 1;
  const uint32_t d = block.tid % (kHeadDim / 2) * 2,
                 part = block.tid / (kHeadDim / 2);
  if (part >= Scratch::kParts)
    return;
  float out[kGroup][2] = {}, sum[kGroup] = {};
  auto add = [&](const float (&v)[2], const float *weights) {
#pragma unroll
    for (uint32_t g = 0; g < kGroup; ++g) {
      out[g][0] = ptx::fma(weights[g], v[0], out[g][0]);
      out[g][1] = ptx::fma(weights[g], v[1], out[g][1]);
      sum[g] += weights[g];
    }
  };
#pragma unroll 1
  for (uint32_t p0 = part; p0 < cached; p0 += kTogether * Scratch::kParts) {
    float v[kTogether][2];
#pragma unroll
    for (uint32_t j = 0; j < kTogether; ++j)
      if (uint32_t p = p0 + j * Scratch::kParts; p < cached)
        Kv::template load<2>(
            ring.address(block, (p * kHeadDim + d) * Kv::kBytes), v[j]);
#pragma unroll
    for (uint32_t j = 0; j < kTogether; ++j)
      if (uint32_t p = p0 + j * Scratch::kParts; p < cached)
        add(v[j], scratch.weights + p * kGroup);
  }
  if (newest && part == 0)
    add({scratch.newValue[d], scratch.newValue[d + 1]}, scratch.newWeights);
#pragma unroll
  for (uint32_t g = 0; g < kGroup; ++g) {
    float *to = scratch.outputs + (part * kGroup + g) * kHeadDim + d;
    ptx::storeSharedPair(ptx::sharedAddress(to), out[g][0], out[g][1]);
    if (d == 0)
      scratch.sums[part * kGroup + g] = sum[g];
  }
}

/// One task: the partial attention of every query head of a kv head over one
/// block of positions, `cached` of which come through the ring, keys first.
template <class B>
GROK_DEVICE void fmaAttentionTask(B &block, RingReader<B> &ring, uint32_t b,
                               uint32_t kvHead, uint32_t kvBlock,
                               uint32_t cached) {
  using Scratch = AttentionScratch<B>;
  constexpr uint32_t kHeadDim = Scratch::kHeadDim, kGroup = Scratch::kGroup;
  const uint32_t position = block.position(b), bytes = kvStreamBytes<B>(cached);
  const bool newest = kvBlock == position / kKvPositions;
  Scratch scratch = Scratch::of(block);
  const uint64_t *query = queryWords(block, b) + kvHead * kGroup * kHeadDim;
  const uint64_t *key = newKvWords(block, b) + kvHead * kHeadDim;
  const uint64_t *value = key + B::Model::kKvHeads * kHeadDim;

  block.sync(); // the scratch of what came before has been read
  // The new key and value, then the queries, as they lie in the scratch but for
  // the order of a query's dimensions.
  constexpr uint32_t kAtOnce = 4, kWords = (2 + kGroup) * kHeadDim;
#pragma unroll 1
  for (uint32_t i0 = 0; i0 < kWords; i0 += kAtOnce * 2 * kConsumers) {
    auto at = [&](uint32_t j) { return i0 + (j * kConsumers + block.tid) * 2; };
    uint64_t word[kAtOnce][2];
    awaitPairs<FullWord>(block, Phase::kAttention, word, [&](uint32_t j) {
      uint32_t i = at(j);
      const uint64_t *words = i < kHeadDim       ? key + i
                              : i < 2 * kHeadDim ? value + (i - kHeadDim)
                                                 : query + (i - 2 * kHeadDim);
      return Words{words, i < kWords && (i >= 2 * kHeadDim || newest)};
    });
#pragma unroll
    for (uint32_t j = 0; j < kAtOnce; ++j)
#pragma unroll
      for (uint32_t e = 0; e < 2; ++e) {
        uint32_t i = at(j) + e, d = i % kHeadDim;
        if (i < kWords && (i >= 2 * kHeadDim || newest))
          scratch.newKey[i < 2 * kHeadDim ? i : i + queryPlace<B>(d) - d] =
              wordValue(word[j][e]);
      }
  }
  ring.await(block, bytes, Phase::kAttention);
  block.sync();
  trace(block, Phase::kAttention, TracePoint::kReady);
  const float temperature = attentionTemperature<typename B::Model>(position);
  cachedWeights(block, ring, scratch, cached, temperature);
  if (newest)
    newWeight(block, scratch, temperature);
  ring.advance(block, bytes);
  ring.finish(block);
  ring.await(block, bytes, Phase::kAttention);
  block.sync();
  // Words of the group's first head; the next heads' follow.
  uint64_t *words = partialWords(block, b, kvHead * kGroup, kvBlock);
  constexpr uint64_t kHeadWords = partialHeadWords<B>();
  if constexpr (!kBoundedScores<typename B::Model>)
    relativeWeights(block, scratch, words, kHeadWords, newest);
  attentionOutputs(block, ring, scratch, cached, newest);
  ring.advance(block, bytes);
  ring.finish(block);
  block.sync();
  for (uint32_t i = block.tid; i < kGroup * kHeadDim; i += kConsumers) {
    uint32_t g = i / kHeadDim, d = i % kHeadDim;
    float out = 0, sum = 0;
#pragma unroll
    for (uint32_t part = 0; part < Scratch::kParts; ++part) {
      out += scratch.outputs[part * kGroup * kHeadDim + i];
      sum += scratch.sums[part * kGroup + g];
    }
    publish(words + g * kHeadWords + 2 + d, out, block.epoch());
    if (d == 0)
      publish(words + g * kHeadWords, sum, block.epoch());
    if (kBoundedScores<typename B::Model> && d == 1)
      publish(words + g * kHeadWords + 1, 0, block.epoch());
  }
}

} // namespace grok::device
