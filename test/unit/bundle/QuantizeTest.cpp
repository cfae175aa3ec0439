// Codes of 8 bits: what they stand for, how values are rounded to them, and
// where they lie.
#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <set>
#include <vector>

#include "runtime/bundle/Fragment.h"
#include "runtime/bundle/Half.h"
#include "runtime/bundle/Quantize.h"
#include "runtime/bundle/Synthetic.h"

namespace grok {
namespace {

constexpr Quantization kEach[] = {Quantization::kInt8, Quantization::kFp8};

TEST(Fp8, CodesAreThoseOfE4M3) {
  EXPECT_EQ(fp8ToFloat(0x00), 0);
  EXPECT_EQ(fp8ToFloat(0x01), 0x1p-9f);
  EXPECT_EQ(fp8ToFloat(0x07), 7 * 0x1p-9f);
  EXPECT_EQ(fp8ToFloat(0x08), 0x1p-6f);
  EXPECT_EQ(fp8ToFloat(0x38), 1);
  EXPECT_EQ(fp8ToFloat(0xbc), -1.5f);
  EXPECT_EQ(fp8ToFloat(0x7e), 448);
}

/// Every value between two neighbouring codes goes to the nearer one, the one
/// in the middle to the even one.
TEST(Fp8, RoundsToNearestEven) {
  for (uint8_t code = 0; code != 0x7e; ++code) {
    float low = fp8ToFloat(code), high = fp8ToFloat(uint8_t(code + 1)),
          middle = (low + high) / 2;
    EXPECT_EQ(floatToFp8(low), code);
    EXPECT_EQ(floatToFp8(std::nextafter(middle, 0.0f)), code);
    EXPECT_EQ(floatToFp8(middle), code % 2 ? code + 1 : code);
    EXPECT_EQ(floatToFp8(std::nextafter(middle, high)), code + 1);
    EXPECT_EQ(floatToFp8(-high), (code + 1) | 0x80);
  }
}

TEST(Int8, RoundsToNearestEven) {
  for (int code = -127; code <= 127; ++code) {
    EXPECT_EQ(floatToInt8(float(code)), uint8_t(code));
    EXPECT_EQ(floatToInt8(float(code) + 0.499f), uint8_t(code));
    EXPECT_EQ(floatToInt8(float(code) - 0.5f),
              uint8_t(code % 2 ? code - 1 : code));
  }
}

std::vector<float> noise(uint64_t key, size_t count, float scale) {
  std::vector<float> v(count);
  for (size_t i = 0; i != count; ++i)
    v[i] = synthetic::unit(key, i) * scale;
  return v;
}

TEST(QuantizeRow, EachBlockHasItsScaleAndNoErrorBeyondHalfAStep) {
  constexpr size_t k = 512, width = k / kScaleBlocks;
  std::vector<float> row = noise(1, k, 1);
  for (size_t i = 0; i != k; ++i)
    row[i] *= std::exp2(float(i / width)); // blocks of other sizes
  for (Quantization q : kEach) {
    std::vector<uint8_t> codes(k);
    std::vector<float> back(k);
    RowScales scales;
    ASSERT_FALSE(quantizeRow(q, row, codes, scales));
    dequantizeRow(q, codes, scales, back);
    for (size_t i = 0; i != k; ++i) {
      float scale = bf16ToFloat(scales[i / width]),
            step = q == Quantization::kInt8
                       ? scale
                       : std::max(std::fabs(row[i]) / 8, scale * 0x1p-9f);
      EXPECT_LE(std::fabs(back[i] - row[i]), step * 0.5001f) << i;
      EXPECT_LE(std::fabs(row[i]), scale * 450);
    }
    EXPECT_GT(scales[7], scales[0]);
  }
}

TEST(QuantizeRow, IsOneBlockWhereBlocksWouldCutASteps) {
  for (size_t k : {40, 96, 320}) {
    std::vector<float> row = noise(2, k, 3);
    std::vector<uint8_t> codes(k);
    RowScales scales;
    ASSERT_FALSE(quantizeRow(Quantization::kInt8, row, codes, scales));
    EXPECT_EQ(std::set<uint16_t>(scales.begin(), scales.end()).size(), 1u);
  }
}

TEST(QuantizeRow, WhatIsStoredIsStoredAgain) {
  for (Quantization q : kEach) {
    std::vector<float> row = noise(3, 256, 1), once(256), twice(256);
    std::vector<uint8_t> codes(256), again(256);
    RowScales scales;
    ASSERT_FALSE(quantizeRow(q, row, codes, scales));
    dequantizeRow(q, codes, scales, once);
    ASSERT_FALSE(quantizeRow(q, once, again, scales));
    dequantizeRow(q, again, scales, twice);
    EXPECT_EQ(once, twice);
  }
}

TEST(QuantizeRow, TakesZerosAndTinyValues) {
  std::vector<float> row(256, 0.0f), back(256);
  row[3] = 1e-38f;
  std::vector<uint8_t> codes(256);
  RowScales scales;
  ASSERT_FALSE(quantizeRow(Quantization::kInt8, row, codes, scales));
  dequantizeRow(Quantization::kInt8, codes, scales, back);
  EXPECT_EQ(back, std::vector<float>(256, 0.0f));
}

TEST(QuantizeRow, NamesTheElementThatIsNotFinite) {
  for (float bad : {std::numeric_limits<float>::infinity(),
                    -std::numeric_limits<float>::infinity(),
                    std::numeric_limits<float>::quiet_NaN()}) {
    std::vector<float> row = noise(4, 256, 1);
    row[200] = bad;
    std::vector<uint8_t> codes(256);
    RowScales scales;
    EXPECT_EQ(quantizeRow(Quantization::kFp8, row, codes, scales), 200u);
  }
}

TEST(QuantizationError, IsRelativeToTheValues) {
  QuantizationError error;
  EXPECT_EQ(error.relative(), 0);
  std::vector<float> values(37, 2), stored(37, 1.5f);
  error.add(values, stored);
  EXPECT_NEAR(error.relative(), 0.25, 1e-6);
  EXPECT_EQ(error.elements, 37u);
}

TEST(QuantizationError, OfValuesWhoseSquaresAreNoFloats) {
  for (float value : {3e38f, 3e-38f}) {
    QuantizationError error;
    std::vector<float> values(37, value), stored(37, value * 0.75f);
    error.add(values, stored);
    EXPECT_NEAR(error.relative(), 0.25, 1e-6);
  }
}

TEST(QuantizedLayout, ElementsOfARowAreABijection) {
  uint8_t in[kTileK], out[kTileK], back[kTileK];
  for (uint32_t k = 0; k != kTileK; ++k) {
    in[k] = uint8_t(100 + k);
    EXPECT_EQ(quantizedK(quantizedElement(k)), k);
  }
  permuteCodesToFragment(in, out);
  for (uint32_t k = 0; k != kTileK; ++k)
    EXPECT_EQ(out[quantizedElement(k)], in[k]);
  permuteCodesFromFragment(out, back);
  EXPECT_TRUE(std::equal(in, in + kTileK, back));
}

TEST(QuantizedLayout, AWarpHasTheStepsOfOneBlockOfInputs) {
  constexpr uint32_t k = 1024;
  for (uint32_t input = 0; input != k; ++input) {
    uint32_t place = streamPlace(Quantization::kInt8, k, input);
    EXPECT_EQ(streamedInput(Quantization::kInt8, k, place), input);
    EXPECT_EQ(place / kTileK % kWarps, input / (k / kScaleBlocks));
    EXPECT_EQ(streamPlace(Quantization::kNone, k, input), input);
  }
  for (uint32_t input = 0; input != 96; ++input)
    EXPECT_EQ(streamPlace(Quantization::kInt8, 96, input), input);
}

TEST(QuantizedLayout, FragmentsAndScalesOfAnExtentDoNotOverlap) {
  for (Quantization q : {Quantization::kNone, Quantization::kInt8})
    for (uint32_t tiles : {1u, 7u, 8u, 19u})
      for (uint32_t steps : {1u, 17u}) {
        std::vector<int> uses(extentBytes(q, tiles, steps));
        auto use = [&](uint64_t begin, uint64_t bytes) {
          ASSERT_LE(begin + bytes, uses.size());
          for (uint64_t i = begin; i != begin + bytes; ++i)
            EXPECT_EQ(uses[i]++, 0);
        };
        for (uint32_t tile = 0; tile != tiles; ++tile) {
          if (q != Quantization::kNone)
            use(scaleOffset(q, tile, steps), kTileScaleBytes);
          for (uint32_t step = 0; step != steps; ++step)
            use(fragmentOffset(q, tile, step, tiles, steps, 16),
                fragmentBytes(q));
        }
        // What is left fills scales up to a whole fragment.
        EXPECT_LT(std::count(uses.begin(), uses.end(), 0),
                  int(fragmentBytes(q)));
      }
}

} // namespace
} // namespace grok
