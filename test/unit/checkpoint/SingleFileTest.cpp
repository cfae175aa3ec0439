// A directory with one file: which files count, the tensors' names, shapes and
// element types.
#include <cstring>
#include <filesystem>
#include <string>

#include <sys/stat.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "runtime/bundle/Half.h"
#include "runtime/checkpoint/Checkpoint.h"
#include "test/unit/checkpoint/CheckpointFiles.h"
#include "gtest/gtest.h"

namespace grok::test {
namespace {

constexpr const char *kFile = "model.safetensors";
constexpr const char *kQuery = "model.layers.0.self_attn.q_proj.weight";

/// A directory with the small model's file, changed by the test.
class SingleFile : public ::testing::Test {
protected:
  void SetUp() override { use(smallModel(false)); }
  void use(const ModelConfig &config) {
    model = config;
    tensors = smallTensors(model);
  }
  absl::Status open() {
    dir.write(kFile, safetensors(tensors));
    return openStatus(dir.path(), model);
  }
  std::unique_ptr<TensorSource> source() {
    dir.write(kFile, safetensors(tensors));
    absl::StatusOr<std::unique_ptr<TensorSource>> opened =
        openCheckpoint(dir.path(), model);
    EXPECT_TRUE(opened.ok()) << opened.status();
    return opened.ok() ? *std::move(opened) : nullptr;
  }

  TempDir dir;
  ModelConfig model;
  Tensors tensors;
};

TEST_F(SingleFile, Opens) { EXPECT_TRUE(open().ok()) << open(); }

TEST_F(SingleFile, EmptyDirectory) {
  EXPECT_TRUE(fails(openStatus(dir.path(), model),
                    {dir.path(), "found no weight file", kFile}));
}

TEST_F(SingleFile, NoDirectory) {
  EXPECT_TRUE(fails(openStatus(dir / "absent", model),
                    {dir / "absent", "found nothing"}));
}

TEST_F(SingleFile, DirectoryIsAFile) {
  dir.write("f", "x");
  EXPECT_TRUE(fails(openStatus(dir / "f", model), {dir / "f", "found a file"}));
}

TEST_F(SingleFile, WeightFilesOfUnknownNames) {
  dir.write("weights-a.safetensors", safetensors(tensors));
  dir.write("weights-b.safetensors", safetensors(tensors));
  EXPECT_TRUE(fails(openStatus(dir.path(), model),
                    {"found 'weights-a.safetensors' and 1 more", kFile}));
}

TEST_F(SingleFile, ShardsWithoutIndex) {
  dir.write("model-00001-of-00001.safetensors", safetensors(tensors));
  EXPECT_TRUE(
      fails(openStatus(dir.path(), model), {"the shards' index is missing"}));
}

TEST_F(SingleFile, OtherContainers) {
  dir.write("consolidated.00.pth", "PK");
  EXPECT_TRUE(fails(openStatus(dir.path(), model),
                    {"found no weight file", "name one of PyTorch's files"}));
}

TEST_F(SingleFile, FileIsADirectory) {
  std::filesystem::create_directory(dir / kFile);
  EXPECT_TRUE(
      fails(openStatus(dir.path(), model), {dir / kFile, "found a directory"}));
}

TEST_F(SingleFile, FileIsAPipe) {
  ASSERT_EQ(mkfifo((dir / kFile).c_str(), 0600), 0);
  EXPECT_TRUE(fails(openStatus(dir.path(), model),
                    {dir / kFile, "found a special file"}));
}

TEST_F(SingleFile, DamagedFileIsNamed) {
  dir.write(kFile, "<html>");
  EXPECT_TRUE(fails(openStatus(dir.path(), model), {dir / kFile, "web page"}));
}

TEST_F(SingleFile, OtherFilesAreNoted) {
  dir.write(kFile, safetensors(tensors));
  dir.write("golden.safetensors", withHeader("{}"));
  std::vector<std::string> notes;
  ASSERT_TRUE(openCheckpoint(dir.path(), model, &notes).ok());
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_EQ(notes[0], (dir / "golden.safetensors") +
                          ": not part of the checkpoint, ignored");
}

TEST_F(SingleFile, TrailingSlash) {
  dir.write(kFile, safetensors(tensors));
  EXPECT_TRUE(openStatus(dir.path() + "/", model).ok());
}

TEST_F(SingleFile, NoTensors) {
  tensors.clear();
  EXPECT_TRUE(fails(open(), {dir.path(), "found no tensor"}));
}

TEST_F(SingleFile, NamesOfNoSpelling) {
  tensors = {{"encoder.weight", bf16({2}, 0)}};
  EXPECT_TRUE(fails(open(), {"'encoder.weight'", "model.layers.N.self_attn"}));
}

TEST_F(SingleFile, MissingTensor) {
  tensors.erase(kQuery);
  EXPECT_TRUE(fails(open(), {dir.path(), kQuery, "layers.0.query",
                             "found nothing", "expected shape [4, 4]"}));
}

TEST_F(SingleFile, MissingLayer) {
  model.numLayers = 2;
  EXPECT_TRUE(fails(open(), {"model.layers.1.", "found nothing"}));
}

TEST_F(SingleFile, HugeConfigFailsAtOnce) {
  model.numLayers = model.numExperts = 4'000'000'000;
  model.hash = HashRouting{2, 1, 3, 5, 4, 0, 0, 0};
  tensors.erase("model.layers.0.block_sparse_moe.gate.weight");
  EXPECT_TRUE(fails(open(), {"experts.2.", "found nothing"}));
}

TEST_F(SingleFile, SurplusLayer) {
  tensors["model.layers.1.self_attn.q_proj.weight"] = bf16({4, 4}, 50);
  EXPECT_TRUE(fails(open(), {dir / kFile, "model.layers.1.self_attn.q_proj",
                             "a model of 1 layers and 2 experts"}));
}

TEST_F(SingleFile, LayerNumbersAreSpelledOneWay) {
  tensors["model.layers.00.self_attn.q_proj.weight"] = bf16({4, 4}, 50);
  EXPECT_TRUE(fails(open(), {"model.layers.00.self_attn"}));
}

TEST_F(SingleFile, UnknownTensorIsNamed) {
  tensors["model.layers.0.self_attn.q_proj.bias"] = bf16({4}, 50);
  EXPECT_TRUE(
      fails(open(), {dir / kFile, "model.layers.0.self_attn.q_proj.bias",
                     "no such tensor"}));
}

TEST_F(SingleFile, TwoSpellingsAtOnce) {
  tensors["model.layers.0.attn.q_proj.weight"] = bf16({4, 4}, 50);
  EXPECT_TRUE(
      fails(open(), {"model.layers.0.attn.q_proj", "beside names like"}));
}

TEST_F(SingleFile, RotaryBuffersAreIgnored) {
  tensors["model.layers.0.self_attn.rotary_emb.inv_freq"] = {
      "F64", {1}, "12345678"};
  EXPECT_TRUE(open().ok()) << open();
}

TEST_F(SingleFile, ShapeMismatch) {
  tensors[kQuery] = bf16({4, 5}, 0);
  EXPECT_TRUE(fails(open(), {dir / kFile, kQuery, "found shape [4, 5]",
                             "expected shape [4, 4]"}));
}

TEST_F(SingleFile, TransposedMatrix) {
  tensors["model.layers.0.self_attn.k_proj.weight"] = bf16({4, 2}, 0);
  EXPECT_TRUE(fails(open(), {"found shape [4, 2]", "expected shape [2, 4]"}));
}

TEST_F(SingleFile, RankMismatch) {
  tensors["model.norm.weight"] = bf16({1, 4}, 0);
  EXPECT_TRUE(fails(open(), {"found shape [1, 4]", "expected shape [4]"}));
}

TEST_F(SingleFile, EmptyTensor) {
  tensors[kQuery] = bf16({0, 4}, 0);
  EXPECT_TRUE(fails(open(), {"found shape [0, 4]"}));
}

TEST_F(SingleFile, UnreadElementType) {
  tensors[kQuery] = {"F64", {4, 4}, std::string(128, 'a')};
  EXPECT_TRUE(fails(open(), {dir / kFile, kQuery, "element type F64",
                             "F32, F16 or BF16", "convert"}));
}

TEST_F(SingleFile, TiedHeadMayBeStored) {
  tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"];
  EXPECT_TRUE(open().ok()) << open();
}

TEST_F(SingleFile, TiedHeadMustBeTheEmbedding) {
  Tensor head = tensors["model.embed_tokens.weight"];
  head.data[3 * 8] ^= 1;
  tensors["lm_head.weight"] = head;
  EXPECT_TRUE(fails(open(), {dir / kFile, "'lm_head.weight' (head)", "row 3",
                             "tie_word_embeddings"}));
}

TEST_F(SingleFile, TiedHeadReadsTheEmbedding) {
  std::unique_ptr<TensorSource> weights = source();
  ASSERT_TRUE(weights);
  uint32_t tag = tagOf(tensors, "model.embed_tokens.weight");
  std::vector<float> row(4);
  ASSERT_TRUE(weights->readRow({TensorKind::kHead, 0, 0}, 2, row).ok());
  for (uint64_t i = 0; i < 4; ++i)
    EXPECT_EQ(row[i], bf16Value(tag, 8 + i));
}

TEST_F(SingleFile, UntiedHeadMustBeThere) {
  use(smallModel(true));
  tensors.erase("lm_head.weight");
  EXPECT_TRUE(fails(open(), {"'lm_head.weight'", "found nothing",
                             "expected shape [5, 4]", "tie_word_embeddings"}));
}

TEST_F(SingleFile, DenseMlpMustBeThere) {
  use(smallModel(true));
  for (const char *name : {"gate_proj", "up_proj", "down_proj"})
    tensors.erase(absl::StrCat("model.layers.0.mlp.", name, ".weight"));
  EXPECT_TRUE(fails(open(), {"model.layers.0.mlp.gate_proj.weight",
                             "found nothing", "residual_moe"}));
}

TEST_F(SingleFile, DenseMlpMustBeConfigured) {
  tensors["model.layers.0.mlp.gate_proj.weight"] = bf16({3, 4}, 50);
  EXPECT_TRUE(fails(open(), {dir / kFile, "model.layers.0.mlp.gate_proj.weight",
                             "residual_moe"}));
}

TEST_F(SingleFile, LearnedRouterMustBeThere) {
  tensors.erase("model.layers.0.block_sparse_moe.gate.weight");
  EXPECT_TRUE(fails(open(), {"block_sparse_moe.gate.weight", "found nothing",
                             "expert_routing"}));
}

TEST_F(SingleFile, HashRoutingHasNoRouter) {
  tensors = smallTensors(model);
  model.hash = HashRouting{2, 1, 3, 5, 4, 0, 0, 0};
  EXPECT_TRUE(
      fails(open(), {"block_sparse_moe.gate.weight", "expert_routing"}));
  tensors.erase("model.layers.0.block_sparse_moe.gate.weight");
  EXPECT_TRUE(open().ok()) << open();
}

TEST_F(SingleFile, RouterMayBeFloat32) {
  std::vector<float> values = {1.25f, -2e-30f, 3e30f, 0.1f, 5, 6, 7, 8};
  tensors["model.layers.0.block_sparse_moe.gate.weight"] = {
      "F32",
      {2, 4},
      std::string(reinterpret_cast<const char *>(values.data()), 32)};
  std::unique_ptr<TensorSource> weights = source();
  ASSERT_TRUE(weights);
  std::vector<float> row(4);
  ASSERT_TRUE(weights->readRow({TensorKind::kRouter, 0, 0}, 0, row).ok());
  EXPECT_EQ(std::memcmp(row.data(), values.data(), 16), 0);
}

/// A byte of a tensor that nothing uses pushes the others to odd addresses.
TEST_F(SingleFile, UnalignedData) {
  std::vector<float> values = {1.5f, -0.0f, 1e-40f, 7};
  tensors["model.norm.weight"] = {
      "F32",
      {4},
      std::string(reinterpret_cast<const char *>(values.data()), 16)};
  tensors["a.rotary_emb.inv_freq"] = {"U8", {1}, "x"};
  std::unique_ptr<TensorSource> weights = source();
  ASSERT_TRUE(weights);
  std::vector<float> row(4);
  ASSERT_TRUE(weights->readRow({TensorKind::kFinalNorm, 0, 0}, 0, row).ok());
  EXPECT_EQ(std::memcmp(row.data(), values.data(), 16), 0);
  uint32_t tag = tagOf(smallTensors(model), kQuery);
  ASSERT_TRUE(weights->readRow({TensorKind::kQuery, 0, 0}, 1, row).ok());
  for (uint64_t i = 0; i < 4; ++i)
    EXPECT_EQ(row[i], bf16Value(tag, 4 + i));
  std::vector<uint16_t> half(4);
  ASSERT_TRUE(
      weights->readRow16({TensorKind::kQuery, 0, 0}, 1, DType::kBF16, half)
          .ok());
  EXPECT_EQ(half[2], tag * 256 + 7);
}

TEST_F(SingleFile, Float16Source) {
  const uint16_t bits[4] = {0x3c01, 0x0001, 0xfbff, 0x8000};
  tensors["model.norm.weight"] = {
      "F16", {4}, std::string(reinterpret_cast<const char *>(bits), 8)};
  std::unique_ptr<TensorSource> weights = source();
  ASSERT_TRUE(weights);
  std::vector<float> row(4);
  TensorId norm{TensorKind::kFinalNorm, 0, 0};
  ASSERT_TRUE(weights->readRow(norm, 0, row).ok());
  for (size_t i = 0; i < 4; ++i)
    EXPECT_EQ(row[i], f16ToFloat(bits[i]));
  std::vector<uint16_t> half(4);
  ASSERT_TRUE(weights->readRow16(norm, 0, DType::kF16, half).ok());
  EXPECT_EQ(std::memcmp(half.data(), bits, 8), 0);
  ASSERT_TRUE(weights->readRow16(norm, 0, DType::kBF16, half).ok());
  EXPECT_EQ(half[0], 0x3f80); // 1 + 2^-10 rounds to 1
}

TEST_F(SingleFile, ValueTooLargeForFloat16) {
  float values[4] = {1, 2, 1e6f, 4};
  tensors["model.norm.weight"] = {
      "F32", {4}, std::string(reinterpret_cast<const char *>(values), 16)};
  std::unique_ptr<TensorSource> weights = source();
  ASSERT_TRUE(weights);
  std::vector<uint16_t> half(4);
  EXPECT_TRUE(fails(
      weights->readRow16({TensorKind::kFinalNorm, 0, 0}, 0, DType::kF16, half),
      {dir.path(), "'final_norm' [0, 2]", "bf16"}));
}

TEST_F(SingleFile, MisuseIsAnInternalError) {
  std::unique_ptr<TensorSource> weights = source();
  ASSERT_TRUE(weights);
  std::vector<float> row(4), wide(5);
  auto code = [&](TensorKind kind, uint32_t index, std::span<float> out) {
    return weights->readRow({kind, 0, 0}, index, out).code();
  };
  EXPECT_EQ(code(TensorKind::kDenseUp, 0, row), absl::StatusCode::kInternal);
  EXPECT_EQ(code(TensorKind::kHead, 5, row), absl::StatusCode::kInternal);
  EXPECT_EQ(code(TensorKind::kHead, 0, wide), absl::StatusCode::kInternal);
}

/// The small model's tensors under other names.
Tensors renamed(const Tensors &tensors,
                const std::vector<std::pair<std::string, std::string>> &rules) {
  Tensors out;
  for (const auto &[name, tensor] : tensors) {
    std::string to = name;
    for (const auto &[from, into] : rules)
      to = absl::StrReplaceAll(to, {{from, into}});
    out[to] = tensor;
  }
  return out;
}

const std::vector<std::pair<std::string, std::string>> kToAttn = {
    {"self_attn", "attn"},         {"block_sparse_moe", "moe_block"},
    {"norm.weight", "norm.scale"}, {".w1.", ".linear."},
    {".w2.", ".linear_1."},        {".w3.", ".linear_v."}};
const std::vector<std::pair<std::string, std::string>> kToTransformer = {
    {"model.embed_tokens", "transformer.in_out_embed"},
    {"model.norm", "transformer.rms_norm"},
    {"model.layers", "transformer.decoder_layer"},
    {"self_attn.q_proj", "multi_head_attention.query"},
    {"self_attn.k_proj", "multi_head_attention.key"},
    {"self_attn.v_proj", "multi_head_attention.value"},
    {"self_attn.o_proj", "multi_head_attention.linear"},
    {"block_sparse_moe.gate", "router"},
    {"block_sparse_moe.experts.", "moe."},
    {".w1.", ".linear."},
    {".w2.", ".linear_1."},
    {".w3.", ".linear_v."},
    {"pre_attn_norm", "rms_norm"},
    {"post_attn_norm", "rms_norm_1"},
    {"pre_moe_norm", "rms_norm_2"},
    {"post_moe_norm", "rms_norm_3"}};

/// Every spelling gives the same values; the names decide which is which.
TEST_F(SingleFile, SpellingsAgree) {
  Tensors original = tensors;
  std::unique_ptr<TensorSource> first = source();
  for (const auto &rules : {kToAttn, kToTransformer}) {
    tensors = renamed(original, rules);
    std::unique_ptr<TensorSource> other = source();
    ASSERT_TRUE(first && other);
    for (TensorKind kind :
         {TensorKind::kTokenEmbedding, TensorKind::kFinalNorm,
          TensorKind::kPreAttnNorm, TensorKind::kPostAttnNorm,
          TensorKind::kPreMoeNorm, TensorKind::kPostMoeNorm, TensorKind::kQuery,
          TensorKind::kKey, TensorKind::kValue, TensorKind::kAttnOut,
          TensorKind::kRouter, TensorKind::kExpertGate, TensorKind::kExpertUp,
          TensorKind::kExpertDown}) {
      std::vector<float> a(tensorShape(model, kind).columns), b(a.size());
      ASSERT_TRUE(first->readRow({kind, 0, 0}, 0, a).ok());
      ASSERT_TRUE(other->readRow({kind, 0, 0}, 0, b).ok());
      EXPECT_EQ(a, b) << tensorName({kind, 0, 0});
    }
  }
}

TEST_F(SingleFile, NormScaleBelongsToOneSpelling) {
  tensors = renamed(tensors, {{"model.norm.weight", "model.norm.scale"}});
  EXPECT_TRUE(fails(open(), {"'model.norm.weight'", "found nothing"}));
}

TEST_F(SingleFile, DenseMlpNeedsTheSpellingThatHasIt) {
  use(smallModel(true));
  tensors = renamed(tensors, kToTransformer);
  EXPECT_TRUE(fails(open(), {"residual_moe", "self_attn"}));
}

} // namespace
} // namespace grok::test
