// Grok-2's file set: common files and a file per rank and group.
#include <filesystem>
#include <string>

#include "absl/strings/str_format.h"
#include "runtime/checkpoint/Checkpoint.h"
#include "test/unit/checkpoint/CheckpointFiles.h"
#include "gtest/gtest.h"

namespace grok::test {
namespace {

const std::string kGate = "model.layers.0.block_sparse_moe.experts.1.w1.weight";
const std::string kDown = "model.layers.1.block_sparse_moe.experts.0.w2.weight";

std::string rankFile(unsigned group, unsigned rank) {
  return absl::StrFormat("pytorch_model-%05u-TP-%03u.safetensors", group, rank);
}
std::string commonFile(unsigned group) {
  return absl::StrFormat("pytorch_model-%05u-TP-common.safetensors", group);
}

/// Two layers of two experts in `ranks` slices, as in the release: w1 in group
/// 6, w2 in 7, w3 in 8, everything else common.
class TensorParallel : public ::testing::Test {
protected:
  void SetUp() override { cut(6, 2); }

  void cut(uint32_t width, uint32_t count) {
    model = smallModel(true);
    model.numLayers = 2;
    model.expertWidth = width;
    ranks = count;
    whole = smallTensors(model);
    files.clear();
    for (const auto &[name, tensor] : whole) {
      if (name.find(".experts.") == name.npos) {
        files[commonFile(name == "lm_head.weight")][name] = tensor;
        continue;
      }
      bool down = name.ends_with("w2.weight");
      unsigned group = down ? 7 : name.ends_with("w1.weight") ? 6 : 8;
      uint64_t slice = width / ranks;
      for (uint32_t rank = 0; rank < ranks; ++rank)
        files[rankFile(group, rank)][name] =
            down ? columnsOf(tensor, rank * slice, slice)
                 : rowsOf(tensor, rank * slice, slice);
    }
  }
  absl::Status open() {
    for (const auto &[name, tensors] : files)
      dir.write(name, safetensors(tensors));
    return openCheckpoint(dir.path(), model, &notes).status();
  }
  /// Every element of every expert matrix.
  void expectValues() {
    ASSERT_TRUE(open().ok()) << open();
    auto source = openCheckpoint(dir.path(), model);
    ASSERT_TRUE(source.ok());
    for (auto [kind, tail] : {std::pair(TensorKind::kExpertGate, "w1"),
                              std::pair(TensorKind::kExpertDown, "w2"),
                              std::pair(TensorKind::kExpertUp, "w3")})
      for (uint32_t layer = 0; layer < 2; ++layer)
        for (uint32_t expert = 0; expert < 2; ++expert) {
          uint32_t tag =
              tagOf(whole,
                    absl::StrFormat(
                        "model.layers.%u.block_sparse_moe.experts.%u.%s.weight",
                        layer, expert, tail));
          TensorShape shape = tensorShape(model, kind);
          std::vector<float> row(shape.columns);
          std::vector<uint16_t> half(shape.columns);
          for (uint32_t r = 0; r < shape.rows; ++r) {
            TensorId id{kind, layer, expert};
            ASSERT_TRUE((*source)->readRow(id, r, row).ok());
            ASSERT_TRUE((*source)->readRow16(id, r, DType::kBF16, half).ok());
            for (uint32_t c = 0; c < shape.columns; ++c) {
              EXPECT_EQ(row[c], bf16Value(tag, r * shape.columns + c));
              EXPECT_EQ(half[c], tag * 256 + r * shape.columns + c + 1);
            }
          }
        }
  }

  TempDir dir;
  ModelConfig model;
  uint32_t ranks = 0;
  Tensors whole;
  std::map<std::string, Tensors> files;
  std::vector<std::string> notes;
};

TEST_F(TensorParallel, Values) { expectValues(); }
TEST_F(TensorParallel, ThreeRanks) {
  cut(6, 3);
  expectValues();
}
/// D = F / 2: a slice of w1 and one of w2 have the same shape, and so has what
/// the wrong dimension would give; only values tell.
TEST_F(TensorParallel, SquareSlices) {
  cut(8, 2);
  expectValues();
}
TEST_F(TensorParallel, OneRank) {
  cut(6, 1);
  expectValues();
}

TEST_F(TensorParallel, MissingFirstRank) {
  files.erase(rankFile(7, 0));
  EXPECT_TRUE(fails(open(), {dir / rankFile(7, 0), "file is missing",
                             "1 of the 2 ranks", "download it"}));
}

TEST_F(TensorParallel, GapInTheRanks) {
  cut(6, 3);
  files.erase(rankFile(8, 1));
  EXPECT_TRUE(
      fails(open(), {dir / rankFile(8, 1), "file is missing", "2 of the 3"}));
}

/// No gap in group 6 itself: the other groups show that a rank is missing.
TEST_F(TensorParallel, MissingLastRank) {
  files.erase(rankFile(6, 1));
  EXPECT_TRUE(fails(open(), {dir / rankFile(6, 1), "file is missing"}));
}

/// Every name is there in every group, half of the elements is not.
TEST_F(TensorParallel, HalfOfTheRanksOfEveryGroup) {
  cut(8, 4);
  for (unsigned group : {6, 7, 8})
    for (unsigned rank : {2, 3})
      files.erase(rankFile(group, rank));
  EXPECT_TRUE(fails(open(), {dir / rankFile(6, 0), "w1.weight",
                             "found shape [4, 4] from 2 slices",
                             "expected shape [8, 4]", "ranks 2 and above"}));
}

TEST_F(TensorParallel, MissingGroup) {
  files.erase(rankFile(7, 0));
  files.erase(rankFile(7, 1));
  EXPECT_TRUE(fails(
      open(), {dir.path(), "w2.weight", "found nothing", "a file is missing"}));
}

TEST_F(TensorParallel, MissingCommonFile) {
  files.erase(commonFile(1));
  EXPECT_TRUE(fails(open(), {dir.path(), "'lm_head.weight'", "found nothing"}));
}

TEST_F(TensorParallel, OtherElementType) {
  files[rankFile(7, 1)][kDown].type = "F16";
  EXPECT_TRUE(fails(open(), {dir / rankFile(7, 1), kDown, "found F16",
                             "expected BF16", dir / rankFile(7, 0)}));
}

TEST_F(TensorParallel, OtherShape) {
  files[rankFile(6, 1)][kGate] = bf16({2, 4}, 1);
  EXPECT_TRUE(fails(open(), {dir / rankFile(6, 1), kGate, "found shape [2, 4]",
                             "expected [3, 4]"}));
}

/// As many elements, but not the same shape.
TEST_F(TensorParallel, TransposedSlice) {
  files[rankFile(6, 1)][kGate].shape = {4, 3};
  EXPECT_TRUE(
      fails(open(), {dir / rankFile(6, 1), kGate, "found shape [4, 3]"}));
}

TEST_F(TensorParallel, NameMissingInARank) {
  files[rankFile(6, 1)].erase(kGate);
  EXPECT_TRUE(fails(open(), {dir / rankFile(6, 1), kGate, "found nothing",
                             dir / rankFile(6, 0)}));
}

TEST_F(TensorParallel, NameOnlyInALaterRank) {
  files[rankFile(6, 0)].erase(kGate);
  EXPECT_TRUE(fails(
      open(), {dir / rankFile(6, 1), kGate, "expected none of this name"}));
}

TEST_F(TensorParallel, NameInCommonAndInARank) {
  files[commonFile(0)][kGate] = whole[kGate];
  EXPECT_TRUE(fails(open(), {dir / rankFile(6, 0), kGate, "found also in",
                             dir / commonFile(0)}));
}

TEST_F(TensorParallel, NameInTwoGroups) {
  for (unsigned rank : {0, 1})
    files[rankFile(8, rank)][kGate] = files[rankFile(6, rank)][kGate];
  EXPECT_TRUE(fails(open(), {dir / rankFile(8, 0), kGate, "found also in",
                             dir / rankFile(6, 0)}));
}

TEST_F(TensorParallel, NameInTwoCommonFiles) {
  files[commonFile(1)]["model.norm.weight"] = whole["model.norm.weight"];
  EXPECT_TRUE(fails(open(), {dir / commonFile(1), "'model.norm.weight'",
                             dir / commonFile(0)}));
}

/// Each slice the whole matrix: twice the elements.
TEST_F(TensorParallel, WholeTensorInEveryRank) {
  for (unsigned rank : {0, 1})
    files[rankFile(6, rank)][kGate] = whole[kGate];
  EXPECT_TRUE(fails(open(), {dir / rankFile(6, 0), kGate,
                             "found shape [12, 4] from 2 slices",
                             "expected shape [6, 4]"}));
}

TEST_F(TensorParallel, OnlyExpertsAreSplit) {
  std::string norm = "model.norm.weight";
  for (unsigned rank : {0, 1})
    files[rankFile(6, rank)][norm] = whole[norm];
  EXPECT_TRUE(fails(open(), {dir / rankFile(6, 0), norm, "only expert matrices",
                             "TP-common"}));
}

TEST_F(TensorParallel, SliceIsNoMatrix) {
  for (unsigned rank : {0, 1})
    files[rankFile(6, rank)][kGate] = bf16({12}, 1);
  EXPECT_TRUE(fails(open(), {dir / rankFile(6, 0), kGate, "found shape [12]"}));
}

TEST_F(TensorParallel, MisspelledFile) {
  for (const char *name : {"pytorch_model-00006-TP-2.safetensors",
                           "pytorch_model-6-TP-000.safetensors",
                           "pytorch_model-00006-TP-common2.safetensors",
                           "pytorch_model-00006-TP-+02.safetensors"}) {
    dir.write(name, "");
    EXPECT_TRUE(fails(open(), {dir.path(), name, "rename or remove it"}));
    std::filesystem::remove(dir / name);
  }
}

TEST_F(TensorParallel, DamagedFileIsNamed) {
  ASSERT_TRUE(open().ok());
  dir.write(rankFile(8, 1), "");
  EXPECT_TRUE(fails(openStatus(dir.path(), model),
                    {dir / rankFile(8, 1), "found an empty file"}));
}

TEST_F(TensorParallel, SingleFileBeside) {
  dir.write("model.safetensors", safetensors(whole));
  EXPECT_TRUE(fails(open(), {dir.path(), "found both", "remove the other"}));
}

/// An index cannot describe the set and is not believed.
TEST_F(TensorParallel, IndexIsNoted) {
  dir.write("model.safetensors.index.json", "{}");
  EXPECT_TRUE(open().ok()) << open();
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].find("index.json: not part"), std::string::npos);
}

} // namespace
} // namespace grok::test
