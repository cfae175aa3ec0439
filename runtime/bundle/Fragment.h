// One row of a fragment, both ways: what fragmentElement and quantizedElement
// say, sixteen or thirty-two bytes at a time.
#pragma once

#include <cstdint>
#include <cstring>
#include <utility>

#include "runtime/bundle/Quantized.h"

namespace grok {

/// Copies the 32 elements of a fragment's row from logical order to the order
/// of the fragment or back: as pairs of elements the permutation is the
/// transposition of a 4 x 4 matrix, its own inverse.
inline void permuteFragmentRow(const void *in, void *out) {
  typedef uint32_t Pairs __attribute__((vector_size(16)));
  Pairs r[4], low[2], high[2], t[4];
  std::memcpy(r, in, sizeof(r));
  for (int i = 0; i < 2; ++i) {
    low[i] = __builtin_shufflevector(r[2 * i], r[2 * i + 1], 0, 4, 1, 5);
    high[i] = __builtin_shufflevector(r[2 * i], r[2 * i + 1], 2, 6, 3, 7);
  }
  t[0] = __builtin_shufflevector(low[0], low[1], 0, 1, 4, 5);
  t[1] = __builtin_shufflevector(low[0], low[1], 2, 3, 6, 7);
  t[2] = __builtin_shufflevector(high[0], high[1], 0, 1, 4, 5);
  t[3] = __builtin_shufflevector(high[0], high[1], 2, 3, 6, 7);
  std::memcpy(out, t, sizeof(t));
}
constexpr uint32_t fragmentRowBytes(Quantization q) {
  return kTileK * elementBytes(q);
}

/// The same of 32 codes, from logical order (quantizedElement) and back.
namespace detail {
typedef uint8_t Codes __attribute__((vector_size(kTileK)));
template <uint32_t (&kFrom)(uint32_t), int... I>
inline void permuteCodes(const void *in, void *out,
                         std::integer_sequence<int, I...>) {
  Codes c;
  std::memcpy(&c, in, sizeof(c));
  c = __builtin_shufflevector(c, c, int(kFrom(I))...);
  std::memcpy(out, &c, sizeof(c));
}
} // namespace detail
inline void permuteCodesToFragment(const uint8_t *in, uint8_t *out) {
  detail::permuteCodes<quantizedK>(in, out,
                                   std::make_integer_sequence<int, kTileK>());
}
inline void permuteCodesFromFragment(const uint8_t *in, uint8_t *out) {
  detail::permuteCodes<quantizedElement>(
      in, out, std::make_integer_sequence<int, kTileK>());
}

} // namespace grok
