// Fills a blob with synthetic weights where it will run: the same values, at
// the same bytes, as the packer writes.
#pragma once

#include "codegen/Device/block.h"
#include "runtime/bundle/Quantized.h"
#include "runtime/bundle/Synthetic.h"

namespace grok::device {

/// sqrt(3 / fanIn): what makes uniform elements of [-1, 1) have variance 1 /
/// fanIn.
GROK_DEVICE float fanInScale(uint32_t fanIn) {
  return ptx::sqrtRn(3.0f / float(fanIn));
}

/// A matrix in one layer.
struct FillMatrix {
  MatrixKind kind;
  uint32_t expert, layer, rows, k;
};

/// What synthetic elements of a row of a matrix are made of.
struct FillRow {
  uint64_t key, first; // index of the row's first element in the tensor
  float scale;
  bool there; // the matrix has the row
  GROK_DEVICE float element(uint32_t column) const {
    return synthetic::matrixElement(key, first + column, scale);
  }
};
template <class M>
GROK_DEVICE FillRow fillRow(uint64_t seed, const FillMatrix &m, uint32_t row) {
  TensorRow from = matrixRow(M::kHeads, M::kKvHeads, M::kHeadDim, m.kind, row);
  if (M::kTiedHead && from.tensor == TensorKind::kHead)
    from.tensor = TensorKind::kTokenEmbedding;
  return {synthetic::tensorKey(seed, uint32_t(from.tensor), m.layer, m.expert),
          uint64_t(from.row) * m.k, fanInScale(m.k), row < m.rows};
}

/// Fills one slot's extent of one matrix in one layer with 16-bit elements;
/// warps take fragments in turn.
template <class M, class P>
GROK_DEVICE void fillHalves(const abi::FillParams &p, const abi::Extent &extent,
                            const FillMatrix &m) {
  uint32_t steps = (m.k + kTileK - 1) / kTileK, lane = ptx::tid() % 32;
  for (uint32_t f = ptx::tid() / 32; f < extent.tileCount * steps;
       f += ptx::ntid() / 32) {
    FragmentPlace place =
        fragmentPlace(f, extent.tileCount, steps, P::kBlockSteps);
    FillRow row = fillRow<M>(
        p.seed, m, (extent.tileBegin + place.tile) * kTileRows + lane / 4);
    uint16_t *out =
        (uint16_t *)(p.weights + extent.offset + m.layer * extent.layerStride +
                     uint64_t(f) * kFragmentBytes) +
        lane * 8;
#pragma unroll
    for (uint32_t e = 0; e < 8; ++e) {
      uint32_t column = place.step * kTileK + fragmentK(lane % 4 * 8 + e);
      out[e] = to16<M::kBF16>(row.there && column < m.k ? row.element(column)
                                                        : 0.0f);
    }
  }
}

/// The largest magnitude of a row's inputs [first, first + count), by the four
/// lanes that have the row.
GROK_DEVICE float largestMagnitude(const FillRow &row, uint32_t first,
                                   uint32_t count) {
  float most = 0;
  for (uint32_t i = ptx::tid() % 4; i < count; i += 4) {
    float v = __builtin_fabsf(row.element(first + i));
    most = v > most ? v : most;
  }
#pragma unroll
  for (uint32_t bit = 2; bit; bit >>= 1) {
    float other = ptx::shuffleXor(most, bit);
    most = other > most ? other : most;
  }
  return most;
}

/// The same with codes of 8 bits, as the packer quantises; warps take the
/// blocks of inputs of tiles in turn.
template <class M, class P>
GROK_DEVICE void fillCodes(const abi::FillParams &p, const abi::Extent &extent,
                           const FillMatrix &m) {
  constexpr Quantization kCodes = Quantization(P::kQuantization);
  const uint32_t steps = (m.k + kTileK - 1) / kTileK,
                 blocks = hasScaleBlocks(m.k) ? kScaleBlocks : 1,
                 lane = ptx::tid() % 32, r = lane / 4;
  uint8_t *base = p.weights + extent.offset + m.layer * extent.layerStride;
  for (uint32_t job = ptx::tid() / 32; job < extent.tileCount * blocks;
       job += ptx::ntid() / 32) {
    const uint32_t tile = job / blocks, block = job % blocks;
    FillRow row =
        fillRow<M>(p.seed, m, (extent.tileBegin + tile) * kTileRows + r);
    const uint16_t scale = quantizationScale(
        kCodes, largestMagnitude(row, block * (m.k / blocks), m.k / blocks));
    const float inverse = 1.0f / scaleToFloat(scale);
    uint16_t *scales = (uint16_t *)(base + scaleOffset(kCodes, tile, steps)) +
                       r * kScaleBlocks;
    for (uint32_t i = lane % 4; i < kScaleBlocks; i += 4)
      if (blocks == 1 || i == block)
        scales[i] = row.there ? scale : 0;
    for (uint32_t step = block; step < steps; step += blocks) {
      // Whole words: an assembler was seen to convert, not to copy, the low
      // byte of a register that holds a float.
      auto *out = (uint64_t *)(base + fragmentOffset(kCodes, tile, step,
                                                     extent.tileCount, steps,
                                                     P::kBlockSteps)) +
                  lane;
      uint64_t codes = 0;
#pragma unroll
      for (uint32_t e = 0; e < 8; ++e) {
        uint32_t column = streamedInput(
            kCodes, m.k, step * kTileK + quantizedK(lane % 4 * 8 + e));
        if (row.there && column < m.k)
          codes |= uint64_t(floatToCode(kCodes, row.element(column) * inverse))
                   << 8 * e;
      }
      *out = codes;
    }
  }
}

/// Norm gains and router rows of one layer (layer == L: the final norm).
template <class M, class P>
GROK_DEVICE void fillVectors(const abi::FillParams &p, uint32_t layer) {
  constexpr TensorKind kNorms[4] = {
      TensorKind::kPreAttnNorm, TensorKind::kPostAttnNorm,
      TensorKind::kPreMoeNorm, TensorKind::kPostMoeNorm};
  float *out = (float *)(p.weights + P::kVectorsOffset +
                         uint64_t(layer) * P::kVectorsLayerBytes);
  bool final = layer == M::kLayers;
  for (uint32_t n = 0; n < (final ? 1 : 4); ++n) {
    uint64_t key = synthetic::tensorKey(
        p.seed, uint32_t(final ? TensorKind::kFinalNorm : kNorms[n]),
        final ? 0 : layer, 0);
    for (uint32_t i = ptx::tid(); i < M::kHidden; i += ptx::ntid())
      out[n * M::kHidden + i] = synthetic::normElement(key, i);
  }
  if (M::kHashRouting || final)
    return;
  uint64_t key =
      synthetic::tensorKey(p.seed, uint32_t(TensorKind::kRouter), layer, 0);
  float scale = fanInScale(M::kHidden);
  for (uint32_t i = ptx::tid(); i < M::kExperts * M::kHidden; i += ptx::ntid())
    out[4 * M::kHidden + i] = synthetic::matrixElement(key, i, scale);
}

/// One slot's rows of an untied embedding table.
template <class M, class P>
GROK_DEVICE void fillEmbedding(const abi::FillParams &p, uint32_t slot) {
  const abi::Extent &head =
      p.extents[uint64_t(P::kMatrixHead) * P::kSlots + slot];
  uint64_t key =
      synthetic::tensorKey(p.seed, uint32_t(TensorKind::kTokenEmbedding), 0, 0);
  uint64_t first = uint64_t(head.tileBegin) * kTileRows * M::kHidden;
  uint32_t end = (head.tileBegin + head.tileCount) * kTileRows;
  uint64_t count =
      uint64_t(end < M::kVocab ? end : M::kVocab) * M::kHidden - first;
  float scale = fanInScale(M::kHidden);
  uint16_t *out = (uint16_t *)(p.weights + p.embedding[slot]);
  if (head.tileCount > 0)
    for (uint64_t i = ptx::tid(); i < count; i += ptx::ntid())
      out[i] = to16<M::kBF16>(synthetic::matrixElement(key, first + i, scale));
}

/// Blocks take (layer, slot) pairs in turn; layer L stands for the head, the
/// final norm and the embedding.
template <class M, class P> GROK_DEVICE void fill(const abi::FillParams &p) {
  auto matrix = [&](short index, uint32_t slot, MatrixKind kind,
                    uint32_t expert, uint32_t layer, uint32_t rows,
                    uint32_t k) {
    if (index < 0)
      return;
    const abi::Extent &extent =
        p.extents[uint64_t(uint32_t(index)) * P::kSlots + slot];
    const FillMatrix m{kind, expert, layer, rows, k};
    if constexpr (Quantization(P::kQuantization) == Quantization::kNone)
      fillHalves<M, P>(p, extent, m);
    else
      fillCodes<M, P>(p, extent, m);
  };
  constexpr uint32_t kHidden = M::kHidden, kAttn = M::kHeads * M::kHeadDim;
  for (uint32_t job = ptx::ctaid(); job < (M::kLayers + 1) * P::kSlots;
       job += ptx::nctaid()) {
    uint32_t layer = job / P::kSlots, slot = job % P::kSlots;
    if (slot == 0)
      fillVectors<M, P>(p, layer);
    if (layer == M::kLayers) {
      matrix(P::kMatrixHead, slot, MatrixKind::kHead, 0, 0, M::kVocab, kHidden);
      if constexpr (!M::kTiedHead)
        fillEmbedding<M, P>(p, slot);
      continue;
    }
    matrix(P::kMatrixQkv, slot, MatrixKind::kQkv, 0, layer,
           (M::kHeads + 2 * M::kKvHeads) * M::kHeadDim, kHidden);
    matrix(P::kMatrixAttnOut, slot, MatrixKind::kAttnOut, 0, layer, kHidden,
           kAttn);
    for (uint32_t e = 0; e < M::kExperts; ++e) {
      matrix(P::kGateUp[e], slot, MatrixKind::kGateUp, e, layer,
             2 * M::kExpertWidth, kHidden);
      matrix(P::kDown[e], slot, MatrixKind::kDown, e, layer, kHidden,
             M::kExpertWidth);
    }
    if constexpr (M::kDenseWidth > 0) {
      matrix(P::kMatrixDenseGateUp, slot, MatrixKind::kDenseGateUp, 0, layer,
             2 * M::kDenseWidth, kHidden);
      matrix(P::kMatrixDenseDown, slot, MatrixKind::kDenseDown, 0, layer,
             kHidden, M::kDenseWidth);
    }
  }
}

} // namespace grok::device
