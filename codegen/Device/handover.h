// Activations that cross slots: 64-bit words {float32 or two 16-bit values,
// epoch}. The epoch says
// that the word belongs to this layer of this step, so no fence and no barrier
// stands between the writer and its readers.
#pragma once

#include "codegen/Device/block.h"

namespace grok::device {

GROK_DEVICE uint64_t makeWord(float value, uint32_t epoch) {
  return uint64_t(epoch) << 32 | __builtin_bit_cast(uint32_t, value);
}
GROK_DEVICE float wordValue(uint64_t word) {
  return __builtin_bit_cast(float, uint32_t(word));
}
GROK_DEVICE uint32_t wordEpoch(uint64_t word) { return uint32_t(word >> 32); }

GROK_DEVICE void publish(uint64_t *word, float value, uint32_t epoch) {
  ptx::storeRelaxed(word, makeWord(value, epoch));
}

/// A word that may be asked for, if it is `there`.
struct Word {
  const uint64_t *word;
  bool there;
};

/// A lane's words at(0) .. at(kCount - 1): all asked for at once and the stale
/// ones again until no lane has one, which is one trip to L2 instead of one a
/// word. In between the warp asks for the first of them alone: many that ask
/// for everything keep L2 busy with questions and slow down whoever still
/// computes. The payload is 0 where none is there. Called by whole warps.
template <uint32_t kCount, class B, class At>
GROK_DEVICE void awaitWords(B &block, Phase phase, uint32_t (&payload)[kCount],
                            At at) {
  const uint32_t epoch = block.epoch();
  uint64_t word[kCount];
  auto ask = [&](uint32_t j, bool asks) {
    word[j] = ptx::loadRelaxedIf(asks && wordEpoch(word[j]) != epoch,
                                 at(j).word, word[j]);
  };
#pragma unroll
  for (uint32_t j = 0; j < kCount; ++j) {
    word[j] = makeWord(0, at(j).there ? epoch - 1 : epoch);
    ask(j, true);
  }
  uint32_t since = 0;
  for (uint32_t polls = 1;; ++polls) {
    bool first = wordEpoch(word[0]) == epoch || block.lane() != 0,
         fresh = first;
#pragma unroll
    for (uint32_t j = 0; j < kCount; ++j)
      fresh &= wordEpoch(word[j]) == epoch;
    if (ptx::all(fresh) || (polls % kPollsBetweenChecks == 0 &&
                            !ptx::all(!gaveUp(block, since, phase))))
      break;
    bool all = ptx::all(first);
    ask(0, all || block.lane() == 0);
#pragma unroll
    for (uint32_t j = 1; j < kCount; ++j)
      ask(j, all);
  }
#pragma unroll
  for (uint32_t j = 0; j < kCount; ++j)
    payload[j] = uint32_t(word[j]);
}

/// The words at(first), at(first + 512), ... of a thread.
template <uint32_t kCount, class B, class At>
GROK_DEVICE void awaitMany(B &block, uint32_t first, Phase phase,
                           uint32_t (&payload)[kCount], At at) {
  awaitWords(block, phase, payload,
             [&](uint32_t j) { return at(first + j * kConsumers); });
}

/// Calls use(i, payload) for every i below `end` that is this thread's and has
/// a word, several in flight at a time. Called by whole warps.
template <class B, class At, class Use>
GROK_DEVICE void forEachWord(B &block, uint32_t end, Phase phase, At at,
                             Use use) {
  constexpr uint32_t kInFlight =
      B::Plan::kSm >= 90 ? 4 : 2; // sm_80 has no registers to spare
  auto bounded = [&](uint32_t i) {
    Word w = at(i);
    return Word{w.word, i < end && w.there};
  };
  for (uint32_t base = 0; base < end; base += kInFlight * kConsumers) {
    uint32_t first = base + block.tid, payload[kInFlight];
    awaitMany(block, first, phase, payload, bounded);
#pragma unroll
    for (uint32_t j = 0; j < kInFlight; ++j)
      if (bounded(first + j * kConsumers).there)
        use(first + j * kConsumers, payload[j]);
  }
}

/// The value of a word that this thread, or one it has synchronised with, has
/// awaited before.
GROK_DEVICE float arrived(const uint64_t *word) {
  return wordValue(ptx::loadRelaxed(word));
}

/// What becomes a 16-bit operand crosses as such, two values a word: half the
/// words to ask for, and the same operand. Split activations need the float32.
template <class B> struct OperandWord {
  static constexpr bool kPair = B::Plan::kPlanes == 1;
  static constexpr uint32_t kValues = kPair ? 2 : 1;
  static constexpr bool kBF16 = B::Model::kBF16;

  /// Publishes element `index` of a vector. Every lane of the warp calls it;
  /// `partner` is the value of the element index ^ 1.
  GROK_DEVICE static void publish(B &block, uint64_t *words, uint32_t index,
                                  float value, float partner) {
    if constexpr (!kPair)
      device::publish(words + index, value, block.epoch());
    else if (index % 2 == 0)
      ptx::storeRelaxed(words + index / 2, uint64_t(block.epoch()) << 32 |
                                               uint32_t(to16<kBF16>(partner))
                                                   << 16 |
                                               to16<kBF16>(value));
  }
};

} // namespace grok::device
