// The residual stream h, float32. Every slot keeps all of it: thread t of the
// block owns elements t, t + 512, ... of every row, so that no synchronisation
// is needed, and adds each sub-block's normalised output as it arrives.
#pragma once

#include "codegen/Device/handover.h"
#include "codegen/Device/matvec.h"

namespace grok::device {

template <class B> GROK_DEVICE float *residualRow(B &block, uint32_t b) {
  if constexpr (residualInShared(B::kShape))
    return (float *)(block.shared() + B::kShared.residual) +
           b * B::Model::kHidden;
  return block.template region<float>(Region::kResidual) +
         (uint64_t(block.slot()) * B::Plan::kMaxBatch + b) * B::Model::kHidden;
}

/// 1 / sqrt(mean + eps) from a row's sum of squares.
template <class B> GROK_DEVICE float normFactor(float squares) {
  return 1.0f /
         ptx::sqrtRn(squares / float(B::Model::kHidden) + B::Model::kNormEps);
}

/// h = multiplier * Emb[token] for every active row. The token's row was
/// located in control() by locateEmbedding.
template <class B> GROK_DEVICE void embed(B &block) {
  using M = typename B::Model;
  using P = typename B::Plan;
  constexpr uint32_t kSteps = (M::kHidden + kTileK - 1) / kTileK;
  auto &control = block.control();
  for (uint32_t b = 0; b < block.params.rows; ++b) {
    if (!block.rowActive(b))
      continue;
    const uint16_t *row =
        (const uint16_t *)(block.params.weights + control.embeddingRow[b]);
    float *h = residualRow(block, b), squares = 0;
    for (uint32_t i = block.tid; i < M::kHidden; i += kConsumers) {
      uint64_t at = i;
      if constexpr (M::kTiedHead)
        at =
            fragmentIndex(control.embeddingTile[b], i / kTileK,
                          control.embeddingTiles[b], kSteps, P::kBlockSteps) *
                (kFragmentBytes / 2) +
            fragmentElement(uint32_t(control.token[b]) % kTileRows, i % kTileK);
      float x = M::kEmbeddingMultiplier * from16<M::kBF16>(row[at]);
      h[i] = x;
      squares = ptx::fma(x, x, squares);
    }
    addToRowSum(block, b, squares);
  }
  finishRowSums(block, [&](uint32_t b, float squares) {
    control.normFactor[b] = normFactor<B>(squares);
  });
}

/// Adds this thread's part of RMSNorm(y; gain) to h; returns the sum of the new
/// elements' squares.
GROK_DEVICE float addElement(float *h, float y, float factor, float gain,
                             float squares) {
  float x = ptx::fma(y * factor, gain, *h);
  *h = x;
  return ptx::fma(x, x, squares);
}

/// addNormed for a batch of one row whose elements fit a few registers a
/// thread: y is read once, and the gains are loaded before waiting for it.
template <class B>
GROK_DEVICE void addNormedSingle(B &block, const uint64_t *y, const float *gain,
                                 Phase phase) {
  constexpr uint32_t kHidden = B::Model::kHidden;
  constexpr uint32_t kPerThread = (kHidden + kConsumers - 1) / kConsumers;
  auto &control = block.control();
  float value[kPerThread], gains[kPerThread], squares = 0;
#pragma unroll
  for (uint32_t j = 0; j < kPerThread; ++j) {
    uint32_t i = block.tid + j * kConsumers;
    gains[j] = i < kHidden ? gain[i] : 0;
  }
  awaitMany(block, y, block.tid, kHidden, phase, value);
#pragma unroll
  for (uint32_t j = 0; j < kPerThread; ++j)
    squares = ptx::fma(value[j], value[j], squares);
  addToRowSum(block, 0, squares);
  finishRowSums(block, [&](uint32_t b, float sum) {
    control.outputFactor[b] = normFactor<B>(sum);
  });
  float *h = residualRow(block, 0), factor = control.outputFactor[0];
  squares = 0;
#pragma unroll
  for (uint32_t j = 0; j < kPerThread; ++j)
    if (uint32_t i = block.tid + j * kConsumers; i < kHidden)
      squares = addElement(h + i, value[j], factor, gains[j], squares);
  addToRowSum(block, 0, squares);
  finishRowSums(block, [&](uint32_t b, float sum) {
    control.normFactor[b] = normFactor<B>(sum);
  });
}

/// h += RMSNorm(y; gain) for every row whose bit is set in `rows`; y arrives as
/// words [row][D]. Leaves the factor of the norm that reads h next in
/// control().
template <class B>
GROK_DEVICE void addNormed(B &block, const uint64_t *y, const float *gain,
                           uint32_t rows, Phase phase) {
  constexpr uint32_t kHidden = B::Model::kHidden;
  // sm_80 has no registers for it.
  constexpr bool kSingle = kHidden <= 4 * kConsumers && B::Plan::kSm >= 90;
  if (kSingle && block.params.rows == 1) {
    if (rows)
      addNormedSingle(block, y, gain, phase);
    return;
  }
  auto &control = block.control();
  for (uint32_t b = 0; b < block.params.rows; ++b) {
    if (!(rows >> b & 1))
      continue;
    float squares = 0;
    forEachWord(block, y + b * kHidden, kHidden, phase,
                [&](uint32_t, float v) { squares = ptx::fma(v, v, squares); });
    addToRowSum(block, b, squares);
  }
  finishRowSums(block, [&](uint32_t b, float sum) {
    control.outputFactor[b] = normFactor<B>(sum);
  });
  for (uint32_t b = 0; b < block.params.rows; ++b) {
    if (!(rows >> b & 1)) // h, and with it the factor, stay as they are
      continue;
    float *h = residualRow(block, b), squares = 0;
    float factor = control.outputFactor[b];
    for (uint32_t i = block.tid; i < kHidden; i += kConsumers)
      squares = addElement(h + i, arrived(y + b * kHidden + i), factor, gain[i],
                           squares);
    addToRowSum(block, b, squares);
  }
  finishRowSums(block, [&](uint32_t b, float sum) {
    if (rows >> b & 1)
      control.normFactor[b] = normFactor<B>(sum);
  });
}

/// Stores RMSNorm(h; gain) of elements [k0, k0 + count) as the operand, zero
/// past the end. Each thread stores the elements of h that it owns.
template <class B>
GROK_DEVICE void stageNormed(B &block, const float *gain, uint32_t k0,
                             uint32_t count) {
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
