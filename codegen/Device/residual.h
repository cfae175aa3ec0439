// The residual stream h, float32. Every slot keeps all of it: thread t of the block owns elements t, t + 512, ... of every
// row, so that no synchronisation is needed, and adds each sub-block's normalised output as it arrives.
#pragma once

#include "codegen/Device/handover.h"
#include "codegen/Device/matvec.h"

namespace grok::device {

/// 1 / sqrt(mean(h^2) + eps) of every row: what RMSNorm multiplies by.
template <class B> struct NormFactor {
  float row[B::Plan::kMaxBatch];
};

template <class B> GROK_DEVICE float *residualRow(B &block, uint32_t b) {
  return block.template region<float>(Region::kResidual) +
         (uint64_t(block.slot) * B::Plan::kMaxBatch + b) * B::Model::kHidden;
}

/// Turns each row's sum of squares (this thread's part) into its norm factor.
template <class B> GROK_DEVICE NormFactor<B> normFactor(B &block, float (&squares)[B::Plan::kMaxBatch]) {
  blockSum(block, squares, block.params.rows);
  NormFactor<B> f;
#pragma unroll
  for (uint32_t b = 0; b < B::Plan::kMaxBatch; ++b)
    f.row[b] = 1.0f / ptx::sqrtRn(squares[b] / float(B::Model::kHidden) + B::Model::kNormEps);
  return f;
}

/// h = multiplier * Emb[token] for every active row. The token's row was located in control() by locateEmbedding.
template <class B> GROK_DEVICE NormFactor<B> embed(B &block) {
  using M = typename B::Model;
  using P = typename B::Plan;
  constexpr uint32_t kSteps = (M::kHidden + kTileK - 1) / kTileK;
  float squares[P::kMaxBatch] = {};
#pragma unroll
  for (uint32_t b = 0; b < P::kMaxBatch; ++b) {
    if (!block.rowActive(b))
      continue;
    const auto &control = block.control();
    const uint8_t *row = block.params.weights + control.embeddingRow[b];
    float *h = residualRow(block, b);
    for (uint32_t i = block.tid; i < M::kHidden; i += kConsumers) {
      uint64_t at = i;
      if constexpr (M::kTiedHead)
        at = fragmentIndex(control.embeddingTile[b], i / kTileK, control.embeddingTiles[b], kSteps, P::kBlockSteps) *
                 (kFragmentBytes / 2) +
             fragmentElement(uint32_t(control.token[b]) % kTileRows, i % kTileK);
      float x = M::kEmbeddingMultiplier * from16<M::kBF16>(((const uint16_t *)row)[at]);
      h[i] = x;
      squares[b] = ptx::fma(x, x, squares[b]);
    }
  }
  return normFactor(block, squares);
}

/// h += RMSNorm(y; gain) for every active row whose bit is set in `rows`; y arrives as words [row][D]. Returns the
/// factor of the norm that reads h next.
template <class B>
GROK_DEVICE NormFactor<B> addNormed(B &block, const uint64_t *y, const float *gain, uint32_t rows, Phase phase) {
  constexpr uint32_t kHidden = B::Model::kHidden, kMaxBatch = B::Plan::kMaxBatch;
  float squares[kMaxBatch] = {};
#pragma unroll
  for (uint32_t b = 0; b < kMaxBatch; ++b) {
    if (!(rows >> b & 1))
      continue;
    for (uint32_t i = block.tid; i < kHidden; i += kConsumers) {
      float v = await(block, y + b * kHidden + i, block.epoch(), phase);
      squares[b] = ptx::fma(v, v, squares[b]);
    }
  }
  NormFactor<B> factor = normFactor(block, squares);
#pragma unroll
  for (uint32_t b = 0; b < kMaxBatch; ++b) {
    squares[b] = 0;
    if (!block.rowActive(b))
      continue;
    float *h = residualRow(block, b);
    for (uint32_t i = block.tid; i < kHidden; i += kConsumers) {
      float x = h[i];
      if (rows >> b & 1) {
        x = ptx::fma(arrived(y + b * kHidden + i) * factor.row[b], gain[i], x);
        h[i] = x;
      }
      squares[b] = ptx::fma(x, x, squares[b]);
    }
  }
  return normFactor(block, squares);
}

/// Stores RMSNorm(h; gain) of elements [k0, k0 + count) as the operand, zero past the end. Each thread stores the
/// elements of h that it owns.
template <class B>
GROK_DEVICE void stageNormed(B &block, const NormFactor<B> &factor, const float *gain, uint32_t k0, uint32_t count) {
  constexpr uint32_t kHidden = B::Model::kHidden;
  Operand<B> operand = Operand<B>::of(block);
#pragma unroll
  for (uint32_t b = 0; b < B::Plan::kMaxBatch; ++b) {
    if (!block.rowActive(b))
      continue;
    const float *h = residualRow(block, b);
    for (uint32_t k = block.tid; k < count; k += kConsumers) {
      uint32_t i = k0 + k;
      operand.store(b, k, i < kHidden ? h[i] * factor.row[b] * gain[i] : 0.0f);
    }
  }
}

} // namespace grok::device
