// Shards with an index.
#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/checkpoint/Checkpoint.h"
#include "runtime/checkpoint/ShardedIndex.h"
#include "test/unit/checkpoint/CheckpointFiles.h"
#include "gtest/gtest.h"

namespace grok::test {
namespace {

constexpr const char *kIndex = "model.safetensors.index.json";
const std::string kFirst = "model-00001-of-00002.safetensors";
const std::string kSecond = "model-00002-of-00002.safetensors";
constexpr const char *kNorm = "model.norm.weight";

class Index : public ::testing::Test {
protected:
  void SetUp() override {
    bool first = true;
    for (const auto &[name, tensor] : tensors) {
      (first ? one : two)[name] = tensor;
      map[name] = first ? kFirst : kSecond;
      first = !first;
      bytes += tensor.data.size();
    }
  }
  std::string index() const {
    std::string text = absl::StrCat("{\n\"metadata\": {\"total_size\": ", bytes,
                                    "},\n\"weight_map\": {");
    const char *comma = "";
    for (const auto &[name, file] : map) {
      absl::StrAppend(&text, comma, "\n\"", name, "\": \"", file, "\"");
      comma = ",";
    }
    return text + "}}\n";
  }
  /// Line of a tensor in the index.
  std::string line(const std::string &name) const {
    return absl::StrCat(":", 4 + std::distance(map.begin(), map.find(name)),
                        ": key '", name, "'");
  }
  absl::Status open() {
    dir.write(kFirst, safetensors(one));
    dir.write(kSecond, safetensors(two));
    dir.write(kIndex, index());
    return openCheckpoint(dir.path(), model, &notes).status();
  }

  TempDir dir;
  ModelConfig model = smallModel(false);
  Tensors tensors = smallTensors(model), one, two;
  std::map<std::string, std::string> map;
  std::vector<std::string> notes;
  uint64_t bytes = 0;
};

TEST_F(Index, Opens) {
  EXPECT_TRUE(open().ok()) << open();
  EXPECT_TRUE(notes.empty());
}

TEST_F(Index, ReadsEveryTensor) {
  ASSERT_TRUE(open().ok());
  auto source = openCheckpoint(dir.path(), model);
  ASSERT_TRUE(source.ok());
  std::vector<float> row(4);
  for (auto [kind, name] : {std::pair(TensorKind::kFinalNorm, kNorm),
                            std::pair(TensorKind::kPreAttnNorm,
                                      "model.layers.0.pre_attn_norm.weight"),
                            std::pair(TensorKind::kPostMoeNorm,
                                      "model.layers.0.post_moe_norm.weight")}) {
    ASSERT_TRUE((*source)->readRow({kind, 0, 0}, 0, row).ok());
    EXPECT_EQ(row[3], bf16Value(tagOf(tensors, name), 3)) << name;
  }
}

TEST_F(Index, MissingShard) {
  ASSERT_TRUE(open().ok());
  std::filesystem::remove(dir / kSecond);
  EXPECT_TRUE(fails(openStatus(dir.path(), model),
                    {dir / kSecond, "file is missing", "download it"}));
}

TEST_F(Index, DamagedShardIsNamed) {
  ASSERT_TRUE(open().ok());
  dir.write(kSecond, "version https://git-lfs.github.com/spec/v1\n");
  EXPECT_TRUE(
      fails(openStatus(dir.path(), model), {dir / kSecond, "Git LFS pointer"}));
}

TEST_F(Index, ShardNumbersMustBeComplete) {
  one = tensors;
  two.clear();
  for (auto &[name, file] : map)
    file = kFirst;
  EXPECT_TRUE(fails(open(), {kIndex, kSecond, "all shards"}));
}

/// As many shards as numbers have digits for take no longer than their text.
TEST(ShardIndex, AllNumbersThatThereAre) {
  constexpr int kShards = 99999;
  std::string text = "{\"weight_map\": {";
  for (int i = 1; i <= kShards; ++i)
    absl::StrAppendFormat(&text,
                          "%s\"t%d\": \"model-%05d-of-%05d.safetensors\"",
                          i == 1 ? "" : ",\n", i, i, kShards);
  absl::StatusOr<ShardIndex> index = parseShardIndex(text + "}}", kIndex);
  ASSERT_TRUE(index.ok()) << index.status();
  EXPECT_EQ(index->files.size(), size_t(kShards));
}

TEST_F(Index, TensorNotInItsFile) {
  (one.count(kNorm) ? one : two).erase(kNorm);
  EXPECT_TRUE(fails(
      open(), {absl::StrCat(dir / kIndex, line(kNorm)), "no such tensor"}));
}

TEST_F(Index, TensorInTwoFiles) {
  one[kNorm] = two[kNorm] = tensors[kNorm];
  EXPECT_TRUE(fails(open(), {absl::StrCat("tensor '", kNorm, "'"),
                             "found a duplicate of that in", kIndex}));
}

TEST_F(Index, TensorNotMapped) {
  map.erase(kNorm);
  EXPECT_TRUE(fails(open(), {absl::StrCat("tensor '", kNorm, "'"), kIndex,
                             "download the index again"}));
}

TEST_F(Index, RotaryBuffersNeedNoMapping) {
  one["model.layers.0.self_attn.rotary_emb.inv_freq"] = bf16({2}, 60);
  EXPECT_TRUE(open().ok()) << open();
}

TEST_F(Index, DuplicateKey) {
  ASSERT_TRUE(open().ok());
  std::string text = index();
  text.insert(text.find("weight_map") + 14,
              absl::StrCat("\"", kNorm, "\": \"x.safetensors\","));
  dir.write(kIndex, text);
  EXPECT_TRUE(
      fails(openStatus(dir.path(), model),
            {absl::StrCat(dir / kIndex, line(kNorm)), "a second time"}));
}

TEST_F(Index, EscapingFileNames) {
  for (const char *bad :
       {"../model.safetensors", "/etc/passwd", "sub/m.safetensors", "..", ".",
        "", "a\\\\b.safetensors", "a\\u0000.safetensors"}) {
    map[kNorm] = bad;
    EXPECT_TRUE(fails(
        open(), {absl::StrCat(dir / kIndex, line(kNorm)), "own directory"}))
        << bad;
  }
}

TEST_F(Index, OtherContainer) {
  map[kNorm] = "pytorch_model-00001-of-00002.bin";
  EXPECT_TRUE(fails(open(), {absl::StrCat(dir / kIndex, line(kNorm)),
                             "a .safetensors file"}));
}

TEST_F(Index, LinkOutOfTheDirectory) {
  ASSERT_TRUE(open().ok());
  TempDir other;
  other.write("f", safetensors(two));
  std::filesystem::remove(dir / kSecond);
  std::filesystem::create_symlink(other / "f", dir / kSecond);
  EXPECT_TRUE(fails(openStatus(dir.path(), model),
                    {dir / kSecond, "found a link to", "copy the file there"}));
}

TEST_F(Index, LinkInTheDirectory) {
  ASSERT_TRUE(open().ok());
  std::filesystem::rename(dir / kSecond, dir / "data");
  std::filesystem::create_symlink("data", dir / kSecond);
  EXPECT_TRUE(openStatus(dir.path(), model).ok());
}

TEST_F(Index, LinksOfADownloadCache) {
  ASSERT_TRUE(open().ok());
  std::string snapshot = dir / "snapshots/0123";
  std::filesystem::create_directories(snapshot);
  std::filesystem::create_directory(dir / "blobs");
  for (const std::string &name : {kFirst, kSecond, std::string(kIndex)}) {
    std::filesystem::rename(dir / name, dir / ("blobs/" + name));
    std::filesystem::create_symlink("../../blobs/" + name,
                                    snapshot + "/" + name);
  }
  EXPECT_TRUE(openStatus(snapshot, model).ok()) << openStatus(snapshot, model);
}

TEST_F(Index, TotalSizeIsAdvice) {
  ++bytes;
  EXPECT_TRUE(open().ok());
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_EQ(notes[0], absl::StrCat(dir / kIndex, ": key 'total_size': found ",
                                   bytes, ", expected ", bytes - 1));
}

TEST_F(Index, OtherFilesAreNoted) {
  dir.write("model.safetensors", "whatever");
  EXPECT_TRUE(open().ok()) << open();
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].find("model.safetensors: not part"), std::string::npos);
}

TEST_F(Index, TwoIndexes) {
  ASSERT_TRUE(open().ok());
  dir.write("pytorch_model.safetensors.index.json", index());
  EXPECT_TRUE(
      fails(openStatus(dir.path(), model), {dir.path(), "found 2 indexes"}));
}

TEST_F(Index, NoWeightMap) {
  for (const char *text :
       {"{}", "[]", "{\"weight_map\": []}", "{\"weight_map\": null}"}) {
    dir.write(kIndex, text);
    EXPECT_TRUE(fails(openStatus(dir.path(), model),
                      {dir / kIndex, "key 'weight_map'"}))
        << text;
  }
}

TEST_F(Index, EmptyWeightMap) {
  dir.write(kIndex, "{\n\"weight_map\": {}}");
  EXPECT_TRUE(fails(openStatus(dir.path(), model),
                    {absl::StrCat(dir / kIndex, ":2: "), "found no tensor"}));
}

TEST_F(Index, TargetIsNoString) {
  dir.write(kIndex, "{\"weight_map\": {\n\"a\": 1}}");
  EXPECT_TRUE(fails(openStatus(dir.path(), model),
                    {absl::StrCat(dir / kIndex, ":2: key 'a': found number")}));
}

TEST_F(Index, MalformedJson) {
  dir.write(kIndex, "{\n\"weight_map\": {");
  EXPECT_TRUE(fails(openStatus(dir.path(), model),
                    {absl::StrCat(dir / kIndex, ":2:")}));
}

} // namespace
} // namespace grok::test
