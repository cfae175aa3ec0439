#include <algorithm>
#include <cstring>
#include <gtest/gtest.h>
#include <set>
#include <vector>

#include "runtime/bundle/BlobWalk.h"
#include "runtime/bundle/Fragment.h"
#include "runtime/bundle/Half.h"
#include "runtime/bundle/PlanCheck.h"
#include "test/unit/bundle/TestModel.h"

namespace grok {
namespace {

TEST(Layout, FragmentElementIsABijection) {
  std::set<uint32_t> seen;
  for (uint32_t row = 0; row < kTileRows; ++row)
    for (uint32_t k = 0; k < kTileK; ++k) {
      uint32_t e = fragmentElement(row, k);
      EXPECT_LT(e, 256u);
      EXPECT_TRUE(seen.insert(e).second);
      EXPECT_EQ(e / 32, row); // a row is 64 contiguous bytes
      EXPECT_EQ(fragmentK(e % 32), k);
    }
}

TEST(Layout, PermutingARowIsFragmentElementAndItsOwnInverse) {
  uint16_t in[kTileK], out[kTileK], back[kTileK];
  for (uint32_t k = 0; k < kTileK; ++k)
    in[k] = uint16_t(1000 + k);
  permuteFragmentRow(in, out);
  for (uint32_t k = 0; k < kTileK; ++k)
    EXPECT_EQ(out[fragmentElement(0, k)], in[k]);
  permuteFragmentRow(out, back);
  EXPECT_EQ(std::memcmp(in, back, sizeof(in)), 0);
}

TEST(Layout, FragmentIndexIsABijection) {
  for (uint32_t tiles : {1u, 7u, 8u, 9u, 19u})
    for (uint32_t steps : {1u, 15u, 16u, 17u, 40u}) {
      std::vector<bool> seen(size_t(tiles) * steps);
      for (uint32_t t = 0; t < tiles; ++t)
        for (uint32_t s = 0; s < steps; ++s) {
          uint64_t i = fragmentIndex(t, s, tiles, steps, 16);
          ASSERT_LT(i, seen.size());
          EXPECT_FALSE(seen[i]);
          seen[i] = true;
        }
    }
}

TEST(Layout, EveryTensorRowIsOneMatrixRow) {
  ModelConfig m = test::learnedModel();
  for (MatrixKind kind :
       {MatrixKind::kQkv, MatrixKind::kAttnOut, MatrixKind::kGateUp,
        MatrixKind::kDenseGateUp, MatrixKind::kDown, MatrixKind::kDenseDown,
        MatrixKind::kHead}) {
    std::set<std::pair<TensorKind, uint32_t>> seen;
    uint32_t rows = matrixShape(m, kind).rows;
    for (uint32_t row = 0; row < rows; ++row) {
      TensorRow from = matrixRow(m, kind, row);
      EXPECT_LT(from.row, tensorShape(m, from.tensor).rows);
      EXPECT_TRUE(seen.insert({from.tensor, from.row}).second);
    }
    EXPECT_EQ(seen.size(), rows);
  }
}

/// A 16-bit element of the blob as the definition of the layout has it.
uint16_t elementAt(const std::string &blob, const PlanTables &plan,
                   const PlanMatrix &matrix, const SlotExtent &extent,
                   uint32_t layer, uint32_t row, uint32_t k) {
  uint64_t fragment =
      fragmentIndex(row / kTileRows - extent.tileBegin, k / kTileK,
                    extent.tileCount, matrix.steps, plan.blockSteps);
  uint64_t at = extent.offset + layer * plan.banks[extent.bank].layerStride +
                fragment * kFragmentBytes +
                fragmentElement(row % kTileRows, k % kTileK) * 2;
  uint16_t value;
  std::memcpy(&value, blob.data() + at, 2);
  return value;
}

void checkExtent(const std::string &blob, const ModelConfig &model,
                 const PlanTables &plan, const PlanMatrix &matrix,
                 const SlotExtent &extent, uint32_t layer,
                 TensorSource &source) {
  MatrixShape shape = matrixShape(model, matrix.kind);
  for (uint32_t row = extent.tileBegin * kTileRows;
       row < (extent.tileBegin + extent.tileCount) * kTileRows; ++row) {
    std::vector<uint16_t> expected(matrix.steps * kTileK, 0);
    if (row < shape.rows) {
      TensorRow from = matrixRow(model, matrix.kind, row);
      ASSERT_TRUE(source
                      .readRow16({from.tensor, layer, matrix.expert}, from.row,
                                 plan.dtype, std::span(expected).first(shape.k))
                      .ok());
    }
    for (uint32_t k = 0; k < expected.size(); ++k)
      ASSERT_EQ(elementAt(blob, plan, matrix, extent, layer, row, k),
                expected[k])
          << matrixName(matrix.kind, matrix.expert) << " " << row << " " << k;
  }
}

TEST(PackBlob, PutsEveryElementWhereTheLayoutSays) {
  for (const ModelConfig &model : {test::learnedModel(), test::hashModel()}) {
    PlanTables plan = test::makePlan(model);
    std::string blob = test::packSynthetic(model, plan, 7);
    ASSERT_EQ(blob.size(), plan.blobBytes);
    auto source = syntheticSource(model, 7);
    for (const PlanMatrix &matrix : plan.matrices)
      for (const SlotExtent &extent : matrix.slots)
        for (uint32_t l = 0;
             l < (isPerLayer(matrix.kind) ? model.numLayers : 1); ++l)
          checkExtent(blob, model, plan, matrix, extent, l, *source);
  }
}

TEST(PackBlob, PaddingIsZeroAndPartsAscend) {
  ModelConfig model = test::learnedModel();
  PlanTables plan = test::makePlan(model);
  std::string blob = test::packSynthetic(model, plan, 7);
  uint64_t at = 0, parts = 0;
  auto expectZeros = [&](uint64_t end) {
    ASSERT_LE(at, end);
    EXPECT_TRUE(std::all_of(blob.begin() + at, blob.begin() + end,
                            [](char c) { return c == 0; }));
  };
  ASSERT_TRUE(forEachBlobPart(model, plan, [&](const BlobPart &part) {
                expectZeros(part.offset);
                at = part.offset + part.bytes;
                ++parts;
                return absl::OkStatus();
              }).ok());
  expectZeros(plan.blobBytes);
  EXPECT_GT(parts, uint64_t(plan.matrices.size()));
}

TEST(PackBlob, StopsWhenTheSinkDoes) {
  ModelConfig model = test::hashModel();
  auto sink = [](std::span<const uint8_t>) {
    return absl::ResourceExhaustedError("full");
  };
  EXPECT_EQ(
      packBlob(model, test::makePlan(model), *syntheticSource(model, 1), sink)
          .message(),
      "full");
}

TEST(Synthetic, IsAFunctionOfSeedTensorAndIndex) {
  ModelConfig model = test::learnedModel();
  auto one = syntheticSource(model, 1), again = syntheticSource(model, 1),
       other = syntheticSource(model, 2);
  std::set<std::vector<float>> seen;
  test::forEachTensor(model, [&](const TensorId &id) {
    TensorShape shape = tensorShape(model, id.kind);
    std::vector<float> a(shape.columns), b(shape.columns), c(shape.columns);
    uint32_t row = shape.rows - 1;
    ASSERT_TRUE(one->readRow(id, row, a).ok());
    ASSERT_TRUE(again->readRow(id, row, b).ok());
    ASSERT_TRUE(other->readRow(id, row, c).ok());
    EXPECT_EQ(a, b);
    EXPECT_NE(a, c);
    EXPECT_TRUE(seen.insert(a).second) << tensorName(id);
  });
}

TEST(Synthetic, TiedHeadIsTheEmbedding) {
  ModelConfig model = test::hashModel();
  auto source = syntheticSource(model, 3);
  std::vector<float> a(model.hiddenSize), b(model.hiddenSize);
  ASSERT_TRUE(source->readRow({TensorKind::kHead, 0, 0}, 5, a).ok());
  ASSERT_TRUE(source->readRow({TensorKind::kTokenEmbedding, 0, 0}, 5, b).ok());
  EXPECT_EQ(a, b);
}

TEST(Synthetic, RejectsRowsThatAreNotThere) {
  ModelConfig model = test::hashModel();
  std::vector<float> row(model.hiddenSize);
  EXPECT_FALSE(syntheticSource(model, 3)
                   ->readRow({TensorKind::kHead, 0, 0}, model.vocabSize, row)
                   .ok());
}

} // namespace
} // namespace grok
