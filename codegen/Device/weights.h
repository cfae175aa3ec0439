// Streamed weights as operands of a product: 16-bit elements as they lie in the
// ring, codes of 8 bits converted in registers, whose scales come before a
// group's tiles.
#pragma once

#include "codegen/Device/ptx/convert.h"
#include "codegen/Device/ring.h"
#include "runtime/bundle/Quantized.h"

namespace grok::device {

/// How the streamed weights of a plan are stored, and what a lane does with its
/// part of a k32 step of a tile.
template <class B> struct Weights {
  static constexpr Quantization kCodes = Quantization(B::Plan::kQuantization);
  static constexpr bool kScaled = kCodes != Quantization::kNone;
  static constexpr uint32_t kFragment = fragmentBytes(kCodes);
  static constexpr uint32_t kLaneBytes = kFragment / 32;
  static_assert(kCodes != Quantization::kFp8 || B::Plan::kSm >= 90,
                "fp8 needs the instructions of sm_90");

  struct Step {
    uint32_t word[kLaneBytes / 4];
  };

  /// What a code of 1 becomes as an operand.
  static constexpr float kUnit =
      kCodes == Quantization::kInt8 ? ptx::kInt8Unit<B::Model::kBF16> : 1.0f;

  /// {b0, b1} of the first k16 step, then of the second, in units of kUnit.
  static GROK_DEVICE ptx::U4 operand(const Step &step) {
    if constexpr (kScaled) {
      ptx::U4 wide;
      widen(step.word[0], wide.x, wide.y);
      widen(step.word[1], wide.z, wide.w);
      return wide;
    } else {
      return {step.word[0], step.word[1], step.word[2], step.word[3]};
    }
  }

  /// The input that element `place` of the stream's order of a row of kWidth
  /// is; an operand lies in that order.
  template <uint32_t kWidth> static GROK_DEVICE uint32_t input(uint32_t place) {
    return streamedInput(kCodes, kWidth, place);
  }

private:
  /// Four codes, of elements k, k + 8, k + 1, k + 9: the pair of k, and the one
  /// of k + 8, in units of kUnit. Exact.
  static GROK_DEVICE void widen(uint32_t codes, uint32_t &first,
                                uint32_t &second) {
    constexpr bool kBF16 = B::Model::kBF16;
    if constexpr (kCodes == Quantization::kInt8) {
      first = ptx::int8Pair<kBF16>(codes);
      second = ptx::int8Pair<kBF16>(codes >> 8);
    } else {
      first = ptx::fp8LowPair<kBF16>(codes);
      second = ptx::fp8HighPair<kBF16>(codes);
    }
  }
};

/// The steps that a warp loads at once.
template <class B, uint32_t kCount> struct WeightSteps {
  typename Weights<B>::Step step[kCount];
};

/// The scales of a group's tiles that are the lane's: of tile row lane / 4 in
/// the block of inputs of its warp's steps. It holds those of tiles lane % 4
/// and lane % 4 + 4, the latter in the upper half. Nothing for 16-bit weights.
template <class B> struct GroupScales {
  using W = Weights<B>;
  uint32_t held = 0;

  /// Takes those of the group of `tiles` that begins here in the ring.
  GROK_DEVICE void take(B &block, RingReader<B> &ring, uint32_t tiles,
                        Phase phase) {
    if constexpr (W::kScaled) {
      const uint32_t bytes = groupScaleBytes(W::kCodes, tiles);
      ring.await(block, bytes, phase);
      held = load(block, ring, tiles, block.lane() % 4) |
             load(block, ring, tiles, block.lane() % 4 + 4) << 16;
      ring.advance(block, bytes);
    }
  }

  /// What the sums of tile `tile`, which is the same in the whole warp, are to
  /// be multiplied with.
  GROK_DEVICE float of(B &block, uint32_t tile) const {
    uint32_t pair = ptx::shuffle(held, (block.lane() & ~3u) | (tile & 3));
    return __builtin_bit_cast(float,
                              tile < 4 ? pair << 16 : pair & 0xffff0000u) *
           (1 / W::kUnit);
  }

private:
  static GROK_DEVICE uint32_t load(B &block, const RingReader<B> &ring,
                                   uint32_t tiles, uint32_t tile) {
    uint32_t offset =
        (tile * kTileRows + block.lane() / 4) * kScaleBlocks + block.warp();
    return ptx::loadSharedHalfIf(tile < tiles, ring.address(block, offset * 2));
  }
};

} // namespace grok::device
