// What the phases of attention share: hand-over words, and the scores' bounds.
#pragma once

#include "codegen/Device/kv_cache.h"
#include "codegen/Device/residual.h"

namespace grok::device {

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
/// Words of one query head in all blocks.
template <class B> GROK_DEVICE constexpr uint64_t partialHeadWords() {
  return uint64_t(B::kShape.kvBlocks()) * (B::Model::kHeadDim + 2);
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
         index * partialHeadWords<B>() + kvBlock * (B::Model::kHeadDim + 2);
}
/// Whether scores are so bounded by the soft-cap that e^score neither overflows
/// nor loses precision: no maximum is needed then, and blocks just add up.
template <class M>
inline constexpr bool
    kBoundedScores = M::kAttentionCap > 0 &&
                     M::kAttentionCap *(M::kTemperatureLength > 0 ? 2 : 1) <=
                         60;

/// log(position) / log(length) beyond `length` positions, which sharpens the
/// attention of long contexts; 1 below or when off.
template <class M> GROK_DEVICE float attentionTemperature(uint32_t position) {
  if (M::kTemperatureLength > 0 && position > M::kTemperatureLength)
    return ptx::log2Approx(float(position)) /
           ptx::log2Approx(float(M::kTemperatureLength));
  return 1;
}

} // namespace grok::device
