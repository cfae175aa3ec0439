// Weights in 8 bits, int8 or fp8 (e4m3): a code times the bf16 scale of its row
// and block of inputs. What the packer, the executors and the filling kernel
// compute alike.
//
// A row has kScaleBlocks blocks of equally many inputs where these are whole
// k32 steps, else one block. The steps of the blocks take turns in the stream:
// a warp sums every kWarps-th step of it, and those are all of one block. So a
// warp scales its sum once, and no product of two blocks is added before.
//
// Each group of tiles of an extent begins with its tiles' scales, [tile]
// [row][block], and zeros up to a whole fragment. A fragment is half as long as
// one of 16-bit elements; a lane's 8 bytes are two k16 steps.
#pragma once

#include "runtime/bundle/TileLayout.h"

// Compiled for the device too: nothing of a library is included.
namespace grok {

/// How the elements of the streamed matrices are stored: as 16-bit floats, or
/// as codes of 8 bits with scales.
enum class Quantization : uint32_t { kNone, kInt8, kFp8 };

inline constexpr uint32_t kScaleBlocks = kWarps;
/// Bytes of a tile's scales.
inline constexpr uint32_t kTileScaleBytes = kTileRows * kScaleBlocks * 2;

constexpr uint32_t elementBytes(Quantization q) {
  return q == Quantization::kNone ? 2 : 1;
}
constexpr uint32_t fragmentBytes(Quantization q) {
  return kTileRows * kTileK * elementBytes(q);
}
/// Bytes before the fragments of a group of `tiles`.
constexpr uint32_t groupScaleBytes(Quantization q, uint32_t tiles) {
  return q == Quantization::kNone
             ? 0
             : uint32_t(alignUp(tiles * kTileScaleBytes, fragmentBytes(q)));
}

/// Byte of an extent where group `group` begins; those before it are full.
constexpr uint64_t groupOffset(Quantization q, uint32_t group, uint32_t steps) {
  return group * (groupScaleBytes(q, kGroupTiles) +
                  uint64_t(kGroupTiles) * steps * fragmentBytes(q));
}
constexpr uint64_t extentBytes(Quantization q, uint32_t tiles, uint32_t steps) {
  uint32_t rest = tiles % kGroupTiles;
  return groupOffset(q, tiles / kGroupTiles, steps) + groupScaleBytes(q, rest) +
         uint64_t(rest) * steps * fragmentBytes(q);
}
/// Byte of an extent where the fragment (tile, step of the stream) begins.
constexpr uint64_t fragmentOffset(Quantization q, uint32_t tile, uint32_t step,
                                  uint32_t tiles, uint32_t steps,
                                  uint32_t blockSteps) {
  uint32_t group = tile / kGroupTiles, left = tiles - group * kGroupTiles;
  return fragmentIndex(tile, step, tiles, steps, blockSteps) *
             fragmentBytes(q) +
         uint64_t(group) * groupScaleBytes(q, kGroupTiles) +
         groupScaleBytes(q, left < kGroupTiles ? left : kGroupTiles);
}
/// Byte of an extent where a tile's scales begin.
constexpr uint64_t scaleOffset(Quantization q, uint32_t tile, uint32_t steps) {
  return groupOffset(q, tile / kGroupTiles, steps) +
         tile % kGroupTiles * kTileScaleBytes;
}
/// The same of row `row` of the extent.
constexpr uint64_t rowScaleOffset(Quantization q, uint32_t row,
                                  uint32_t steps) {
  return scaleOffset(q, row / kTileRows, steps) +
         row % kTileRows * kScaleBlocks * 2;
}

/// Byte (0..31) of element k of a fragment's row of 8-bit elements: a lane has
/// elements k, k + 8 beside each other, whose 16-bit forms are in two
/// registers.
constexpr uint32_t quantizedElement(uint32_t k) {
  return k % 8 / 2 * 8 + k / 16 * 4 + k % 2 * 2 + k % 16 / 8;
}
/// The inverse.
constexpr uint32_t quantizedK(uint32_t byte) {
  return byte % 8 / 4 * 16 + byte % 2 * 8 + byte / 8 * 2 + byte % 4 / 2;
}

/// Whether rows of k elements have kScaleBlocks blocks of inputs.
constexpr bool hasScaleBlocks(uint32_t k) {
  return k % (kScaleBlocks * kTileK) == 0;
}
/// The input of a row of k that is element `place` of the stream; places past
/// the end are themselves.
constexpr uint32_t streamedInput(Quantization q, uint32_t k, uint32_t place) {
  if (q == Quantization::kNone || !hasScaleBlocks(k) || place >= k)
    return place;
  uint32_t step = place / kTileK;
  return step % kScaleBlocks * (k / kScaleBlocks) +
         step / kScaleBlocks * kTileK + place % kTileK;
}
/// The inverse.
constexpr uint32_t streamPlace(Quantization q, uint32_t k, uint32_t input) {
  if (q == Quantization::kNone || !hasScaleBlocks(k) || input >= k)
    return input;
  uint32_t block = input / (k / kScaleBlocks), in = input % (k / kScaleBlocks);
  return (in / kTileK * kScaleBlocks + block) * kTileK + in % kTileK;
}

/// 1.5 * 2^23: adding it rounds to an integer, ties to even, which the low bits
/// then hold.
inline constexpr float kRoundToInteger = 12582912.0f;

constexpr float int8ToFloat(uint8_t code) { return float(int8_t(code)); }
/// Exact; the codes for NaN are never stored.
constexpr float fp8ToFloat(uint8_t code) {
  uint32_t magnitude = code & 0x7f;
  float value =
      magnitude < 8 // subnormal
          ? float(magnitude) * 0x1p-9f
          : __builtin_bit_cast(float, (magnitude << 20) + (120u << 23));
  return code & 0x80 ? -value : value;
}
constexpr float codeToFloat(Quantization q, uint8_t code) {
  return q == Quantization::kInt8 ? int8ToFloat(code) : fp8ToFloat(code);
}

/// To nearest, ties to even; -127.5 < v < 127.5.
constexpr uint8_t floatToInt8(float v) {
  float sum = v + kRoundToInteger;
  return uint8_t(__builtin_bit_cast(uint32_t, sum));
}
/// To nearest, ties to even; |v| < 464.
constexpr uint8_t floatToFp8(float v) {
  uint32_t bits = __builtin_bit_cast(uint32_t, v), u = bits & 0x7fffffff;
  uint32_t normal = ((u + 0x7ffff + (u >> 20 & 1)) >> 20) - (120u << 3);
  float sum = __builtin_bit_cast(float, u) * 512.0f + kRoundToInteger;
  uint32_t subnormal = __builtin_bit_cast(uint32_t, sum) & 0xf;
  uint32_t magnitude = u < (121u << 23) ? subnormal : normal; // 2^-6
  return uint8_t(magnitude | (bits >> 24 & 0x80));
}
constexpr uint8_t floatToCode(Quantization q, float v) {
  return q == Quantization::kInt8 ? floatToInt8(v) : floatToFp8(v);
}

/// The scale, as bf16, of a block whose largest magnitude is `most`: what makes
/// it the largest code's, to nearest, ties to even (so that codes which have
/// that largest one get their scale back); not so small that its inverse
/// overflows.
constexpr uint16_t quantizationScale(Quantization q, float most) {
  float scale = most * (q == Quantization::kInt8 ? 1.0f / 127 : 1.0f / 448);
  scale = scale > 0x1p-100f ? scale : 0x1p-100f;
  uint32_t bits = __builtin_bit_cast(uint32_t, scale);
  return uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
constexpr float scaleToFloat(uint16_t scale) {
  return __builtin_bit_cast(float, uint32_t(scale) << 16);
}

} // namespace grok
