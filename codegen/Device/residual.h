// The residual stream h, float32. Every slot keeps all of it, or, in a pair of
// blocks, every second row; a team of warps keeps a row, a thread the same
// elements as of the operand, so that no synchronisation is needed, and adds
// each sub-block's normalised output as it arrives.
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
  using P = Parts<B, kEach>;
  static constexpr uint32_t kHidden = B::Model::kHidden,
                            kSteps = (kHidden + kTileK - 1) / kTileK;
  static constexpr uint32_t kParts = P::count(kSteps);
  /// Every thread has all its parts.
  static constexpr bool kWhole = kHidden == kSteps * kTileK && P::full(kSteps);
  /// No part ends beyond the vector.
  static constexpr bool kAligned = kHidden % kEach == 0;

  /// Where a part lies in the operand of a whole row.
  static GROK_DEVICE uint32_t place(B &block, uint32_t part) {
    return P::first(block) + part * P::kApart;
  }
  /// First element of a part.
  static GROK_DEVICE uint32_t element(B &block, uint32_t part) {
    return Weights<B>::template input<kHidden>(place(block, part));
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
  static GROK_DEVICE void stage(B &block, const Operand<B> &operand,
                                uint32_t row, uint32_t part, const Part &x) {
#pragma unroll
    for (uint32_t e = 0; e < kEach; e += 2)
      operand.store(row, P::first(block) + e, part * P::kApart, x.v[e],
                    x.v[e + 1]);
  }
};

/// 1 / sqrt(mean + eps) from a row's sum of squares.
template <class B> GROK_DEVICE float normFactor(float squares) {
  return ptx::rsqrtApprox(
      ptx::fma(squares, 1.0f / float(B::Model::kHidden), B::Model::kNormEps));
}

/// Keeps a row's norm factor for stageNormed and the router, who may read it
/// after finishFactors.
template <class B>
GROK_DEVICE void keepFactor(B &block, uint32_t b, float factor) {
  if (kOneRow<B> ? block.lane() == 0 : Team<B>::lane(block) == 0)
    block.normFactor(b) = factor;
}
template <class B> GROK_DEVICE void finishFactors(B &block) {
  if constexpr (kOneRow<B>)
    ptx::warpSync();
  else
    block.sync();
}

/// Stores RMSNorm(h; gain) of the K block that begins with step `first` as the
/// operand, zero past the end: each team its row.
template <class B>
GROK_DEVICE void stageNormed(B &block, const float *gain, uint32_t first) {
  using O = Owned<B>;
  using Blocks = KBlocks<B, O::kHidden>;
  Operand<B> operand = Operand<B>::of(block);
  const uint32_t end = Blocks::steps(first) * kTileK, b = Team<B>::row(block);
  Staging<B, O::kHidden> staging{block};
  staging.begin();
  staging.await(Phase::kQkv);
  if (Team<B>::active(block)) {
    const float *h = residualRow(block, b);
    float factor = block.normFactor(b);
    for (uint32_t part = 0; part < O::P::count(Blocks::kMost); ++part) {
      uint32_t k = O::place(block, part),
               i = Weights<B>::template input<O::kHidden>(first * kTileK + k);
      if (k >= end)
        break;
      auto x = O::load(h, i), g = O::load(gain, i);
#pragma unroll
      for (uint32_t e = 0; e < O::kEach; ++e)
        x.v[e] *= factor * g.v[e];
      O::stage(block, operand, b, part, x);
    }
  }
  staging.finish(Phase::kQkv);
}

/// Element i of a row of the tied head, of tile `tile` of the `tiles` of the
/// extent that begins at `extent`.
template <class B>
GROK_DEVICE float tiedElement(const uint8_t *extent, uint32_t tile,
                              uint32_t tiles, uint32_t row, uint32_t i) {
  constexpr Quantization kCodes = Weights<B>::kCodes;
  constexpr uint32_t kSteps = Owned<B>::kSteps;
  const uint32_t place = streamPlace(kCodes, B::Model::kHidden, i),
                 step = place / kTileK, k = place % kTileK;
  const uint8_t *fragment =
      extent +
      fragmentOffset(kCodes, tile, step, tiles, kSteps, B::Plan::kBlockSteps);
  if constexpr (Weights<B>::kScaled) {
    auto *scales =
        (const uint16_t *)(extent + scaleOffset(kCodes, tile, kSteps));
    return codeToFloat(kCodes, fragment[row * kTileK + quantizedElement(k)]) *
           scaleToFloat(scales[row * kScaleBlocks + step % kScaleBlocks]);
  } else {
    return from16<B::Model::kBF16>(
        ((const uint16_t *)fragment)[fragmentElement(row, k)]);
  }
}

/// h = multiplier * Emb[token] for every active row. The token's row was
/// located in control() by locateEmbedding.
template <class B> GROK_DEVICE void embed(B &block) {
  using M = typename B::Model;
  using O = Owned<B>;
  auto &control = block.control();
  const uint32_t b = Team<B>::row(block);
  const bool active = Team<B>::active(block);
  if (active) {
    const uint8_t *at = block.params.weights + control.embeddingRow[b];
    float *h = residualRow(block, b), squares = 0;
    auto element = [&](uint32_t i) {
      float value;
      if constexpr (M::kTiedHead)
        value = tiedElement<B>(at, control.embeddingTile[b],
                               control.embeddingTiles[b],
                               uint32_t(control.token[b]) % kTileRows, i);
      else
        value = from16<M::kBF16>(((const uint16_t *)at)[i]);
      return M::kEmbeddingMultiplier * value;
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
    addToSums(block, sum);
  }
  block.sync();
  if (active) {
    float sum[1];
    teamSums(block, sum);
    keepFactor(block, b, normFactor<B>(sum[0]));
  }
  finishFactors(block);
}

/// What a sub-block's output y needs to become part of h, of one row: sums over
/// the elements, from which both the norm of y and the one of the new h follow,
/// so that one exchange between the warps serves both.
///   z = y * gain;  h' = h + f z with f = 1 / rms(y);
///   sum h'^2 = sum h^2 + 2 f sum h z + f^2 sum z^2
enum RowSum : uint32_t { kYY, kHH, kHZ, kZZ, kRowSums };

/// h += RMSNorm(y; gain) for the rows whose bit is set in `rows`, where y
/// arrives as words [row][D]; then the norm of the new h with `nextGain`
/// becomes the operand, or, if a row is longer than a K block, its factor is
/// kept for stageNormed. Each team its row: what that costs does not depend on
/// the batch, nor does its arithmetic.
template <class B>
GROK_DEVICE void addNormed(B &block, const uint64_t *y, const float *gain,
                           const float *nextGain, uint32_t rows, Phase phase) {
  using O = Owned<B>;
  using Part = typename O::Part;
  using Out = OutputWord<B>;
  constexpr uint32_t kParts = O::kParts, kEach = O::kEach;
  // What fits the registers: y; the gains too, and they are there before y is
  // (what would be asked for later comes late beside the stream). A single
  // row's warps keep their first tiles.
  constexpr bool kKeepGains = kParts * kEach <= (kOneRow<B> ? 8 : 32),
                 kKeepWords = kParts <= 8;
  constexpr uint32_t kAtOnce = kKeepWords ? kParts : 4; // in flight
  const uint32_t b = Team<B>::row(block);
  const bool active = Team<B>::active(block), adds = active && rows >> b & 1;
  const uint64_t *from =
      y + b * Out::kRowWords + O::P::first(block) / Out::kValues;
  auto words = [&](uint32_t part) {
    uint32_t i = O::element(block, part);
    return Words{Weights<B>::kScaled
                     ? y + b * Out::kRowWords + i / Out::kValues
                     : from + part * (O::P::kApart / Out::kValues),
                 adds && part < kParts && O::has(i),
                 O::kAligned || i + Out::kValues < O::kHidden};
  };
  Staging<B, O::kHidden> staging{block};
  if constexpr (kWholeRow<B>)
    staging.begin();

  Part gains[kKeepGains ? kParts : 1], nextGains[kKeepGains ? kParts : 1];
  auto gainOf = [&](const float *from, const Part *kept, uint32_t part) {
    if constexpr (kKeepGains)
      return kept[part];
    else
      return O::load(from, O::element(block, part));
  };
#pragma unroll
  for (uint32_t j = 0; j < kParts; ++j) {
    uint32_t i = O::element(block, j);
    if constexpr (kKeepGains) {
      gains[j] = O::loadNow(gain, i);
      nextGains[j] = O::loadNow(nextGain, i);
    } else if (active && O::has(i)) {
      ptx::prefetchL1(gain + i);
      ptx::prefetchL1(nextGain + i);
    }
  }
  float *h = residualRow(block, b);
  uint64_t word[kAtOnce][2];
  if (active) {
    float sums[kRowSums] = {};
#pragma unroll 1
    for (uint32_t j0 = 0; j0 < kParts; j0 += kAtOnce) {
      awaitPairs<typename Out::Format>(
          block, phase, word, [&](uint32_t j) { return words(j0 + j); });
#pragma unroll
      for (uint32_t j = 0; j < kAtOnce; ++j) {
        if (!kKeepWords && j0 + j >= kParts)
          break;
        const Part x = O::load(h, O::element(block, j0 + j)),
                   g = gainOf(gain, gains, kKeepWords ? j : j0 + j);
        float v[kEach];
        Out::values(word[j], v);
#pragma unroll
        for (uint32_t e = 0; e < kEach; ++e) {
          float z = v[e] * g.v[e];
          sums[kYY] = ptx::fma(v[e], v[e], sums[kYY]);
          sums[kHH] = ptx::fma(x.v[e], x.v[e], sums[kHH]);
          sums[kHZ] = ptx::fma(x.v[e], z, sums[kHZ]);
          sums[kZZ] = ptx::fma(z, z, sums[kZZ]);
        }
      }
    }
    addToSums(block, sums);
  }
  trace(block, phase, TracePoint::kReady, phase == Phase::kGateUp ? 0 : 1);
  Team<B>::sync(block);
  if constexpr (kWholeRow<B>)
    staging.await(phase);

  // Every thread finishes the sums for itself: a barrier less.
  if (active) {
    Operand<B> operand = Operand<B>::of(block);
    float sum[kRowSums];
    teamSums(block, sum);
    const float f = adds ? normFactor<B>(sum[kYY]) : 0.0f;
    const float squares =
        ptx::fma(f * f, sum[kZZ], ptx::fma(2 * f, sum[kHZ], sum[kHH]));
    const float factor = normFactor<B>(squares > 0 ? squares : 0.0f);
    if constexpr (!kWholeRow<B> || !B::Model::kHashRouting)
      keepFactor(block, b, factor);
    auto update = [&](uint32_t part, const uint64_t (&arrivedWords)[2]) {
      const Part g = gainOf(gain, gains, part),
                 next = gainOf(nextGain, nextGains, part);
      const uint32_t i = O::element(block, part);
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
          O::stage(block, operand, b, part, x);
    };
    if constexpr (kKeepWords) {
#pragma unroll
      for (uint32_t j = 0; j < kParts; ++j)
        update(j, word[j]);
    } else {
      for (uint32_t j = 0; j < kParts; ++j) {
        Words w = words(j);
        uint64_t again[2] = {w.there ? arrived(w.words) : 0,
                             w.there && w.both ? arrived(w.words + 1) : 0};
        update(j, again);
      }
    }
  }
  if constexpr (kWholeRow<B>)
    staging.finish(phase);
  if constexpr (kOneRow<B> || !kWholeRow<B>)
    finishFactors(block);
}

} // namespace grok::device
