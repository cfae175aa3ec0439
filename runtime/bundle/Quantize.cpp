#include "runtime/bundle/Quantize.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "runtime/bundle/VectorClones.h"

namespace grok {
namespace {

/// Calls `block(index, first, count)` for each block of inputs of a row of k.
template <typename Block> void forEachBlock(size_t k, const Block &block) {
  size_t blocks = hasScaleBlocks(uint32_t(k)) ? kScaleBlocks : 1;
  for (size_t b = 0; b < blocks; ++b)
    block(b, b * (k / blocks), k / blocks);
}

/// The largest magnitude; one that is not finite if an element is not.
GROK_VECTOR_CLONES float largestMagnitude(const float *values, size_t count) {
  int32_t most = 0; // as bits, which order magnitudes
  for (size_t i = 0; i < count; ++i) {
    int32_t bits = std::bit_cast<int32_t>(values[i]) & 0x7fffffff;
    most = bits > most ? bits : most;
  }
  return std::bit_cast<float>(most);
}

/// codes = values * inverse.
GROK_VECTOR_CLONES void toInt8(const float *values, size_t count, float inverse,
                               uint8_t *codes) {
  for (size_t i = 0; i < count; ++i)
    codes[i] = floatToInt8(values[i] * inverse);
}
GROK_VECTOR_CLONES void toFp8(const float *values, size_t count, float inverse,
                              uint8_t *codes) {
  for (size_t i = 0; i < count; ++i)
    codes[i] = floatToFp8(values[i] * inverse);
}

GROK_VECTOR_CLONES void fromInt8(const uint8_t *codes, size_t count,
                                 float scale, float *values) {
  for (size_t i = 0; i < count; ++i)
    values[i] = int8ToFloat(codes[i]) * scale;
}
GROK_VECTOR_CLONES void fromFp8(const uint8_t *codes, size_t count, float scale,
                                float *values) {
  for (size_t i = 0; i < count; ++i)
    values[i] = fp8ToFloat(codes[i]) * scale;
}

/// Adds squares of a - b, of b = 0 those of a, in lanes, so that the order is
/// fixed and a vector wide. The square of a float may be no float.
constexpr size_t kLanes = 16;
GROK_VECTOR_CLONES void addSquares(const float *a, const float *b, size_t count,
                                   double *squares, double *differences) {
  auto add = [&](size_t lane, double value, double stored) {
    squares[lane] += value * value;
    differences[lane] += (value - stored) * (value - stored);
  };
  for (size_t i = 0; i + kLanes <= count; i += kLanes)
    for (size_t lane = 0; lane < kLanes; ++lane)
      add(lane, a[i + lane], b[i + lane]);
  for (size_t i = count / kLanes * kLanes; i < count; ++i)
    add(0, a[i], b[i]);
}

} // namespace

double QuantizationError::relative() const {
  return squares > 0 ? std::sqrt(differences / squares) : 0;
}

std::optional<size_t> quantizeRow(Quantization q, std::span<const float> row,
                                  std::span<uint8_t> codes, RowScales &scales) {
  bool finite = true;
  forEachBlock(row.size(), [&](size_t b, size_t first, size_t count) {
    float most = largestMagnitude(row.data() + first, count);
    finite = finite && std::isfinite(most);
    if (!finite)
      return;
    scales[b] = quantizationScale(q, most);
    if (count == row.size())
      scales.fill(scales[0]);
    auto convert = q == Quantization::kInt8 ? toInt8 : toFp8;
    convert(row.data() + first, count, 1 / scaleToFloat(scales[b]),
            codes.data() + first);
  });
  if (finite)
    return std::nullopt;
  return size_t(
      std::ranges::find_if_not(row, [](float v) { return std::isfinite(v); }) -
      row.begin());
}

void dequantizeRow(Quantization q, std::span<const uint8_t> codes,
                   const RowScales &scales, std::span<float> row) {
  auto convert = q == Quantization::kInt8 ? fromInt8 : fromFp8;
  forEachBlock(row.size(), [&](size_t b, size_t first, size_t count) {
    convert(codes.data() + first, count, scaleToFloat(scales[b]),
            row.data() + first);
  });
}

void QuantizationError::add(std::span<const float> values,
                            std::span<const float> stored) {
  double squared[kLanes] = {}, different[kLanes] = {};
  addSquares(values.data(), stored.data(), values.size(), squared, different);
  squares += std::accumulate(squared, squared + kLanes, 0.0);
  differences += std::accumulate(different, different + kLanes, 0.0);
  elements += values.size();
}

} // namespace grok
