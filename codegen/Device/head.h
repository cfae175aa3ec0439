// The output head and the choice of the next token.
#pragma once

#include "codegen/Device/residual.h"
#include "runtime/bundle/Sampling.h"

namespace grok::device {

/// A token and what it scored; the better one has the larger score, ties go to
/// the lower id.
struct Candidate {
  float score;
  int32_t id;
  GROK_DEVICE bool better(const Candidate &other) const {
    return score > other.score || (score == other.score && id < other.id);
  }
};
inline constexpr int32_t kNoToken = 0x7fffffff;

/// Best of the warp's candidates, in every lane.
GROK_DEVICE Candidate bestOfWarp(Candidate c) {
#pragma unroll
  for (uint32_t m = 16; m; m >>= 1) {
    Candidate other{ptx::shuffleXor(c.score, m),
                    int32_t(ptx::shuffleXor(uint32_t(c.id), m))};
    if (other.better(c))
      c = other;
  }
  return c;
}

/// -log(u), for u up to 1 - 2^-24, where the hardware's logarithm has no digits
/// left.
GROK_DEVICE float negativeLog(float u) {
  float d = 1.0f - u;
  if (d > 0.1f)
    return -ptx::log2Approx(u) * 0.693147182f;
  float p = 1.0f / 8;
#pragma unroll
  for (uint32_t n = 7; n > 0; --n)
    p = ptx::fma(p, d, 1.0f / n);
  return p * d;
}

/// Gumbel noise of one token of one position: the largest logit / T + noise is
/// a sample of the softmax.
GROK_DEVICE float gumbel(uint64_t key, uint32_t token) {
  return -ptx::log2Approx(negativeLog(sampling::uniform(key, token))) *
         0.693147182f;
}

/// Words {score}, {id} of one slot's best token of one row.
template <class B>
GROK_DEVICE uint64_t *candidateWords(B &block, uint32_t slot, uint32_t b) {
  uint32_t parity = block.step() & 1;
  return block.template region<uint64_t>(Region::kCandidates) +
         ((parity * B::Plan::kSlots + slot) * B::Plan::kMaxBatch + b) * 2;
}

/// Logits of this slot's part of the vocabulary for the active rows; returns
/// this thread's best candidate, of row tid / 8 % kSumRows.
template <class B>
GROK_DEVICE Candidate headPhase(B &block, RingReader<B> &ring) {
  using M = typename B::Model;
  using P = typename B::Plan;
  Candidate best{kNegativeInfinity, kNoToken};
  const float *gain = block.vectors(
      M::kLayers); // the final norm follows the last layer's vectors
  bool staged = kWholeRow<B>;
  FirstTiles<B, M::kHidden> none;
  matvec(
      block, ring, P::kMatrixHead, staged, Phase::kHead, none,
      [&](uint32_t first) { stageNormed(block, gain, first); },
      [&](Output out, float value, float) {
        uint32_t id = out.tile * kTileRows + out.r;
        if (!out.mine || id >= M::kVocab || !block.rowActive(out.row))
          return;
        float logit = softCap(M::kOutputMultiplier * value, M::kFinalCap);
        if (block.params.writeLogits)
          block.template region<float>(
              Region::kLogits)[uint64_t(out.row) * M::kVocab + id] = logit;
        float score = logit;
        const abi::Turn &turn = block.control().turn;
        if (turn.inverseTemperature > 0) {
          float noise = gumbel(
              sampling::noiseKey(turn.seed, block.position(out.row) + 1), id);
          score = ptx::fma(logit, turn.inverseTemperature, noise);
        }
        Candidate c{score, int32_t(id)};
        if (c.better(best))
          best = c;
      });
  return best;
}

/// Orders everything that the slot stored in this step (KV entries) before the
/// candidate words that the same threads will write. The fence waits for
/// traffic in flight, so it comes at the start of the head, which the ring
/// carries across the wait.
template <class B> GROK_DEVICE void fenceStep(B &block) {
  // The newest KV entries, written by ordinary stores, will be read by bulk
  // copies.
  if constexpr (B::Plan::kSm >= 90)
    ptx::fenceAsyncProxy();
  block.sync();
  if (block.warp() < block.rows() && block.lane() < 2)
    ptx::fenceGpu();
}

/// Hands this slot's best candidates over.
template <class B>
GROK_DEVICE void publishCandidates(B &block, Candidate mine) {
  uint32_t rows = block.rows();
  Candidate *all = (Candidate *)block.scratch();
  block.sync();
  all[block.tid] = mine;
  block.sync();
  if (block.warp() >= rows)
    return;
  Candidate best{kNegativeInfinity, kNoToken};
  for (uint32_t t = block.lane(); t < kConsumers; t += 32)
    if (t / kTileRows % kSumRows<B> == block.warp() && all[t].better(best))
      best = all[t];
  best = bestOfWarp(best);
  if (block.lane() < 2) {
    uint32_t payload = block.lane() == 0
                           ? __builtin_bit_cast(uint32_t, best.score)
                           : uint32_t(best.id);
    publish(candidateWords(block, block.slot(), block.warp()) + block.lane(),
            __builtin_bit_cast(float, payload), block.epoch());
  }
}

/// The best token of every row over all slots goes to control().token.
template <class B> GROK_DEVICE void chooseTokens(B &block) {
  constexpr uint32_t kSlots = B::Plan::kSlots;
  if (block.warp() < block.rows()) {
    Candidate best{kNegativeInfinity, kNoToken};
    constexpr uint32_t kTogether = 5; // slots that a lane asks for at once
    for (uint32_t first = 0; first < kSlots; first += 32 * kTogether) {
      uint64_t word[kTogether][2]; // score, id
      awaitPairs<FullWord>(block, Phase::kHead, word, [&](uint32_t j) {
        uint32_t s = first + j * 32 + block.lane();
        return Words{candidateWords(block, s, block.warp()), s < kSlots};
      });
#pragma unroll
      for (uint32_t j = 0; j < kTogether; ++j) {
        Candidate c{wordValue(word[j][0]), int32_t(wordPayload(word[j][1]))};
        if (first + j * 32 + block.lane() < kSlots && c.better(best))
          best = c;
      }
    }
    best = bestOfWarp(best);
    if (block.lane() == 0)
      block.control().token[block.warp()] = best.id;
    ptx::fenceGpu();
  }
  block.sync();
}

} // namespace grok::device
