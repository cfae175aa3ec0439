// Activations that cross slots: 64-bit words {float32, epoch}. The epoch says
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

/// The word's value once it carries `epoch`.
template <class B>
GROK_DEVICE float await(B &block, const uint64_t *word, uint32_t epoch,
                        Phase phase) {
  uint64_t v = ptx::loadRelaxed(word);
  uint32_t since = 0;
  for (uint32_t polls = 1; wordEpoch(v) != epoch; ++polls) {
    if (polls % kPollsBetweenChecks == 0 && gaveUp(block, since, phase))
      return 0;
    v = ptx::loadRelaxed(word);
  }
  return wordValue(v);
}

/// This thread's words first, first + 512, ... below `end`, all asked for at
/// once and the stale ones again until none is: one trip to L2 instead of one a
/// word. Values past the end are 0.
template <uint32_t kCount, class B>
GROK_DEVICE void awaitMany(B &block, const uint64_t *words, uint32_t first,
                           uint32_t end, Phase phase, float (&value)[kCount]) {
  const uint32_t epoch = block.epoch();
  uint64_t word[kCount];
#pragma unroll
  for (uint32_t j = 0; j < kCount; ++j)
    word[j] = first + j * kConsumers < end
                  ? ptx::loadRelaxed(words + first + j * kConsumers)
                  : makeWord(0, epoch);
  uint32_t since = 0;
  for (uint32_t polls = 1;; ++polls) {
    bool stale = false;
#pragma unroll
    for (uint32_t j = 0; j < kCount; ++j)
      stale |= wordEpoch(word[j]) != epoch;
    if (!stale ||
        (polls % kPollsBetweenChecks == 0 && gaveUp(block, since, phase)))
      break;
#pragma unroll
    for (uint32_t j = 0; j < kCount; ++j)
      if (wordEpoch(word[j]) != epoch)
        word[j] = ptx::loadRelaxed(words + first + j * kConsumers);
  }
#pragma unroll
  for (uint32_t j = 0; j < kCount; ++j)
    value[j] = wordValue(word[j]);
}

/// Calls use(i, value) for every one of this thread's words below `end`, a few
/// in flight at a time.
template <class B, class Use>
GROK_DEVICE void forEachWord(B &block, const uint64_t *words, uint32_t end,
                             Phase phase, Use use) {
  constexpr uint32_t kInFlight =
      B::Plan::kSm >= 90 ? 4 : 2; // sm_80 has no registers to spare
  for (uint32_t first = block.tid; first < end;
       first += kInFlight * kConsumers) {
    float value[kInFlight];
    awaitMany(block, words, first, end, phase, value);
#pragma unroll
    for (uint32_t j = 0; j < kInFlight; ++j)
      if (first + j * kConsumers < end)
        use(first + j * kConsumers, value[j]);
  }
}

/// The value of a word that this thread, or one it has synchronised with, has
/// awaited before.
GROK_DEVICE float arrived(const uint64_t *word) {
  return wordValue(ptx::loadRelaxed(word));
}

} // namespace grok::device
