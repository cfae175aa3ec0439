// Synthetic weights: a pure function of (seed, tensor, logical index), the same
// on CPU and GPU, scaled by fan-in.
#pragma once

#include <stdint.h>

namespace grok::synthetic {

/// A tensor's identity: kind is TensorKind's value.
constexpr uint64_t tensorKey(uint64_t seed, uint32_t kind, uint32_t layer,
                             uint32_t expert) {
  return seed ^ (uint64_t(kind) << 56) ^ (uint64_t(layer) << 40) ^
         (uint64_t(expert) << 24);
}

/// Uniform 24-bit integer from a key and an element's index (a 64-bit mix in
/// the manner of SplitMix64).
constexpr uint32_t uniform24(uint64_t key, uint64_t index) {
  uint64_t z =
      key * 0xD1342543DE82EF95ull + (index + 1) * 0x9E3779B97F4A7C15ull;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return uint32_t((z ^ (z >> 31)) >> 40);
}

/// Element in [-1, 1), exact in float32.
constexpr float unit(uint64_t key, uint64_t index) {
  return (float(uniform24(key, index)) - 8388608.0f) * (1.0f / 8388608.0f);
}

/// Matrices: uniform with variance 1 / fanIn, i.e. unit * sqrt(3 / fanIn);
/// `scale` is that root rounded to float32.
constexpr float matrixElement(uint64_t key, uint64_t index, float scale) {
  return unit(key, index) * scale;
}
/// Norm weights: around one, 0.75 .. 1.25.
constexpr float normElement(uint64_t key, uint64_t index) {
  return 1.0f + 0.25f * unit(key, index);
}

} // namespace grok::synthetic
