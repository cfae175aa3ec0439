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
  /// kCount consecutive elements in shared memory; an even number, aligned to
  /// their size.
  template <uint32_t kCount>
  GROK_DEVICE static void load(uint32_t address, float (&v)[kCount]) {
    constexpr uint32_t kWords = kCount * kBytes / 4;
    uint32_t word[kWords];
    ptx::loadSharedWords(address, word);
#pragma unroll
    for (uint32_t i = 0; i < kCount; ++i)
      v[i] = kWide ? __builtin_bit_cast(float, word[i * kWords / kCount])
                   : from16<M::kBF16>(
                         uint16_t(word[i * kWords / kCount] >> i % 2 * 16));
  }
};

/// Bytes of `count` positions of one kv head's K or V as they are streamed:
/// bulk copies move 16 bytes at least. (What follows the last position belongs
/// to the same block of 64.)
template <class B>
GROK_DEVICE constexpr uint32_t kvStreamBytes(uint32_t count) {
  return (count * B::Model::kHeadDim *
              KvElement<typename B::Model, typename B::Plan>::kBytes +
          15) /
         16 * 16;
}

/// First byte of [64][dh] of one row, block, layer, K (0) or V (1), and kv
/// head.
template <class B>
GROK_DEVICE uint8_t *kvBlockAddress(B &block, uint32_t layer, uint32_t row,
                                    uint32_t kvBlock, uint32_t value,
                                    uint32_t head) {
  using M = typename B::Model;
  constexpr uint64_t kHeadBytes = uint64_t(kKvPositions) * M::kHeadDim *
                                  KvElement<M, typename B::Plan>::kBytes;
  uint64_t index =
      ((uint64_t(row) * block.params.kvRowBlocks + kvBlock) * M::kLayers +
       layer) *
          2 +
      value;
  return block.params.arena + B::Plan::kKvOffset +
         (index * M::kKvHeads + head) * kHeadBytes;
}

/// Calls task(row, kv head, block, cached) for this slot's attention tasks;
/// `cached` positions of the block are in the cache before this step. Tasks are
/// dealt to the slots in turn: slot s takes tasks s, s + slots, ... of (row, kv
/// head, block). active(b) and position(b) tell about row b.
template <class B, class Active, class Position, class Task>
GROK_DEVICE void forEachAttentionTask(B &block, Active active,
                                      Position position, Task task) {
  using M = typename B::Model;
  uint32_t next = block.slot(), base = 0;
  for (uint32_t b = 0; b < block.params.rows; ++b) {
    if (!active(b))
      continue;
    uint32_t at = position(b), blocks = at / kKvPositions + 1;
    for (; next < base + blocks * M::kKvHeads; next += B::Plan::kSlots) {
      uint32_t kvBlock = (next - base) % blocks;
      task(b, (next - base) / blocks, kvBlock,
           kvBlock == blocks - 1 ? at % kKvPositions : kKvPositions);
    }
    base += blocks * M::kKvHeads;
  }
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
/// Words {sum, max, output[dh]} of one row, query head and block: the weights'
/// sum, the largest score if weights are relative to it, the weighted values.
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
         (block.parity() * B::Plan::kMaxBatch + row) *
             B::kShape.operandWords(B::kAttnWidth);
}

/// QKV projection of the normalised rows, RoPE on q and k; q and the new k and
/// v are handed over, k and v stored.
template <class B> GROK_DEVICE void qkvPhase(B &block, RingReader<B> &ring) {
  using M = typename B::Model;
  using P = typename B::Plan;
  using Kv = KvElement<M, P>;
  constexpr uint32_t kHeadDim = M::kHeadDim;
  const float *gain = block.vectors(block.layer());
  Staged staged = kWholeRow<B> ? Staged::kStored : Staged::kNo;
  matvec(
      block, ring, P::kMatrixQkv, (M::kHidden + kTileK - 1) / kTileK,
      block.params.rows, staged, Phase::kQkv,
      [&](uint32_t k0, uint32_t count) { stageNormed(block, gain, k0, count); },
      [&](Output out, float value, float partner) {
        uint32_t matrixRow = out.tile * kTileRows + out.r;
        uint32_t head = matrixRow / kHeadDim, r = matrixRow % kHeadDim,
                 b = out.row;
        if (!out.mine || !block.rowActive(b) ||
            head >= M::kHeads + 2 * M::kKvHeads)
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
        Kv::store(kvBlockAddress(block, block.layer(), b,
                                 position / kKvPositions, kind, kvHead) +
                      (position % kKvPositions * kHeadDim + dim) * Kv::kBytes,
                  value);
      });
}

/// Whether scores are so bounded by the soft-cap that e^score neither overflows
/// nor loses precision: no maximum is needed then, and blocks just add up.
template <class M>
inline constexpr bool
    kBoundedScores = M::kAttentionCap > 0 &&
                     M::kAttentionCap *(M::kTemperatureLength > 0 ? 2 : 1) <=
                         60;

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

/// log(position) / log(length) beyond `length` positions, which sharpens the
/// attention of long contexts; 1 below or when off.
template <class M> GROK_DEVICE float attentionTemperature(uint32_t position) {
  if (M::kTemperatureLength > 0 && position > M::kTemperatureLength)
    return ptx::log2Approx(float(position)) /
           ptx::log2Approx(float(M::kTemperatureLength));
  return 1;
}

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
  const uint32_t p = block.tid / 8, part = block.tid % 8;
  const bool there = p < cached;
  // A few heads at a time: their sums fit the registers.
  constexpr uint32_t kMostHeads = B::Plan::kSm >= 90 ? 4 : 2;
  constexpr uint32_t kHeads = kGroup < kMostHeads ? kGroup : kMostHeads;
#pragma unroll 1
  for (uint32_t g0 = 0; g0 < kGroup; g0 += kHeads) {
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
    ptx::storeSharedPair(to, out[g][0], out[g][1]);
    if (d == 0)
      scratch.sums[part * kGroup + g] = sum[g];
  }
}

/// One task: the partial attention of every query head of a kv head over one
/// block of positions, `cached` of which come through the ring, keys first.
template <class B>
GROK_DEVICE void attentionTask(B &block, RingReader<B> &ring, uint32_t b,
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
  forEachWord(
      block, (2 + kGroup) * kHeadDim, Phase::kAttention,
      [&](uint32_t i) {
        if (i >= 2 * kHeadDim)
          return Word{query + (i - 2 * kHeadDim), true};
        return Word{i < kHeadDim ? key + i : value + (i - kHeadDim), newest};
      },
      [&](uint32_t i, uint32_t payload) {
        uint32_t d = i % kHeadDim;
        if (i >= 2 * kHeadDim)
          i += queryPlace<B>(d) - d;
        scratch.newKey[i] = __builtin_bit_cast(float, payload);
      });
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
  constexpr uint64_t kHeadWords =
      uint64_t(B::kShape.kvBlocks()) * (kHeadDim + 2);
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
  }
}

template <class B>
GROK_DEVICE void attentionPhase(B &block, RingReader<B> &ring) {
  forEachAttentionTask(
      block, [&](uint32_t b) { return block.rowActive(b); },
      [&](uint32_t b) { return block.position(b); },
      [&](uint32_t b, uint32_t kvHead, uint32_t kvBlock, uint32_t cached) {
        attentionTask(block, ring, b, kvHead, kvBlock, cached);
      });
}

/// A softmax-weighted sum that is not divided yet: weights are e^(score - top).
struct PartialAttention {
  float top, sum, out;
  template <class M> GROK_DEVICE void add(const PartialAttention &other) {
    if constexpr (kBoundedScores<M>) {
      sum += other.sum;
      out += other.out;
    } else {
      float newTop = other.top > top ? other.top : top;
      float keep = exp(top - newTop), scale = exp(other.top - newTop);
      sum = ptx::fma(sum, keep, other.sum * scale);
      out = ptx::fma(out, keep, other.out * scale);
      top = newTop;
    }
  }
};

/// Merges the blocks' partial outputs of one row and query head. Thread (part,
/// d) takes blocks part, part + parts, ...; parts are added in order.
template <class B>
GROK_DEVICE void mergeTask(B &block, uint32_t b, uint32_t head) {
  using M = typename B::Model;
  constexpr uint32_t kHeadDim = M::kHeadDim, kParts = kConsumers / kHeadDim,
                     kTogether = 2;
  PartialAttention *parts = (PartialAttention *)block.scratch(); // [part][dh]
  const uint32_t d = block.tid % kHeadDim, part = block.tid / kHeadDim;
  const uint32_t blocks = block.position(b) / kKvPositions + 1;
  PartialAttention mine{kNegativeInfinity, 0, 0};
  for (uint32_t first = 0; first < blocks; first += kParts * kTogether) {
    // Words of the j-th block that the thread takes: sum, output, maximum.
    constexpr uint32_t kWords = kBoundedScores<M> ? 2 : 3;
    uint32_t payload[kTogether * kWords];
    awaitMany(block, block.tid, Phase::kMerge, payload, [&](uint32_t i) {
      uint32_t j = i / kConsumers;
      uint32_t kvBlock = first + j / kWords * kParts + part;
      const uint64_t *words = partialWords(block, b, head, kvBlock);
      return Word{j % kWords == 0   ? words
                  : j % kWords == 1 ? words + 2 + d
                                    : words + 1,
                  part < kParts && kvBlock < blocks};
    });
#pragma unroll
    for (uint32_t j = 0; j < kTogether; ++j)
      if (first + j * kParts + part < blocks)
        mine.template add<M>(
            {__builtin_bit_cast(float, payload[j * kWords + kWords - 1]),
             __builtin_bit_cast(float, payload[j * kWords]),
             __builtin_bit_cast(float, payload[j * kWords + 1])});
  }
  block.sync(); // the scratch of what came before has been read
  trace(block, Phase::kMerge, TracePoint::kReady);
  if (part < kParts)
    parts[part * kHeadDim + d] = mine;
  block.sync();
  PartialAttention all = parts[d];
#pragma unroll 1 // unrolled, the parts of small heads would spill
  for (uint32_t i = 1; i < kParts && i < blocks; ++i)
    all.template add<M>(parts[i * kHeadDim + d]);
  float out = all.out / all.sum, partner = ptx::shuffleXor(out, 1);
  if (part == 0)
    OperandWord<B>::publish(block, attnWords(block, b), head * kHeadDim + d,
                            out, partner);
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
  Staged staged = Staged::kNo;
  matvec(
      block, ring, P::kMatrixAttnOut, (B::kAttnWidth + kTileK - 1) / kTileK,
      block.params.rows, staged, Phase::kAttnOut,
      [&](uint32_t k0, uint32_t count) {
        stageWords<B::kAttnWidth>(
            block, k0, count, Phase::kAttnOut, [&](uint32_t b) {
              return Word{attnWords(block, b), block.rowActive(b)};
            });
        trace(block, Phase::kAttnOut, TracePoint::kReady);
      },
      [&](Output out, float value, float) {
        uint32_t row = out.tile * kTileRows + out.r;
        if (out.mine && block.rowActive(out.row) && row < M::kHidden)
          publish(y + out.row * M::kHidden + row, value, block.epoch());
      });
}

} // namespace grok::device
