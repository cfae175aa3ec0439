// Activations that cross slots: 64-bit words {float32, epoch}. The epoch says that the word belongs to this layer of this
// step, so no fence and no barrier stands between the writer and its readers.
#pragma once

#include "codegen/Device/block.h"

namespace grok::device {

GROK_DEVICE uint64_t makeWord(float value, uint32_t epoch) {
  return uint64_t(epoch) << 32 | __builtin_bit_cast(uint32_t, value);
}
GROK_DEVICE float wordValue(uint64_t word) { return __builtin_bit_cast(float, uint32_t(word)); }
GROK_DEVICE uint32_t wordEpoch(uint64_t word) { return uint32_t(word >> 32); }

GROK_DEVICE void publish(uint64_t *word, float value, uint32_t epoch) { ptx::storeRelaxed(word, makeWord(value, epoch)); }

/// The word's value once it carries `epoch`.
template <class B> GROK_DEVICE float await(B &block, const uint64_t *word, uint32_t epoch, Phase phase) {
  uint64_t v = ptx::loadRelaxed(word);
  uint32_t since = 0;
  for (uint32_t polls = 1; wordEpoch(v) != epoch; ++polls) {
    if (polls % kPollsBetweenChecks == 0 && gaveUp(block, since, phase))
      return 0;
    v = ptx::loadRelaxed(word);
  }
  return wordValue(v);
}

/// The value of a word that this thread, or one it has synchronised with, has awaited before.
GROK_DEVICE float arrived(const uint64_t *word) { return wordValue(ptx::loadRelaxed(word)); }

} // namespace grok::device
