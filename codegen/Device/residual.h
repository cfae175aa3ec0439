// The residual stream h, float32. Every slot keeps all of it; a thread owns the
// same elements of every row as of the operand, so that no synchronisation is
// needed, and adds each sub-block's normalised output as it arrives.
#pragma once

#include "codegen/Device/matvec.h"

namespace grok::device {

template <class B> GROK_DEVICE float *residualRow(B &block, uint32_t b) {
  if constexpr (residualInShared(B::kShape))
    return (float *)(block.shared() + B::kShared.residual) +
           b * B::Model::kHidden;
  return block.template region<float>(Region::kResidual) +
         (uint64_t(block.slot()) * B::Plan::kMaxBatch + b) * B::Model::kHidden;
}

/// A thread's share of a vector [D]: pairs of neighbouring elements.
template <class B> struct Owned {
  using Own = OwnSteps<2>;
  static constexpr uint32_t kHidden = B::Model::kHidden,
                            kSteps = (kHidden + kTileK - 1) / kTileK;
  static constexpr uint32_t kPairs = Own::rounds(kSteps);
  /// Every thread has all its pairs.
  static constexpr bool kWhole = kHidden == kPairs * 2 * kConsumers;
  /// The vector has an odd element.
  static constexpr bool kOdd = kHidden % 2;

  static GROK_DEVICE uint32_t element(B &block, uint32_t pair) {
    return Own::element(block, pair);
  }
  static GROK_DEVICE bool has(uint32_t element) {
    return kWhole || element < kHidden;
  }
  static GROK_DEVICE bool hasBoth(uint32_t element) {
    return !kOdd || element + 1 < kHidden;
  }
  /// Elements [i, i + 1] of a vector in memory, zero past the end.
  struct Pair {
    float x, y;
  };
  static GROK_DEVICE Pair load(const float *p, uint32_t i) {
    if (!has(i))
      return {0, 0};
    if constexpr (!kOdd) {
      ptx::F2 v = *(const ptx::F2 *)(p + i);
      return {v.x, v.y};
    }
    return {p[i], hasBoth(i) ? p[i + 1] : 0};
  }
  /// The same of device memory, asked for where it stands.
  static GROK_DEVICE Pair loadNow(const float *p, uint32_t i) {
    if constexpr (kOdd)
      return load(p, i);
    ptx::F2 v = ptx::loadGlobalPairIf(has(i), p + i);
    return {v.x, v.y};
  }
  static GROK_DEVICE void store(float *p, uint32_t i, Pair v) {
    if (!has(i))
      return;
    if constexpr (!kOdd) {
      *(ptx::F2 *)(p + i) = {v.x, v.y};
      return;
    }
    p[i] = v.x;
    if (hasBoth(i))
      p[i + 1] = v.y;
  }
};

/// 1 / sqrt(mean + eps) from a row's sum of squares.
template <class B> GROK_DEVICE float normFactor(float squares) {
  return ptx::rsqrtApprox(
      ptx::fma(squares, 1.0f / float(B::Model::kHidden), B::Model::kNormEps));
}

/// Whether a row of h is one K block: the operand is then staged by who updates
/// h.
template <class B>
inline constexpr bool kWholeRow =
    B::Model::kHidden <= B::Plan::kBlockSteps * kTileK;

/// Stores RMSNorm(h; gain) of the K block that begins with step `first` as the
/// operand, zero past the end: each thread the elements of h that it owns.
template <class B>
GROK_DEVICE void stageNormed(B &block, const float *gain, uint32_t first) {
  using O = Owned<B>;
  Operand<B> operand = Operand<B>::of(block);
  const uint32_t steps = KBlocks<B, O::kHidden>::steps(first);
  for (uint32_t b = 0; b < block.rows(); ++b) {
    if (!block.rowActive(b))
      continue;
    const float *h = residualRow(block, b);
    float factor = block.normFactor(b);
    for (uint32_t pair = 0; O::Own::step(block, pair) < steps; ++pair) {
      uint32_t k = O::element(block, pair), i = first * kTileK + k;
      auto x = O::load(h, i), g = O::load(gain, i);
      operand.store(b, k, x.x * factor * g.x, x.y * factor * g.y);
    }
  }
}

/// h = multiplier * Emb[token] for every active row. The token's row was
/// located in control() by locateEmbedding.
template <class B> GROK_DEVICE void embed(B &block) {
  using M = typename B::Model;
  using P = typename B::Plan;
  using O = Owned<B>;
  auto &control = block.control();
  for (uint32_t b = 0; b < block.rows(); ++b) {
    if (!block.rowActive(b))
      continue;
    const uint16_t *row =
        (const uint16_t *)(block.params.weights + control.embeddingRow[b]);
    float *h = residualRow(block, b), squares = 0;
    auto element = [&](uint32_t i) {
      uint64_t at = i;
      if constexpr (M::kTiedHead)
        at = fragmentIndex(control.embeddingTile[b], i / kTileK,
                           control.embeddingTiles[b], O::kSteps,
                           P::kBlockSteps) *
                 (kFragmentBytes / 2) +
             fragmentElement(uint32_t(control.token[b]) % kTileRows,
                             i % kTileK);
      return M::kEmbeddingMultiplier * from16<M::kBF16>(row[at]);
    };
    for (uint32_t pair = 0; pair < O::kPairs; ++pair) {
      uint32_t i = O::element(block, pair);
      if (!O::has(i))
        break;
      typename O::Pair x{element(i), O::hasBoth(i) ? element(i + 1) : 0};
      O::store(h, i, x);
      squares = ptx::fma(x.x, x.x, ptx::fma(x.y, x.y, squares));
    }
    float sum[1] = {squares};
    addToSums(block, b, sum);
  }
  block.sync();
  for (uint32_t b = 0; b < block.rows(); ++b) {
    float sum[1];
    rowSums(block, b, sum);
    if (block.lane() == 0)
      block.normFactor(b) = normFactor<B>(sum[0]);
  }
  ptx::warpSync();
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
/// becomes the operand, or, if a row is longer than a K block, its factor is kept
/// for stageNormed. Of batch rows [first, first + kRows). Ends
/// without a barrier.
template <uint32_t kRows, class B>
GROK_DEVICE void addNormedRows(B &block, uint32_t first, const uint64_t *y,
                               const float *gain, const float *nextGain,
                               uint32_t rows, Phase phase) {
  using O = Owned<B>;
  using Pair = typename O::Pair;
  constexpr uint32_t kPairs = O::kPairs;
  // y and the gains fit the registers; the gains are there before y is.
  constexpr bool kKept = kPairs <= 4;
  constexpr uint32_t kAtOnce = kKept ? kPairs : 4; // pairs in flight, of a row
  auto active = [&](uint32_t b) {
    return b < block.rows() && block.rowActive(b);
  };
  auto words = [&](uint32_t b, uint32_t pair) {
    uint32_t i = O::element(block, pair);
    return Words{y + b * pairedWords(O::kHidden) + i,
                 b < block.rows() && rows >> b & 1 && O::has(i), O::hasBoth(i)};
  };
  auto value = [](const uint32_t (&payload)[2]) {
    return Pair{__builtin_bit_cast(float, payload[0]),
                __builtin_bit_cast(float, payload[1])};
  };
  auto addSums = [&](float (&sums)[kRowSums], Pair v, Pair g, Pair x) {
    auto add = [&](float y, float z, float h) {
      sums[kYY] = ptx::fma(y, y, sums[kYY]);
      sums[kHH] = ptx::fma(h, h, sums[kHH]);
      sums[kHZ] = ptx::fma(h, z, sums[kHZ]);
      sums[kZZ] = ptx::fma(z, z, sums[kZZ]);
    };
    add(v.x, v.x * g.x, x.x);
    add(v.y, v.y * g.y, x.y);
  };

  Pair gains[kKept ? kPairs : 1], nextGains[kKept ? kPairs : 1];
  if constexpr (kKept)
#pragma unroll
    for (uint32_t j = 0; j < kPairs; ++j) {
      uint32_t i = O::element(block, j);
      gains[j] = O::loadNow(gain, i);
      nextGains[j] = O::loadNow(nextGain, i);
    }
  uint32_t payload[kKept ? kRows * kPairs : kAtOnce][2]; // [row][pair]
  if constexpr (kKept)
    awaitPairs(block, phase, payload, [&](uint32_t i) {
      return words(first + i / kPairs, i % kPairs);
    });
#pragma unroll
  for (uint32_t r = 0; r < kRows; ++r) {
    const uint32_t b = first + r;
    if (!active(b))
      continue;
    const float *h = residualRow(block, b);
    float sums[kRowSums] = {};
    if constexpr (kKept) {
#pragma unroll
      for (uint32_t j = 0; j < kPairs; ++j)
        addSums(sums, value(payload[r * kPairs + j]), gains[j],
                O::load(h, O::element(block, j)));
    } else {
#pragma unroll 1
      for (uint32_t j0 = 0; j0 < kPairs; j0 += kAtOnce) {
        auto at = [&](uint32_t j) {
          Words w = words(b, j0 + j);
          w.there &= j0 + j < kPairs;
          return w;
        };
        awaitPairs(block, phase, payload, at);
#pragma unroll
        for (uint32_t j = 0; j < kAtOnce; ++j)
          if (j0 + j < kPairs) {
            uint32_t i = O::element(block, j0 + j);
            addSums(sums, value(payload[j]), O::load(gain, i), O::load(h, i));
          }
      }
    }
    addToSums(block, b, sums);
  }
  trace(block, phase, TracePoint::kReady, phase == Phase::kGateUp ? 0 : 1);
  block.sync();

  // Every thread finishes the sums for itself: a barrier less.
  Operand<B> operand = Operand<B>::of(block);
#pragma unroll
  for (uint32_t r = 0; r < kRows; ++r) {
    const uint32_t b = first + r;
    if (!active(b))
      continue;
    float sum[kRowSums];
    rowSums(block, b, sum);
    const float f = rows >> b & 1 ? normFactor<B>(sum[kYY]) : 0.0f;
    const float squares =
        ptx::fma(f * f, sum[kZZ], ptx::fma(2 * f, sum[kHZ], sum[kHH]));
    const float factor = normFactor<B>(squares > 0 ? squares : 0.0f);
    if constexpr (!kWholeRow<B> || !B::Model::kHashRouting)
      if (block.lane() == 0) // for stageNormed and the router
        block.normFactor(b) = factor;
    float *h = residualRow(block, b);
    auto update = [&](uint32_t i, Pair v, Pair g, Pair next) {
      Pair x = O::load(h, i);
      x = {ptx::fma(f, v.x * g.x, x.x), ptx::fma(f, v.y * g.y, x.y)};
      O::store(h, i, x);
      if constexpr (kWholeRow<B>)
        if (O::kHidden % kTileK == 0 ? O::has(i) : i < O::kSteps * kTileK)
          operand.store(b, i, x.x * factor * next.x, x.y * factor * next.y);
    };
    if constexpr (kKept) {
#pragma unroll
      for (uint32_t j = 0; j < kPairs; ++j)
        update(O::element(block, j), value(payload[r * kPairs + j]), gains[j],
               nextGains[j]);
    } else {
      for (uint32_t j = 0; j < kPairs; ++j) {
        uint32_t i = O::element(block, j);
        Words w = words(b, j);
        Pair v{w.there ? arrived(w.words) : 0.0f,
               w.there && w.both ? arrived(w.words + 1) : 0.0f};
        update(i, v, O::load(gain, i), O::load(nextGain, i));
      }
    }
  }
  ptx::warpSync();
}

/// addNormedRows for the whole batch, a few rows at a time: their words are in
/// flight together. The arithmetic of a row does not depend on the batch.
template <class B>
GROK_DEVICE void addNormed(B &block, const uint64_t *y, const float *gain,
                           const float *nextGain, uint32_t rows, Phase phase) {
  constexpr uint32_t kMost = B::Plan::kMaxBatch,
                     kRows = kMost < 2 ? 1 : kMost < 4 ? 2 : 4;
  if (kRows == 1 || block.rows() == 1)
    addNormedRows<1>(block, 0, y, gain, nextGain, rows, phase);
  else
#pragma unroll 1
    for (uint32_t first = 0; first < block.rows(); first += kRows)
      addNormedRows<kRows>(block, first, y, gain, nextGain, rows, phase);
}

} // namespace grok::device
