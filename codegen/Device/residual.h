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
  return ptx::rsqrtApprox(
      ptx::fma(squares, 1.0f / float(B::Model::kHidden), B::Model::kNormEps));
}

/// Elements of h that a thread owns, of one row.
template <class B>
inline constexpr uint32_t kOwned =
    (B::Model::kHidden + kConsumers - 1) / kConsumers;

/// Whether a row of h is one K block: the operand is then staged by who updates
/// h.
template <class B>
inline constexpr bool kWholeRow =
    B::Model::kHidden <= B::Plan::kBlockSteps * kTileK;

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
    float sum[1] = {squares};
    addToSums(block, b, sum);
  }
  finishSums<1>(block, 0, block.params.rows,
                [&](uint32_t b, const float (&sum)[1]) {
                  control.normFactor[b] = normFactor<B>(sum[0]);
                });
}

/// What a sub-block's output y needs to become part of h, of one row: sums over
/// the elements, from which both the norm of y and the one of the new h follow,
/// so that one exchange between the warps serves both.
///   z = y * gain;  h' = h + f z with f = 1 / rms(y);
///   sum h'^2 = sum h^2 + 2 f sum h z + f^2 sum z^2
enum RowSum : uint32_t { kYY, kHH, kHZ, kZZ, kRowSums };

/// 1 / rms of a sub-block's output, and of the h that it becomes part of.
struct Factors {
  float output, next;
};

/// h += RMSNorm(y; gain) for the rows whose bit is set in `rows`, where y
/// arrives as words [row][D]; then the norm of the new h with `nextGain`
/// becomes the operand, or, if a row is longer than a K block, its factor goes
/// to control() for stageNormed. Of batch rows [first, first + kRows). Ends
/// without a barrier.
template <uint32_t kRows, class B>
GROK_DEVICE void addNormedRows(B &block, uint32_t first, const uint64_t *y,
                               const float *gain, const float *nextGain,
                               uint32_t rows, Phase phase) {
  constexpr uint32_t kHidden = B::Model::kHidden, kN = kOwned<B>;
  constexpr bool kKept = kN <= 4; // y and the gains fit the registers; the
                                  // gains are there before y is
  auto &control = block.control();
  auto load = [&](const float *p, uint32_t j) {
    uint32_t i = block.tid + j * kConsumers;
    return i < kHidden ? p[i] : 0.0f;
  };
  auto loadNow = [&](const float *p, uint32_t j) {
    uint32_t i = block.tid + j * kConsumers;
    return ptx::loadGlobalIf(i < kHidden, p + i);
  };
  float gains[kKept ? kN : 1], nextGains[kKept ? kN : 1];
  if constexpr (kKept)
#pragma unroll
    for (uint32_t j = 0; j < kN; ++j) {
      gains[j] = loadNow(gain, j);
      nextGains[j] = loadNow(nextGain, j);
    }
  auto word = [&](uint32_t b, uint32_t i) {
    return Word{y + b * kHidden + i,
                b < block.params.rows && rows >> b & 1 && i < kHidden};
  };
  auto addSums = [&](float (&sums)[kRowSums], float v, float g, float x) {
    float z = v * g;
    sums[kYY] = ptx::fma(v, v, sums[kYY]);
    sums[kHH] = ptx::fma(x, x, sums[kHH]);
    sums[kHZ] = ptx::fma(x, z, sums[kHZ]);
    sums[kZZ] = ptx::fma(z, z, sums[kZZ]);
  };
  auto active = [&](uint32_t b) {
    return b < block.params.rows && block.rowActive(b);
  };

  uint32_t payload[kKept ? kRows * kN : 1]; // [row][element]
  if constexpr (kKept)
    awaitMany(block, block.tid, phase, payload, [&](uint32_t i) {
      return word(first + i / kConsumers / kN,
                  i % kConsumers + i / kConsumers % kN * kConsumers);
    });
#pragma unroll
  for (uint32_t r = 0; r < kRows; ++r) {
    if (!active(first + r))
      continue;
    const float *h = residualRow(block, first + r);
    float sums[kRowSums] = {};
    if constexpr (kKept) {
#pragma unroll
      for (uint32_t j = 0; j < kN; ++j)
        addSums(sums, __builtin_bit_cast(float, payload[r * kN + j]), gains[j],
                load(h, j));
    } else {
      forEachWord(
          block, kHidden, phase, [&](uint32_t i) { return word(first + r, i); },
          [&](uint32_t i, uint32_t v) {
            addSums(sums, __builtin_bit_cast(float, v), gain[i], h[i]);
          });
      if (!(rows >> (first + r) & 1)) // no y
        for (uint32_t i = block.tid; i < kHidden; i += kConsumers)
          addSums(sums, 0, 0, h[i]);
    }
    addToSums(block, first + r, sums);
  }
  trace(block, phase, TracePoint::kReady, phase == Phase::kGateUp ? 0 : 1);
  auto factors = [&](uint32_t b, const float (&sum)[kRowSums]) {
    float f = rows >> b & 1 ? normFactor<B>(sum[kYY]) : 0.0f;
    float squares =
        ptx::fma(f * f, sum[kZZ], ptx::fma(2 * f, sum[kHZ], sum[kHH]));
    return Factors{f, normFactor<B>(squares > 0 ? squares : 0.0f)};
  };
  Factors own{};
  if constexpr (kRows == 1) { // every warp for itself: a barrier less
    block.sync();
    float sum[kRowSums];
    rowSums(block, first, sum);
    own = factors(first, sum);
    if constexpr (!kWholeRow<B> || !B::Model::kHashRouting) {
      if (block.tid == 0) // for stageNormed and the router
        control.normFactor[first] = own.next;
      block.sync();
    }
  } else {
    finishSums<kRowSums>(block, first, kRows,
                         [&](uint32_t b, const float (&sum)[kRowSums]) {
                           Factors f = factors(b, sum);
                           control.outputFactor[b] = f.output;
                           control.normFactor[b] = f.next;
                         });
  }

  Operand<B> operand = Operand<B>::of(block);
#pragma unroll
  for (uint32_t r = 0; r < kRows; ++r) {
    const uint32_t b = first + r;
    if (!active(b))
      continue;
    float *h = residualRow(block, b);
    const float f = kRows == 1 ? own.output : control.outputFactor[b],
                factor = kRows == 1 ? own.next : control.normFactor[b];
    auto update = [&](uint32_t i, float v, float g, float next) {
      float x = ptx::fma(f, v * g, h[i]);
      h[i] = x;
      if constexpr (kWholeRow<B>)
        operand.store(b, i, x * factor * next);
    };
    if constexpr (kKept) {
#pragma unroll
      for (uint32_t j = 0; j < kN; ++j)
        if (uint32_t i = block.tid + j * kConsumers; i < kHidden)
          update(i, __builtin_bit_cast(float, payload[r * kN + j]), gains[j],
                 nextGains[j]);
    } else {
      for (uint32_t i = block.tid; i < kHidden; i += kConsumers)
        update(i, word(b, i).there ? arrived(word(b, i).word) : 0.0f, gain[i],
               nextGain[i]);
    }
    if constexpr (kWholeRow<B> && kHidden % kTileK != 0)
      if (block.tid < kTileK - kHidden % kTileK)
        operand.store(b, kHidden + block.tid, 0);
  }
}

/// addNormedRows for the whole batch, a few rows at a time: their words are in
/// flight together. The arithmetic of a row does not depend on the batch.
template <class B>
GROK_DEVICE void addNormed(B &block, const uint64_t *y, const float *gain,
                           const float *nextGain, uint32_t rows, Phase phase) {
  constexpr uint32_t kRows = B::Plan::kMaxBatch < 2 ? 1 : 2;
  if (kRows == 1 || block.params.rows == 1)
    addNormedRows<1>(block, 0, y, gain, nextGain, rows, phase);
  else
#pragma unroll 1
    for (uint32_t first = 0; first < block.params.rows; first += kRows)
      addNormedRows<kRows>(block, first, y, gain, nextGain, rows, phase);
}

} // namespace grok::device
