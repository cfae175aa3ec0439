// Float32 functions with known error; the target has no library of its own.
#pragma once

#include "codegen/Device/ptx/arithmetic.h"

namespace grok::device {

inline constexpr float kNegativeInfinity = -__builtin_inff();

/// e^x, relative error below 4e-7 for x in [-87, 87]; 0 below, infinity above.
GROK_DEVICE float exp(float x) {
  float t = x * 1.44269502f; // float32(log2 e); the rest of the product goes in
                             // to first order
  float rest = ptx::fma(x, 1.44269502f, -t) + x * 1.92596303e-8f;
  float e = ptx::exp2Approx(t);
  return x > -87.0f ? ptx::fma(e, rest * 0.693147182f, e) : (x == x ? 0.0f : x);
}

/// tanh(x), relative error below 1e-6; saturates for large |x|. Without
/// branches: both forms are computed.
GROK_DEVICE float tanh(float x) {
  float a = __builtin_fabsf(x);
  // Below 0.3 the Taylor series to x^11: the quotient would cancel.
  float s = x * x;
  float p = -1382.0f / 155925.0f;
  p = ptx::fma(p, s, 62.0f / 2835.0f);
  p = ptx::fma(p, s, -17.0f / 315.0f);
  p = ptx::fma(p, s, 2.0f / 15.0f);
  p = ptx::fma(p, s, -1.0f / 3.0f);
  float small = ptx::fma(x * s, p, x);
  float e = exp(-2.0f * a);
  float large =
      __builtin_copysignf((1.0f - e) * ptx::reciprocalApprox(1.0f + e), x);
  return a < 0.3f ? small : large;
}

/// erf(x), absolute error below 3e-7 (Abramowitz and Stegun 7.1.26 beyond 0.5,
/// the Maclaurin series below).
GROK_DEVICE float erf(float x) {
  float a = __builtin_fabsf(x);
  if (a < 0.5f) {
    float s = x * x;
    float p = -1.0f / 1320.0f;
    p = ptx::fma(p, s, 1.0f / 216.0f);
    p = ptx::fma(p, s, -1.0f / 42.0f);
    p = ptx::fma(p, s, 0.1f);
    p = ptx::fma(p, s, -1.0f / 3.0f);
    p = ptx::fma(p, s, 1.0f);
    return 1.12837917f * x * p;
  }
  float t = ptx::reciprocalApprox(ptx::fma(0.3275911f, a, 1.0f));
  float p = 1.061405429f;
  p = ptx::fma(p, t, -1.453152027f);
  p = ptx::fma(p, t, 1.421413741f);
  p = ptx::fma(p, t, -0.284496736f);
  p = ptx::fma(p, t, 0.254829592f);
  return __builtin_copysignf(1.0f - p * t * exp(-a * a), x);
}

/// cap * tanh(x / cap); a cap of 0 is off.
template <class Constant> GROK_DEVICE float softCap(float x, Constant cap) {
  return cap > 0 ? cap * tanh(x * (1.0f / cap)) : x;
}

/// GELU in the erf form or the tanh approximation.
template <bool Erf> GROK_DEVICE float gelu(float z) {
  if constexpr (Erf)
    return 0.5f * z * (1.0f + erf(z * 0.707106769f));
  float inner = 0.797884583f * ptx::fma(0.044715f * z * z, z, z);
  return 0.5f * z * (1.0f + tanh(inner));
}

/// Two values rounded to the storage type, the first in the lower half. f16
/// saturates at its largest finite value instead of overflowing.
template <bool BF16> GROK_DEVICE uint32_t to16Pair(float first, float second) {
  if constexpr (BF16)
    return ptx::toBFloatPair(first, second);
  return ptx::toHalfPair(ptx::clamp(first, 65504.0f),
                         ptx::clamp(second, 65504.0f));
}
template <bool BF16> GROK_DEVICE uint16_t to16(float v) {
  return uint16_t(to16Pair<BF16>(v, 0));
}
template <bool BF16> GROK_DEVICE float from16(uint16_t v) {
  if constexpr (BF16)
    return __builtin_bit_cast(float, uint32_t(v) << 16);
  return ptx::fromHalf(v);
}

/// What rounding to the storage type leaves of a value.
template <bool BF16> GROK_DEVICE float rest16(float v) {
  return v - from16<BF16>(to16<BF16>(v));
}
/// The same of two values that to16Pair has rounded, rounded in turn.
template <bool BF16>
GROK_DEVICE uint32_t rest16Pair(float first, float second, uint32_t rounded) {
  return to16Pair<BF16>(first - from16<BF16>(uint16_t(rounded)),
                        second - from16<BF16>(uint16_t(rounded >> 16)));
}

} // namespace grok::device
