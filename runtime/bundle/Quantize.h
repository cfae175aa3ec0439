// Rows of weights as 8-bit codes and scales.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "runtime/bundle/Quantized.h"

namespace grok {

/// Scales of a row's blocks of inputs, bf16; all the same where the row is one
/// block.
using RowScales = std::array<uint16_t, kScaleBlocks>;

/// Symmetric, to nearest, ties to even, a scale for each block; `codes` as long
/// as `row`. The index of an element that is not finite, if there is one.
[[nodiscard]] std::optional<size_t> quantizeRow(Quantization q,
                                                std::span<const float> row,
                                                std::span<uint8_t> codes,
                                                RowScales &scales);

/// The values of codes.
void dequantizeRow(Quantization q, std::span<const uint8_t> codes,
                   const RowScales &scales, std::span<float> row);

/// How far stored values are from those that they stand for.
struct QuantizationError {
  double squares = 0;     // of the values
  double differences = 0; // squared
  uint64_t elements = 0;
  void add(std::span<const float> values, std::span<const float> stored);
  /// Norm of the differences over the norm of the values.
  double relative() const;
};

} // namespace grok
