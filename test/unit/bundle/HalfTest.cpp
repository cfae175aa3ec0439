#include "runtime/bundle/Half.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <vector>

namespace grok {
namespace {

std::vector<uint16_t> all16() {
  std::vector<uint16_t> all(65536);
  for (uint32_t i = 0; i < 65536; ++i)
    all[i] = uint16_t(i);
  return all;
}

double exactF16(uint16_t h) {
  int exponent = h >> 10 & 31;
  double m = h & 1023, sign = h & 0x8000 ? -1 : 1;
  return sign *
         (exponent ? std::ldexp(1024 + m, exponent - 25) : std::ldexp(m, -24));
}

TEST(Half, EveryF16IsExact) {
  std::vector<uint16_t> all = all16();
  std::vector<float> wide(all.size());
  halfToFloat(DType::kF16, all, wide.data());
  for (uint16_t h : all) {
    EXPECT_EQ(std::bit_cast<uint32_t>(wide[h]),
              std::bit_cast<uint32_t>(f16ToFloat(h)));
    if ((h & 0x7c00) == 0x7c00)
      EXPECT_EQ(std::isinf(wide[h]), (h & 0x3ff) == 0);
    else
      EXPECT_EQ(double(wide[h]), exactF16(h));
  }
}

TEST(Half, EveryValueSurvivesTheWayThroughFloat) {
  for (DType type : {DType::kF16, DType::kBF16}) {
    std::vector<uint16_t> all = all16(), back(all.size());
    std::vector<float> wide(all.size());
    halfToFloat(type, all, wide.data());
    EXPECT_FALSE(floatToHalf(type, wide, back.data()).has_value());
    for (uint16_t h : all)
      if (!std::isnan(wide[h]))
        EXPECT_EQ(back[h], h);
      else
        EXPECT_TRUE(std::isnan(halfToFloat(type, back[h])));
  }
}

TEST(Half, RoundsToNearestEven) {
  EXPECT_EQ(floatToF16(1.0f + 0x1p-11f), 0x3c00);     // tie, even below
  EXPECT_EQ(floatToF16(1.0f + 3 * 0x1p-11f), 0x3c02); // tie, even above
  EXPECT_EQ(floatToF16(1.0f + 0x1.002p-11f), 0x3c01); // above the tie
  EXPECT_EQ(floatToF16(0x1p-25f), 0);                 // tie with zero
  EXPECT_EQ(floatToF16(0x1.8p-24f), 2);               // subnormal tie
  EXPECT_EQ(floatToF16(0x1.ffep-15f), 0x0400);        // up to normal
  EXPECT_EQ(floatToF16(-0.0f), 0x8000);
  EXPECT_EQ(floatToBf16(1.0f + 0x1p-8f), 0x3f80);
  EXPECT_EQ(floatToBf16(1.0f + 3 * 0x1p-8f), 0x3f82);
}

TEST(Half, BulkEqualsOneByOne) {
  std::vector<float> in;
  for (uint64_t bits = 0; bits < uint64_t(1) << 32; bits += 65521)
    in.push_back(std::bit_cast<float>(uint32_t(bits)));
  std::vector<uint16_t> out(in.size());
  for (DType type : {DType::kF16, DType::kBF16}) {
    (void)floatToHalf(type, in, out.data());
    for (size_t i = 0; i < in.size(); ++i)
      EXPECT_EQ(out[i], floatToHalf(type, in[i]));
  }
}

TEST(Half, ReportsTheFirstFiniteOverflow) {
  float inf = std::numeric_limits<float>::infinity();
  uint16_t out[4];
  EXPECT_EQ(floatToHalf(DType::kF16,
                        std::vector<float>{inf, 65519, -65520, 1e9f}, out),
            2u);
  EXPECT_EQ(out[0], 0x7c00);
  EXPECT_EQ(out[1], 0x7bff);
  EXPECT_EQ(out[2], 0xfc00);
  EXPECT_EQ(floatToHalf(DType::kF16, std::vector<float>{inf, -inf, NAN}, out),
            std::nullopt);
  EXPECT_EQ(floatToHalf(DType::kBF16, std::vector<float>{1, 3.4e38f}, out), 1u);
}

} // namespace
} // namespace grok
