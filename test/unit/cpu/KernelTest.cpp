// The kernels of every instruction set that this machine has: accurate, and the
// same bits in all of them.
#include <cmath>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "runtime/bundle/Half.h"
#include "runtime/bundle/Quantize.h"
#include "runtime/bundle/Synthetic.h"
#include "runtime/bundle/TileLayout.h"
#include "runtime/cpu/Kernels.h"
#include "gtest/gtest.h"

namespace grok::test {
namespace {

using cpu::Kernels;
using cpu::Storage;

std::vector<float> noise(uint64_t key, size_t count, float scale = 1) {
  std::vector<float> v(count);
  for (size_t i = 0; i != count; ++i)
    v[i] = synthetic::unit(key, i) * scale;
  return v;
}

using Function = void (*Kernels::*)(float *, uint32_t);

double worstError(Function function, double (*reference)(double), float from,
                  float to, bool relative) {
  constexpr uint32_t kPoints = 200001;
  std::vector<float> v(kPoints), x;
  for (uint32_t i = 0; i != kPoints; ++i)
    v[i] = from + (to - from) * (float(i) / (kPoints - 1));
  x = v;
  (cpu::bestKernels().*function)(v.data(), kPoints);
  double worst = 0;
  for (uint32_t i = 0; i != kPoints; ++i) {
    double exact = reference(x[i]), error = std::abs(v[i] - exact);
    worst = std::max(worst,
                     relative && exact != 0 ? error / std::abs(exact) : error);
  }
  return worst;
}

TEST(Functions, AreAccurate) {
  EXPECT_LT(worstError(&Kernels::exp, std::exp, -87, 88, true), 2.5e-7);
  EXPECT_LT(worstError(&Kernels::tanh, std::tanh, -12, 12, true), 3e-7);
  EXPECT_LT(worstError(&Kernels::tanh, std::tanh, -1e-3f, 1e-3f, true), 2e-7);
  EXPECT_LT(worstError(&Kernels::erf, std::erf, -6, 6, false), 2.5e-7);
}

TEST(Functions, SaturateInsteadOfOverflowing) {
  std::vector<float> v = {1e30f, -1e30f, 3000, 0};
  cpu::bestKernels().tanh(v.data(), 4);
  EXPECT_EQ(v, (std::vector<float>{1, -1, 1, 0}));
}

// The check values of the specification.
TEST(Functions, CapAndGeluHaveTheirCheckValues) {
  std::vector<float> cap = {60, -40, 10};
  cpu::bestKernels().scaleAndCap(cap.data(), 3, 1, 30);
  EXPECT_NEAR(cap[0], 28.920827402, 4e-6);
  EXPECT_NEAR(cap[1], -26.101849852, 4e-6);
  EXPECT_NEAR(cap[2], 9.645382126, 2e-6);
  const float pairs[] = {1, 1, -1, 1, 2.7f, 1};
  float out[3];
  cpu::bestKernels().gatedGelu(cpu::Gate::kTanhGelu, pairs, 3, out);
  EXPECT_NEAR(out[0], 0.841191991, 2e-7);
  EXPECT_NEAR(out[1], -0.158808009, 2e-7);
  EXPECT_NEAR(out[2], 2.691112405, 5e-7);
  cpu::bestKernels().gatedGelu(cpu::Gate::kErfGelu, pairs, 3, out);
  EXPECT_NEAR(out[0], 0.841344746, 2e-7);
  EXPECT_NEAR(out[1], -0.158655254, 2e-7);
  EXPECT_NEAR(out[2], 2.690639171, 5e-7);
}

Quantization quantizationOf(Storage storage) {
  return storage == Storage::kInt8  ? Quantization::kInt8
         : storage == Storage::kFp8 ? Quantization::kFp8
                                    : Quantization::kNone;
}

/// An extent of `tiles` tiles with random weights, and random operands.
struct Product {
  Storage storage;
  Quantization q;
  uint32_t tiles, steps, blockSteps;
  std::vector<float> weights; // [row][k], natural, as stored
  std::vector<uint8_t> extent;
  std::vector<std::vector<float>> x, permuted;

  Product(Storage storage, uint32_t tiles, uint32_t steps, uint32_t blockSteps,
          uint32_t columns)
      : storage(storage), q(quantizationOf(storage)), tiles(tiles),
        steps(steps), blockSteps(blockSteps),
        extent(extentBytes(q, tiles, steps)) {
    uint32_t k = steps * kTileK;
    weights = noise(7, size_t(tiles) * kTileRows * k);
    for (uint32_t row = 0; row != tiles * kTileRows; ++row)
      placeRow(row, std::span(weights).subspan(size_t(row) * k, k));
    for (uint32_t c = 0; c != columns; ++c) {
      x.push_back(noise(100 + c, k));
      permuted.emplace_back(k);
      cpu::bestKernels().permute(storage, x[c].data(), k, permuted[c].data());
    }
  }

  std::vector<float> run(const Kernels &kernels, uint32_t firstColumn,
                         uint32_t columns) const {
    return run(kernels, firstColumn, columns, 0, tiles);
  }
  std::vector<float> run(const Kernels &kernels, uint32_t firstColumn,
                         uint32_t columns, uint32_t firstTile,
                         uint32_t count) const {
    std::vector<float> out(size_t(columns) * count * kTileRows);
    std::vector<const float *> in;
    std::vector<float *> to;
    for (uint32_t c = 0; c != columns; ++c) {
      in.push_back(permuted[firstColumn + c].data());
      to.push_back(out.data() + size_t(c) * count * kTileRows);
    }
    kernels.matvec({storage, extent.data(), tiles, firstTile, count, steps,
                    blockSteps, groupOffset(q, 1, steps), columns, in.data(),
                    to.data(), nullptr});
    return out;
  }

private:
  uint8_t *fragment(uint32_t row, uint32_t place) {
    return extent.data() + fragmentOffset(q, row / kTileRows, place / kTileK,
                                          tiles, steps, blockSteps);
  }

  /// Rounds the row and puts it where the layout says.
  void placeRow(uint32_t row, std::span<float> values) {
    if (q != Quantization::kNone)
      return placeCodes(row, values);
    DType type = storage == Storage::kBF16 ? DType::kBF16 : DType::kF16;
    for (uint32_t k = 0; k != values.size(); ++k) {
      uint16_t half = floatToHalf(type, values[k]);
      values[k] = halfToFloat(type, half);
      std::memcpy(fragment(row, k) +
                      2 * fragmentElement(row % kTileRows, k % kTileK),
                  &half, 2);
    }
  }

  void placeCodes(uint32_t row, std::span<float> values) {
    std::vector<uint8_t> codes(values.size());
    RowScales scales;
    ASSERT_FALSE(quantizeRow(q, values, codes, scales));
    dequantizeRow(q, codes, scales, values);
    std::memcpy(extent.data() + scaleOffset(q, row / kTileRows, steps) +
                    row % kTileRows * sizeof(scales),
                scales.data(), sizeof(scales));
    for (uint32_t k = 0; k != values.size(); ++k) {
      uint32_t place = streamPlace(q, uint32_t(values.size()), k);
      fragment(
          row,
          place)[row % kTileRows * kTileK + quantizedElement(place % kTileK)] =
          codes[k];
    }
  }
};

class MatvecTest : public testing::TestWithParam<Storage> {};

TEST_P(MatvecTest, IsTheProduct) {
  for (auto [steps, blockSteps] : {std::pair(5, 2), {24, 16}}) {
    Product p(GetParam(), 11, uint32_t(steps), uint32_t(blockSteps), 1);
    std::vector<float> y = p.run(cpu::bestKernels(), 0, 1);
    for (uint32_t row = 0; row != y.size(); ++row) {
      double sum = 0;
      for (uint32_t k = 0; k != p.steps * kTileK; ++k)
        sum +=
            double(p.weights[size_t(row) * p.steps * kTileK + k]) * p.x[0][k];
      EXPECT_NEAR(y[row], sum, 1e-5) << "row " << row;
    }
  }
}

/// More columns than pass at once, and rows longer than a piece of a tile.
TEST_P(MatvecTest, IsTheSameInEveryInstructionSetAndBatch) {
  struct {
    uint32_t tiles, steps, blockSteps, columns;
  } shapes[] = {{9, 7, 3, 7}, {17, 37, 20, 18}, {3, 64, 64, 4}};
  for (auto [tiles, steps, blockSteps, columns] : shapes) {
    Product p(GetParam(), tiles, steps, blockSteps, columns);
    std::vector<float> together = p.run(cpu::bestKernels(), 0, columns);
    for (const Kernels *kernels : cpu::supportedKernels()) {
      EXPECT_EQ(p.run(*kernels, 0, columns), together) << kernels->name;
      for (uint32_t c = 0; c != columns; ++c) {
        std::vector<float> alone = p.run(*kernels, c, 1);
        EXPECT_TRUE(std::equal(alone.begin(), alone.end(),
                               together.begin() + ptrdiff_t(c * alone.size())))
            << kernels->name << ", " << tiles << " tiles, column " << c;
      }
    }
  }
}

TEST_P(MatvecTest, AShareOfTheTilesIsTheSame) {
  Product p(GetParam(), 19, 21, 8, 3);
  std::vector<float> all = p.run(cpu::bestKernels(), 0, 3);
  for (uint32_t first : {1u, 5u, 8u})
    for (uint32_t tiles : {1u, 6u, 11u}) {
      std::vector<float> share = p.run(cpu::bestKernels(), 0, 3, first, tiles);
      for (uint32_t c = 0; c != 3; ++c)
        EXPECT_TRUE(std::equal(
            share.begin() + ptrdiff_t(c * tiles * kTileRows),
            share.begin() + ptrdiff_t((c + 1) * tiles * kTileRows),
            all.begin() + ptrdiff_t((c * p.tiles + first) * kTileRows)))
            << tiles << " tiles from " << first << ", column " << c;
    }
}

INSTANTIATE_TEST_SUITE_P(Storages, MatvecTest,
                         testing::Values(Storage::kBF16, Storage::kF16,
                                         Storage::kInt8, Storage::kFp8));

TEST(Kernels, NormsSoftmaxAndDotsAreTheSameInEveryInstructionSet) {
  constexpr uint32_t n = 77;
  std::vector<float> v = noise(1, 96), g = noise(2, 96), w = noise(3, 5 * n);
  std::vector<float> expected;
  for (const Kernels *k : cpu::supportedKernels()) {
    std::vector<float> all(96), h = noise(4, 96), dots(5), soft = noise(5, 33);
    k->rmsNorm(v.data(), g.data(), n, 1e-5f, all.data());
    k->addRmsNorm(h.data(), v.data(), 0.7f, g.data(), n, 1e-5f);
    k->dotRows(w.data(), 5, n, v.data(), dots.data());
    k->softmax(soft.data(), 33);
    all.insert(all.end(), h.begin(), h.end());
    all.insert(all.end(), dots.begin(), dots.end());
    all.insert(all.end(), soft.begin(), soft.end());
    if (expected.empty())
      expected = all;
    EXPECT_EQ(all, expected) << k->name;
  }
}

/// Heads of 48 dimensions fill no register of AVX-512, and 70 positions no
/// block.
TEST(Kernels, AttentionIsTheSameInEveryInstructionSet) {
  constexpr uint32_t kHeads = 3, kStride = 48, kPositions = 70, kBlocks = 2;
  std::vector<float> q = noise(1, kHeads * kStride),
                     keys = noise(2, kBlocks * 64 * kStride),
                     values = noise(3, kBlocks * 64 * kStride), expected;
  for (const Kernels *k : cpu::supportedKernels()) {
    constexpr uint32_t kOut = kStride + cpu::kPartialExtra;
    std::vector<float> scores(kHeads * kBlocks * 64), out(kHeads * kOut);
    k->attention({.q = q.data(),
                  .heads = kHeads,
                  .headStride = kStride,
                  .keys = keys.data(),
                  .values = values.data(),
                  .blockStride = 64 * kStride,
                  .positions = kPositions,
                  .scale = 0.3f,
                  .cap = 30,
                  .temperature = 1.1f,
                  .scores = scores.data(),
                  .out = out.data(),
                  .outStride = kOut});
    if (expected.empty())
      expected = out;
    EXPECT_EQ(out, expected) << k->name;
  }
}

TEST(Kernels, DecodeEveryCodeExactly) {
  for (const Kernels *k : cpu::supportedKernels())
    for (Storage storage : {Storage::kInt8, Storage::kFp8})
      for (uint32_t first = 0; first != 1 << 8; first += kTileK) {
        uint8_t codes[kTileK];
        float out[kTileK];
        for (uint32_t e = 0; e != kTileK; ++e)
          codes[e] = uint8_t(first + e);
        k->expandFragments(storage, codes, 1, 1, out);
        for (uint32_t e = 0; e != kTileK; ++e)
          ASSERT_EQ(out[quantizedK(e)],
                    codeToFloat(quantizationOf(storage), codes[e]))
              << k->name << ", " << first + e;
      }
}

TEST(Kernels, PermutedIndexIsPermute) {
  for (Storage storage :
       {Storage::kBF16, Storage::kF16, Storage::kInt8, Storage::kFp8})
    for (uint32_t n : {96u, 512u}) {
      std::vector<float> in(n), out(n);
      for (uint32_t i = 0; i != n; ++i)
        in[i] = float(i);
      cpu::bestKernels().permute(storage, in.data(), n, out.data());
      for (uint32_t i = 0; i != n; ++i)
        ASSERT_EQ(out[cpu::permutedIndex(storage, n, i)], float(i));
    }
}

TEST(Kernels, WidenEveryF16Exactly) {
  for (const Kernels *k : cpu::supportedKernels())
    for (uint32_t first = 0; first != 1 << 16; first += kTileK) {
      uint16_t halves[kTileK];
      float out[kTileK];
      for (uint32_t e = 0; e != kTileK; ++e)
        halves[e] = uint16_t(first + e);
      k->expandFragments(Storage::kF16,
                         reinterpret_cast<const uint8_t *>(halves), 1, 1, out);
      for (uint32_t e = 0; e != kTileK; ++e) {
        float exact = halfToFloat(DType::kF16, halves[e]),
              value = out[fragmentK(e)];
        if (std::isnan(exact))
          ASSERT_TRUE(std::isnan(value)) << k->name << ", " << halves[e];
        else
          ASSERT_EQ(value, exact) << k->name << ", " << halves[e];
      }
    }
}

} // namespace
} // namespace grok::test
