// The residual stream h, float32. Every slot keeps all of it: thread t of the block owns elements t, t + 512, ... of every
// row, so that no synchronisation is needed, and adds each sub-block's normalised output as it arrives.
#pragma once

#include "codegen/Device/handover.h"
#include "codegen/Device/matvec.h"

namespace grok::device {

template <class B> GROK_DEVICE float *residualRow(B &block, uint32_t b) {
  if constexpr (residualInShared(B::kShape))
    return (float *)(block.shared() + B::kShared.residual) + b * B::Model::kHidden;
  return block.template region<float>(Region::kResidual) +
         (uint64_t(block.slot) * B::Plan::kMaxBatch + b) * B::Model::kHidden;
}

/// 1 / sqrt(mean + eps) from a row's sum of squares.
template <class B> GROK_DEVICE float normFactor(float squares) {
  return 1.0f / ptx::sqrtRn(squares / float(B::Model::kHidden) + B::Model::kNormEps);
}

/// h = multiplier * Emb[token] for every active row. The token's row was located in control() by locateEmbedding.
template <class B> GROK_DEVICE void embed(B &block) {
  using M = typename B::Model;
  using P = typename B::Plan;
  constexpr uint32_t kSteps = (M::kHidden + kTileK - 1) / kTileK;
  auto &control = block.control();
  for (uint32_t b = 0; b < block.params.rows; ++b) {
    if (!block.rowActive(b))
      continue;
    const uint16_t *row = (const uint16_t *)(block.params.weights + control.embeddingRow[b]);
    float *h = residualRow(block, b), squares = 0;
    for (uint32_t i = block.tid; i < M::kHidden; i += kConsumers) {
      uint64_t at = i;
      if constexpr (M::kTiedHead)
        at = fragmentIndex(control.embeddingTile[b], i / kTileK, control.embeddingTiles[b], kSteps, P::kBlockSteps) *
                 (kFragmentBytes / 2) +
             fragmentElement(uint32_t(control.token[b]) % kTileRows, i % kTileK);
      float x = M::kEmbeddingMultiplier * from16<M::kBF16>(row[at]);
      h[i] = x;
      squares = ptx::fma(x, x, squares);
    }
    addToRowSum(block, b, squares);
  }
  finishRowSums(block, [&](uint32_t b, float squares) { control.normFactor[b] = normFactor<B>(squares); });
}

/// h += RMSNorm(y; gain) for every row whose bit is set in `rows`; y arrives as words [row][D]. Leaves the factor of the
/// norm that reads h next in control(). What does not depend on y is loaded before waiting for it.
template <class B>
GROK_DEVICE void addNormed(B &block, const uint64_t *y, const float *gain, uint32_t rows, Phase phase) {
  constexpr uint32_t kHidden = B::Model::kHidden;
  // A thread's elements of a row. Few enough, and they stay in registers from one pass over y to the next.
  constexpr uint32_t kPerThread = (kHidden + kConsumers - 1) / kConsumers;
  constexpr bool kKeep = kPerThread <= 4;
  const bool keep = kKeep && block.params.rows == 1;
  auto &control = block.control();
  float kept[kKeep ? kPerThread : 1], keptGain[kKeep ? kPerThread : 1];
  if (keep) {
#pragma unroll
    for (uint32_t j = 0; j < (kKeep ? kPerThread : 1); ++j) {
      uint32_t i = block.tid + j * kConsumers;
      keptGain[j] = i < kHidden ? gain[i] : 0;
    }
  }
  for (uint32_t b = 0; b < block.params.rows; ++b) {
    if (!(rows >> b & 1))
      continue;
    float squares = 0;
    if (keep) {
      awaitMany(block, y, block.tid, kHidden, phase, kept);
#pragma unroll
      for (uint32_t j = 0; j < (kKeep ? kPerThread : 1); ++j)
        squares = ptx::fma(kept[j], kept[j], squares);
    } else {
      forEachWord(block, y + b * kHidden, kHidden, phase, [&](uint32_t, float v) { squares = ptx::fma(v, v, squares); });
    }
    addToRowSum(block, b, squares);
  }
  finishRowSums(block, [&](uint32_t b, float squares) { control.outputFactor[b] = normFactor<B>(squares); });
  for (uint32_t b = 0; b < block.params.rows; ++b) {
    if (!(rows >> b & 1)) // h, and with it the factor, stay as they are
      continue;
    float *h = residualRow(block, b), squares = 0, factor = control.outputFactor[b];
    auto add = [&](uint32_t i, float v, float g) {
      float x = ptx::fma(v * factor, g, h[i]);
      h[i] = x;
      squares = ptx::fma(x, x, squares);
    };
    if (keep) {
#pragma unroll
      for (uint32_t j = 0; j < (kKeep ? kPerThread : 1); ++j)
        if (uint32_t i = block.tid + j * kConsumers; i < kHidden)
          add(i, kept[j], keptGain[j]);
    } else {
      for (uint32_t i = block.tid; i < kHidden; i += kConsumers)
        add(i, arrived(y + b * kHidden + i), gain[i]);
    }
    addToRowSum(block, b, squares);
  }
  finishRowSums(block, [&](uint32_t b, float squares) {
    if (rows >> b & 1)
      control.normFactor[b] = normFactor<B>(squares);
  });
}

/// Stores RMSNorm(h; gain) of elements [k0, k0 + count) as the operand, zero past the end. Each thread stores the
/// elements of h that it owns.
template <class B> GROK_DEVICE void stageNormed(B &block, const float *gain, uint32_t k0, uint32_t count) {
  constexpr uint32_t kHidden = B::Model::kHidden;
  Operand<B> operand = Operand<B>::of(block);
  for (uint32_t b = 0; b < block.params.rows; ++b) {
    if (!block.rowActive(b))
      continue;
    const float *h = residualRow(block, b);
    float factor = block.control().normFactor[b];
    for (uint32_t k = block.tid; k < count; k += kConsumers) {
      uint32_t i = k0 + k;
      operand.store(b, k, i < kHidden ? h[i] * factor * gain[i] : 0.0f);
    }
  }
}

} // namespace grok::device
