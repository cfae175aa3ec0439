// The residual stream h, float32. Every slot keeps all of it, or, in a pair of
// blocks, every second row; a thread owns the same elements of every row as of
// the operand, so that no synchronisation is needed, and adds each sub-block's
// normalised output as it arrives.
#pragma once

#include "codegen/Device/matvec.h"

namespace grok::device {

/// h of row b, which the block keeps.
template <class B> GROK_DEVICE float *residualRow(B &block, uint32_t b) {
  const uint32_t place = B::kPaired ? b / 2 : b;
  if constexpr (residualInShared(B::kShape))
    return (float *)(block.shared() + B::kShared.residual) +
           place * B::Model::kHidden;
  return block.template region<float>(Region::kResidual) +
         (uint64_t(block.slot()) * B::kShape.residualRows() + place) *
             B::Model::kHidden;
}

/// A thread's share of a vector [D]: parts of kEach neighbouring elements, as
/// many as two words of a sub-block's output carry.
template <class B> struct Owned {
  static constexpr uint32_t kEach = 2 * OutputWord<B>::kValues;
  using Own = OwnSteps<kEach>;
  static constexpr uint32_t kHidden = B::Model::kHidden,
                            kSteps = (kHidden + kTileK - 1) / kTileK;
  static constexpr uint32_t kParts = Own::rounds(kSteps);
  /// Every thread has all its parts.
  static constexpr bool kWhole = kHidden == kParts * kEach * kConsumers;
  /// No part ends beyond the vector.
  static constexpr bool kAligned = kHidden % kEach == 0;

  /// First element of a part.
  static GROK_DEVICE uint32_t element(B &block, uint32_t part) {
    return Own::element(block, part);
  }
  static GROK_DEVICE bool has(uint32_t element) {
    return kWhole || element < kHidden;
  }

  struct Part {
    float v[kEach];
  };
  /// Elements i, i + 1, ... of a vector in memory, zero past the end.
  static GROK_DEVICE Part load(const float *p, uint32_t i) {
    Part part{};
    if constexpr (kAligned) {
      if (has(i))
        ptx::loadFloats(p + i, part.v);
    } else {
#pragma unroll
      for (uint32_t e = 0; e < kEach; ++e)
        if (i + e < kHidden)
          part.v[e] = p[i + e];
    }
    return part;
  }
  /// The same of device memory, asked for where it stands.
  static GROK_DEVICE Part loadNow(const float *p, uint32_t i) {
    if constexpr (!kAligned)
      return load(p, i);
    Part part;
    ptx::loadGlobalIf(has(i), p + i, part.v);
    return part;
  }
  static GROK_DEVICE void store(float *p, uint32_t i, const Part &part) {
    if constexpr (kAligned) {
      if (has(i))
        ptx::storeFloats(p + i, part.v);
    } else {
#pragma unroll
      for (uint32_t e = 0; e < kEach; ++e)
        if (i + e < kHidden)
          p[i + e] = part.v[e];
    }
  }
  /// Stores a part of a normalised row as the operand.
  static GROK_DEVICE void stage(const Operand<B> &operand, uint32_t row,
                                uint32_t k, const Part &part) {
#pragma unroll
    for (uint32_t e = 0; e < kEach; e += 2)
      operand.store(row, k + e, part.v[e], part.v[e + 1]);
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
  OperandShare<B, O::kHidden> share{block};
  share.begin();
  share.await(Phase::kQkv);
  for (uint32_t b = block.firstRow(); b < block.rows(); b += block.rowStep()) {
    if (!block.rowActive(b))
      continue;
    const float *h = residualRow(block, b);
    float factor = block.normFactor(b);
    for (uint32_t part = 0; O::Own::step(block, part) < steps; ++part) {
      uint32_t k = O::element(block, part), i = first * kTileK + k;
      auto x = O::load(h, i), g = O::load(gain, i);
#pragma unroll
      for (uint32_t e = 0; e < O::kEach; ++e)
        x.v[e] *= factor * g.v[e];
      O::stage(operand, b, k, x);
    }
  }
  share.finish(Phase::kQkv);
}

/// h = multiplier * Emb[token] for every active row. The token's row was
/// located in control() by locateEmbedding.
template <class B> GROK_DEVICE void embed(B &block) {
  using M = typename B::Model;
  using P = typename B::Plan;
  using O = Owned<B>;
  auto &control = block.control();
  for (uint32_t b = block.firstRow(); b < block.rows(); b += block.rowStep()) {
    if (!block.rowActive(b))
      continue;
    const uint16_t *row =
        (const uint16_t *)(block.params.weights + control.embeddingRow[b]);
    float *h = residualRow(block, b), squares = 0;
    auto element = [&](uint32_t i) {
      uint64_t at = i;
      if constexpr (M::kTiedHead)
        at =
            fragmentIndex(control.embeddingTile[b], i / kTileK,
                          control.embeddingTiles[b], O::kSteps,
                          P::kBlockSteps) *
                (kFragmentBytes / 2) +
            fragmentElement(uint32_t(control.token[b]) % kTileRows, i % kTileK);
      return M::kEmbeddingMultiplier * from16<M::kBF16>(row[at]);
    };
    for (uint32_t part = 0; part < O::kParts; ++part) {
      uint32_t i = O::element(block, part);
      typename O::Part x{};
#pragma unroll
      for (uint32_t e = 0; e < O::kEach; ++e) {
        if (i + e < O::kHidden)
          x.v[e] = element(i + e);
        squares = ptx::fma(x.v[e], x.v[e], squares);
      }
      O::store(h, i, x);
    }
    float sum[1] = {squares};
    addToSums(block, b, sum);
  }
  block.sync();
  for (uint32_t b = block.firstRow(); b < block.rows(); b += block.rowStep()) {
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
/// becomes the operand, or, if a row is longer than a K block, its factor is
/// kept for stageNormed. Of kRows of the block's rows, from batch row `first`
/// on. Ends without a barrier.
template <uint32_t kRows, class B>
GROK_DEVICE void addNormedRows(B &block, uint32_t first, const uint64_t *y,
                               const float *gain, const float *nextGain,
                               uint32_t rows, Phase phase) {
  const OperandShare<B, B::Model::kHidden> share{block};
  using O = Owned<B>;
  using Part = typename O::Part;
  using Out = OutputWord<B>;
  constexpr uint32_t kParts = O::kParts, kEach = O::kEach;
  // y and the gains fit the registers; the gains are there before y is.
  constexpr bool kKept = kParts * kEach <= 8;
  constexpr uint32_t kAtOnce = kKept ? kParts : 4; // in flight, of a row
  auto row = [&](uint32_t r) { return first + r * block.rowStep(); };
  auto active = [&](uint32_t b) {
    return b < block.rows() && block.rowActive(b);
  };
  auto words = [&](uint32_t b, uint32_t part) {
    uint32_t i = O::element(block, part);
    return Words{y + b * Out::kRowWords + i / Out::kValues,
                 b < block.rows() && rows >> b & 1 && O::has(i),
                 O::kAligned || i + Out::kValues < O::kHidden};
  };
  auto addSums = [&](float (&sums)[kRowSums], const uint64_t (&word)[2],
                     const Part &g, const Part &x) {
    float v[kEach];
    Out::values(word, v);
#pragma unroll
    for (uint32_t e = 0; e < kEach; ++e) {
      float z = v[e] * g.v[e];
      sums[kYY] = ptx::fma(v[e], v[e], sums[kYY]);
      sums[kHH] = ptx::fma(x.v[e], x.v[e], sums[kHH]);
      sums[kHZ] = ptx::fma(x.v[e], z, sums[kHZ]);
      sums[kZZ] = ptx::fma(z, z, sums[kZZ]);
    }
  };

  Part gains[kKept ? kParts : 1], nextGains[kKept ? kParts : 1];
  if constexpr (kKept)
#pragma unroll
    for (uint32_t j = 0; j < kParts; ++j) {
      uint32_t i = O::element(block, j);
      gains[j] = O::loadNow(gain, i);
      nextGains[j] = O::loadNow(nextGain, i);
    }
  uint64_t word[kKept ? kRows * kParts : kAtOnce][2]; // [row][part]
  if constexpr (kKept)
    awaitPairs<typename Out::Format>(block, phase, word, [&](uint32_t i) {
      return words(row(i / kParts), i % kParts);
    });
#pragma unroll
  for (uint32_t r = 0; r < kRows; ++r) {
    const uint32_t b = row(r);
    if (!active(b))
      continue;
    const float *h = residualRow(block, b);
    float sums[kRowSums] = {};
    if constexpr (kKept) {
#pragma unroll
      for (uint32_t j = 0; j < kParts; ++j)
        addSums(sums, word[r * kParts + j], gains[j],
                O::load(h, O::element(block, j)));
    } else {
#pragma unroll 1
      for (uint32_t j0 = 0; j0 < kParts; j0 += kAtOnce) {
        awaitPairs<typename Out::Format>(block, phase, word, [&](uint32_t j) {
          Words w = words(b, j0 + j);
          w.there &= j0 + j < kParts;
          return w;
        });
#pragma unroll
        for (uint32_t j = 0; j < kAtOnce; ++j)
          if (j0 + j < kParts) {
            uint32_t i = O::element(block, j0 + j);
            addSums(sums, word[j], O::load(gain, i), O::load(h, i));
          }
      }
    }
    addToSums(block, b, sums);
  }
  trace(block, phase, TracePoint::kReady, phase == Phase::kGateUp ? 0 : 1);
  block.sync();
  if (first == block.firstRow())
    share.await(phase);

  // Every thread finishes the sums for itself: a barrier less.
  Operand<B> operand = Operand<B>::of(block);
#pragma unroll
  for (uint32_t r = 0; r < kRows; ++r) {
    const uint32_t b = row(r);
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
    auto update = [&](uint32_t i, const uint64_t (&arrivedWords)[2],
                      const Part &g, const Part &next) {
      Part x = O::load(h, i);
      float v[kEach];
      Out::values(arrivedWords, v);
#pragma unroll
      for (uint32_t e = 0; e < kEach; ++e)
        x.v[e] = ptx::fma(f, v[e] * g.v[e], x.v[e]);
      O::store(h, i, x);
#pragma unroll
      for (uint32_t e = 0; e < kEach; ++e)
        x.v[e] *= factor * next.v[e];
      if constexpr (kWholeRow<B>)
        if (O::kHidden % kTileK == 0 ? O::has(i) : i < O::kSteps * kTileK)
          O::stage(operand, b, i, x);
    };
    if constexpr (kKept) {
#pragma unroll
      for (uint32_t j = 0; j < kParts; ++j)
        update(O::element(block, j), word[r * kParts + j], gains[j],
               nextGains[j]);
    } else {
      for (uint32_t j = 0; j < kParts; ++j) {
        uint32_t i = O::element(block, j);
        Words w = words(b, j);
        uint64_t again[2] = {w.there ? arrived(w.words) : 0,
                             w.there && w.both ? arrived(w.words + 1) : 0};
        update(i, again, O::load(gain, i), O::load(nextGain, i));
      }
    }
  }
  ptx::warpSync();
}

/// addNormedRows for the block's rows, several at a time: their words are in
/// flight together. More than two would only queue in L2, whose lines all slots
/// read at the same moment, unless pairs of slots read them once. Then the
/// operand is shared. The arithmetic of a row does not depend on the batch.
template <class B>
GROK_DEVICE void addNormed(B &block, const uint64_t *y, const float *gain,
                           const float *nextGain, uint32_t rows, Phase phase) {
  constexpr uint32_t kMost = B::kShape.residualRows(),
                     kAtOnce = B::kPaired ? 4 : 2,
                     kRows = kMost < kAtOnce ? kMost : kAtOnce;
  OperandShare<B, B::Model::kHidden> share{block};
  share.begin();
  if (kRows == 1 || block.rows() == 1)
    addNormedRows<1>(block, block.firstRow(), y, gain, nextGain, rows, phase);
  else
#pragma unroll 1
    for (uint32_t first = block.firstRow(); first < block.rows();
         first += kRows * block.rowStep())
      addNormedRows<kRows>(block, first, y, gain, nextGain, rows, phase);
  share.finish(phase);
}

} // namespace grok::device
