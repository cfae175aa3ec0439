// Codes of 8 bits to pairs of 16-bit operands, exactly: a few instructions for
// four of them.
#pragma once

#include "codegen/Device/ptx/threads.h"

namespace grok::ptx {

/// a b + c of two bf16 each.
GROK_DEVICE uint32_t fmaBFloatPair(uint32_t a, uint32_t b, uint32_t c) {
  uint32_t r;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c));
  return r;
}

/// a - b of two f16 each.
GROK_DEVICE uint32_t subtractHalfPair(uint32_t a, uint32_t b) {
  uint32_t r;
  asm("sub.f16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
  return r;
}

/// (a & b) ^ c, (a & b) | c
GROK_DEVICE uint32_t andXor(uint32_t a, uint32_t b, uint32_t c) {
  uint32_t r;
  asm("lop3.b32 %0, %1, %2, %3, 0x6a;" : "=r"(r) : "r"(a), "r"(b), "r"(c));
  return r;
}
GROK_DEVICE uint32_t andOr(uint32_t a, uint32_t b, uint32_t c) {
  uint32_t r;
  asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(r) : "r"(a), "r"(b), "r"(c));
  return r;
}

/// The int8 in bytes 0 and 2, in units of kInt8Unit. With its sign bit turned
/// over a code is the code + 128, whose eight bits are, in f16, the end of
/// 1024's mantissa; in bf16 their value by 2^-133, subnormal or not.
template <bool BF16> GROK_DEVICE uint32_t int8Pair(uint32_t codes) {
  if constexpr (BF16)
    return fmaBFloatPair(andXor(codes, 0x00ff00ff, 0x00800080), 0x7f007f00,
                         0xc000c000); // by 2^127, less 128 by 2^-6
  else
    return subtractHalfPair(andXor(codes, 0x00ff00ff, 0x64806480), 0x64806480);
}
template <bool BF16> inline constexpr float kInt8Unit = BF16 ? 0x1p-6f : 1.0f;

/// Two fp8 (e4m3) that lie in bytes 0 and 1.
GROK_DEVICE uint32_t fp8ToHalfPair(uint32_t codes) {
  uint32_t r;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(r) : "h"(uint16_t(codes)));
  return r;
}

/// The fp8 (e4m3) in bytes 0 and 2. Their bits in the places of a bf16's
/// exponent and mantissa are the value by 2^-120, subnormal or not.
template <bool BF16> GROK_DEVICE uint32_t fp8LowPair(uint32_t codes) {
  if constexpr (BF16)
    return fmaBFloatPair(andOr(codes << 8, 0x80008000, codes << 4 & 0x07f007f0),
                         0x7b807b80, 0);
  else
    return fp8ToHalfPair(__nvvm_prmt(codes, 0, 0x4420));
}
/// Those in bytes 1 and 3.
template <bool BF16> GROK_DEVICE uint32_t fp8HighPair(uint32_t codes) {
  if constexpr (BF16)
    return fmaBFloatPair(andOr(codes, 0x80008000, codes >> 4 & 0x07f007f0),
                         0x7b807b80, 0);
  else
    return fp8ToHalfPair(__nvvm_prmt(codes, 0, 0x4431));
}

} // namespace grok::ptx
