#include "runtime/bundle/Half.h"

#include "runtime/bundle/VectorClones.h"

namespace grok {
namespace {

GROK_VECTOR_CLONES void f16ToFloats(const uint16_t *in, float *out,
                                    size_t count) {
  for (size_t i = 0; i < count; ++i) {
    uint32_t h = in[i], exponent = h & 0x7c00;
    uint32_t bits = ((h & 0x7fff) << 13) + (112u << 23);
    uint32_t special = bits + (112u << 23);
    uint32_t subnormal = std::bit_cast<uint32_t>(
        std::bit_cast<float>(bits + (1u << 23)) - 0x1p-14f);
    bits = exponent == 0x7c00 ? special : bits;
    bits = exponent == 0 ? subnormal : bits;
    out[i] = std::bit_cast<float>(bits | (h & 0x8000) << 16);
  }
}

GROK_VECTOR_CLONES void bf16ToFloats(const uint16_t *in, float *out,
                                     size_t count) {
  for (size_t i = 0; i < count; ++i)
    out[i] = std::bit_cast<float>(uint32_t(in[i]) << 16);
}

/// Nonzero if a finite value became infinite.
GROK_VECTOR_CLONES uint32_t floatsToF16(const float *in, uint16_t *out,
                                        size_t count) {
  uint32_t overflow = 0;
  for (size_t i = 0; i < count; ++i) {
    uint32_t bits = std::bit_cast<uint32_t>(in[i]), u = bits & 0x7fffffff;
    uint32_t normal = (u - (112u << 23) + 0xfff + ((u >> 13) & 1)) >> 13;
    uint32_t subnormal =
        std::bit_cast<uint32_t>(std::bit_cast<float>(u) + 0.5f) - 0x3f000000;
    uint32_t h = u < 0x38800000 ? subnormal : normal;
    h = u >= 0x477ff000 ? 0x7c00 : h;
    h = u > 0x7f800000 ? 0x7e00 | ((u >> 13) & 0x3ff) : h;
    overflow |= uint32_t(u >= 0x477ff000) & uint32_t(u < 0x7f800000);
    out[i] = uint16_t(h | (bits >> 16 & 0x8000));
  }
  return overflow;
}

GROK_VECTOR_CLONES uint32_t floatsToBf16(const float *in, uint16_t *out,
                                         size_t count) {
  uint32_t overflow = 0;
  for (size_t i = 0; i < count; ++i) {
    uint32_t bits = std::bit_cast<uint32_t>(in[i]), u = bits & 0x7fffffff;
    uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    uint32_t nan = (bits >> 16) | 0x40;
    overflow |= uint32_t(u >= 0x7f7f8000) & uint32_t(u < 0x7f800000);
    out[i] = uint16_t(u > 0x7f800000 ? nan : rounded);
  }
  return overflow;
}

bool isInfinite(DType type, uint16_t h) {
  return (h & 0x7fff) == (type == DType::kF16 ? 0x7c00 : 0x7f80);
}

} // namespace

void halfToFloat(DType type, std::span<const uint16_t> in, float *out) {
  if (type == DType::kF16)
    f16ToFloats(in.data(), out, in.size());
  else
    bf16ToFloats(in.data(), out, in.size());
}

std::optional<size_t> floatToHalf(DType type, std::span<const float> in,
                                  uint16_t *out) {
  uint32_t overflow = type == DType::kF16
                          ? floatsToF16(in.data(), out, in.size())
                          : floatsToBf16(in.data(), out, in.size());
  if (overflow)
    for (size_t i = 0; i < in.size(); ++i)
      if (isInfinite(type, out[i]) &&
          (std::bit_cast<uint32_t>(in[i]) & 0x7fffffff) < 0x7f800000)
        return i;
  return std::nullopt;
}

} // namespace grok
