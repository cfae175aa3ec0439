// Tensor-core products, conversions and the special-function unit: one function
// an instruction.
#pragma once

#include "codegen/Device/ptx/threads.h"

namespace grok::ptx {

/// c += a b on the tensor cores: a is 16 x 16 (rows), b 16 x 8 (columns), both
/// in the register order of mma.m16n8k16.
template <bool BF16>
GROK_DEVICE void mma(float (&c)[4], const U4 &a, uint32_t b0, uint32_t b1) {
  if constexpr (BF16)
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b0), "r"(b1));
  else
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b0), "r"(b1));
}

/// Two values to f16, `low` in the lower half.
GROK_DEVICE uint32_t toHalfPair(float low, float high) {
  uint32_t r;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
  return r;
}

GROK_DEVICE float fromHalf(uint16_t v) {
  float r;
  asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(v));
  return r;
}

/// Two values to bf16, `low` in the lower half.
GROK_DEVICE uint32_t toBFloatPair(float low, float high) {
  uint32_t r;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
  return r;
}

/// v within [-limit, limit]; NaN stays.
GROK_DEVICE float clamp(float v, float limit) {
  float r;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(v), "f"(limit));
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(r), "f"(-limit));
  return r;
}

/// 1 / v, relative error 2^-23.
GROK_DEVICE float reciprocalApprox(float v) {
  float r;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(v));
  return r;
}

/// 2^v, relative error 2^-22.
GROK_DEVICE float exp2Approx(float v) {
  float r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(v));
  return r;
}

/// log2(v) for normal v.
GROK_DEVICE float log2Approx(float v) {
  float r;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(v));
  return r;
}

/// sqrt(v), correctly rounded.
GROK_DEVICE float sqrtRn(float v) {
  float r;
  asm("sqrt.rn.f32 %0, %1;" : "=f"(r) : "f"(v));
  return r;
}

/// 1 / sqrt(v), relative error 2^-22.
GROK_DEVICE float rsqrtApprox(float v) {
  float r;
  asm("rsqrt.approx.f32 %0, %1;" : "=f"(r) : "f"(v));
  return r;
}

GROK_DEVICE float fma(float a, float b, float c) {
  return __builtin_fmaf(a, b, c);
}

} // namespace grok::ptx
