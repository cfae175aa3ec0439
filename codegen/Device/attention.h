// Grouped-query attention over the KV cache in the flash form, with fixed
// splits: a task is one row, one kv head and one block of 64 positions; its
// partial outputs are merged per query head in an order that depends on the
// position alone.
#pragma once

#include "codegen/Device/attention_fma.h"
#include "codegen/Device/attention_mma.h"

namespace grok::device {

template <class B> GROK_DEVICE uint64_t *attnWords(B &block, uint32_t row) {
  return block.template region<uint64_t>(Region::kAttn) +
         (block.parity() * B::Plan::kMaxBatch + row) *
             B::kShape.operandWords(B::kAttnWidth);
}

/// QKV projection of the normalised rows, RoPE on q and k; q and the new k and
/// v are handed over, k and v stored. The operand is there, or is made by
/// stageNormed.
template <class B>
GROK_DEVICE void qkvPhase(B &block, RingReader<B> &ring,
                          FirstTiles<B, B::Model::kHidden> &ahead) {
  using M = typename B::Model;
  using P = typename B::Plan;
  using Kv = KvElement<M, P>;
  constexpr uint32_t kHeadDim = M::kHeadDim;
  const float *gain = block.vectors(block.layer());
  bool staged = kWholeRow<B>;
  matvec(
      block, ring, P::kMatrixQkv, staged, Phase::kQkv, ahead,
      [&](uint32_t first) { stageNormed(block, gain, first); },
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
              block.rope() + (b * (kHeadDim / 2) + j) * 2;
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
        uint32_t p = position % kKvPositions;
        Kv::store(kvBlockAddress(block, block.layer(), b,
                                 position / kKvPositions, kind, kvHead) +
                      (kind == 0 ? KvLayout<B>::key(p, dim)
                                 : KvLayout<B>::value(p, dim)),
                  value);
      });
}

template <class B>
GROK_DEVICE void attentionPhase(B &block, RingReader<B> &ring) {
  forEachAttentionTask(
      block, [&](uint32_t b) { return block.rowActive(b); },
      [&](uint32_t b) { return block.position(b); },
      [&](uint32_t b, uint32_t kvHead, uint32_t kvBlock, uint32_t cached) {
        if constexpr (kTensorAttention<B>)
          tensorAttentionTask(block, ring, b, kvHead, kvBlock, cached);
        else
          fmaAttentionTask(block, ring, b, kvHead, kvBlock, cached);
        block.sumsIn = 2; // the task used the scratch
      });
}

/// Softmax-weighted sums of two dimensions that are not divided yet: weights
/// are e^(score - top).
struct PartialAttention {
  float top, sum, x, y;
  template <class M> GROK_DEVICE void add(const PartialAttention &other) {
    float keep = 1, scale = 1;
    if constexpr (!kBoundedScores<M>) {
      float newTop = other.top > top ? other.top : top;
      keep = exp(top - newTop);
      scale = exp(other.top - newTop);
      top = newTop;
    }
    sum = ptx::fma(sum, keep, other.sum * scale);
    x = ptx::fma(x, keep, other.x * scale);
    y = ptx::fma(y, keep, other.y * scale);
  }
};

/// Merges the blocks' partial outputs of one row and query head. Thread (part,
/// pair of dimensions) takes blocks part, part + parts, ...; parts are added in
/// order.
template <class B>
GROK_DEVICE void mergeTask(B &block, uint32_t b, uint32_t head) {
  using M = typename B::Model;
  constexpr uint32_t kPairs = M::kHeadDim / 2, kFit = kConsumers / kPairs,
                     kParts = kFit < 8 ? kFit : 8, kTogether = 2;
  PartialAttention *parts = (PartialAttention *)block.scratch(); // [part][pair]
  const uint32_t pair = block.tid % kPairs, part = block.tid / kPairs;
  const uint32_t blocks = block.position(b) / kKvPositions + 1;
  block.sync(); // the scratch of what came before has been read
  block.sumsIn = 2;
  PartialAttention mine{kNegativeInfinity, 0, 0, 0};
#pragma unroll 1
  for (uint32_t first = 0; first < blocks; first += kParts * kTogether) {
    auto blockOf = [&](uint32_t j) { return first + j * kParts + part; };
    // Of the j-th block that the thread takes: {sum, top}, {x, y}.
    uint64_t word[kTogether * 2][2];
    awaitPairs<FullWord>(block, Phase::kMerge, word, [&](uint32_t i) {
      return Words{partialWords(block, b, head, blockOf(i / 2)) +
                       (i % 2 ? 2 + pair * 2 : 0),
                   part < kParts && blockOf(i / 2) < blocks};
    });
#pragma unroll
    for (uint32_t j = 0; j < kTogether; ++j)
      if (blockOf(j) < blocks)
        mine.template add<M>({wordValue(word[j * 2][1]),
                              wordValue(word[j * 2][0]),
                              wordValue(word[j * 2 + 1][0]),
                              wordValue(word[j * 2 + 1][1])});
  }
  trace(block, Phase::kMerge, TracePoint::kReady);
  if (part < kParts)
    parts[part * kPairs + pair] = mine;
  block.sync();
  if (part > 0)
    return;
  PartialAttention all = mine;
#pragma unroll 1
  for (uint32_t i = 1; i < kParts && i < blocks; ++i)
    all.template add<M>(parts[i * kPairs + pair]);
  float scale = ptx::reciprocalApprox(all.sum);
  OperandWord<B>::publishPair(block, attnWords(block, b),
                              head * M::kHeadDim + pair * 2, all.x * scale,
                              all.y * scale);
}

template <class B> GROK_DEVICE void mergePhase(B &block) {
  constexpr uint32_t kHeads = B::Model::kHeads;
  uint32_t next = block.slot(), base = 0;
  for (uint32_t b = 0; b < block.rows(); ++b) {
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
  using Out = OutputWord<B>;
  uint64_t *y = block.template region<uint64_t>(Region::kYAttn) +
                block.parity() * P::kMaxBatch * Out::kRowWords;
  bool staged = false;
  FirstTiles<B, B::kAttnWidth> ahead;
  ahead.take(block, ring, P::kMatrixAttnOut, Phase::kAttnOut);
  matvec(
      block, ring, P::kMatrixAttnOut, staged, Phase::kAttnOut, ahead,
      [&](uint32_t first) {
        stageWords<B::kAttnWidth>(
            block, first, Phase::kAttnOut, [&](uint32_t b) {
              return Words{attnWords(block, b), block.rowActive(b)};
            });
        trace(block, Phase::kAttnOut, TracePoint::kReady);
      },
      [&](Output out, float value, float partner) {
        uint32_t row = out.tile * kTileRows + out.r;
        if (out.mine && block.rowActive(out.row) && row < M::kHidden)
          Out::publish(block, y + out.row * Out::kRowWords, row, value,
                       partner);
      });
}

} // namespace grok::device
