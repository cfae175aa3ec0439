// 16-bit floating point: conversion of f16 and bf16 to and from float32, one
// value or many.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <span>

#include "runtime/bundle/ModelConfig.h"

namespace grok {

/// Exact.
constexpr float f16ToFloat(uint16_t h) {
  uint32_t magnitude = uint32_t(h & 0x7fff) << 13, exponent = h & 0x7c00;
  uint32_t bits = magnitude + (112u << 23);
  if (exponent == 0x7c00) // infinity, NaN
    bits += 112u << 23;
  if (exponent == 0) // subnormal: m * 2^-24 = (1 + m / 1024) * 2^-14 - 2^-14
    bits = std::bit_cast<uint32_t>(std::bit_cast<float>(bits + (1u << 23)) -
                                   0x1p-14f);
  return std::bit_cast<float>(bits | uint32_t(h & 0x8000) << 16);
}

constexpr float bf16ToFloat(uint16_t h) {
  return std::bit_cast<float>(uint32_t(h) << 16);
}

/// Rounded to nearest even; what is too large becomes infinity. NaN stays NaN.
constexpr uint16_t floatToF16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value), u = bits & 0x7fffffff;
  uint32_t normal = (u - (112u << 23) + 0xfff + ((u >> 13) & 1)) >> 13;
  // Adding one half aligns the subnormal's last place with float32's, so that
  // the addition does the rounding.
  uint32_t subnormal =
      std::bit_cast<uint32_t>(std::bit_cast<float>(u) + 0.5f) - 0x3f000000;
  uint32_t h = u < 0x38800000 ? subnormal : normal;
  h = u >= 0x477ff000 ? 0x7c00 : h; // 65520 and above
  h = u > 0x7f800000 ? 0x7e00 | ((u >> 13) & 0x3ff) : h;
  return uint16_t(h | (bits >> 16 & 0x8000));
}

constexpr uint16_t floatToBf16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  uint32_t nan = (bits >> 16) | 0x40;
  return uint16_t((bits & 0x7fffffff) > 0x7f800000 ? nan : rounded);
}

constexpr float halfToFloat(DType type, uint16_t h) {
  return type == DType::kF16 ? f16ToFloat(h) : bf16ToFloat(h);
}
constexpr uint16_t floatToHalf(DType type, float value) {
  return type == DType::kF16 ? floatToF16(value) : floatToBf16(value);
}

/// `out` has in.size() elements.
void halfToFloat(DType type, std::span<const uint16_t> in, float *out);
/// Index of the first finite value that became infinite, if there is one.
[[nodiscard]] std::optional<size_t>
floatToHalf(DType type, std::span<const float> in, uint16_t *out);

} // namespace grok
