// Gumbel-max sampling: the token is argmax over ids of logit / T + g(u), g(u) =
// -log(-log(u)). The uniform number is a pure function of (seed, position,
// token id), so a row's sampled stream depends on nothing but its own logits:
// not on the batch row, the device, the slot or the number of threads.
#pragma once

#include "runtime/bundle/Synthetic.h"

namespace grok::sampling {

/// The key of all the noise of one generated token. `position` is the position
/// that the token will have in its row.
constexpr uint64_t noiseKey(uint64_t seed, uint32_t position) {
  uint64_t z = seed + (uint64_t(position) + 1) * 0x9E3779B97F4A7C15ull;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

/// (n + 1/2) / 2^24 for the 24-bit integer of (key, id), strictly between 0 and
/// 1: from 2^23 the half does not fit a float32 and is dropped, so the largest
/// value is 1 - 2^-24 and both logarithms stay finite.
constexpr float uniform(uint64_t key, uint32_t id) {
  uint32_t n = synthetic::uniform24(key, id);
  float half = n < 8388608u ? 0.5f : 0.0f;
  return (float(n) + half) * (1.0f / 16777216.0f);
}

/// The id that row `row` gets for step `step` of a bench launch.
constexpr int32_t benchToken(uint64_t seed, uint32_t step, uint32_t row,
                             uint32_t vocab) {
  return int32_t(noiseKey(seed + row, step) % vocab);
}

} // namespace grok::sampling
