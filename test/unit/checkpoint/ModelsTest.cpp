// The project's small models, every row of every tensor, against a reading of
// the files that shares nothing with the readers.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "nlohmann/json.hpp"
#include "runtime/checkpoint/Checkpoint.h"
#include "test/unit/checkpoint/CheckpointFiles.h"
#include "gtest/gtest.h"

namespace grok::test {
namespace {

using Json = nlohmann::json;

std::string modelsDirectory() {
  const char *directory = std::getenv("GROK_TEST_MODELS");
  return directory ? directory : "test/models";
}
std::string contents(const std::string &path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

ModelConfig readConfig(const std::string &directory) {
  Json json = Json::parse(contents(directory + "/config.json"));
  ModelConfig model;
  model.vocabSize = json["vocab_size"];
  model.hiddenSize = json["hidden_size"];
  model.numLayers = json["num_hidden_layers"];
  model.numHeads = json["num_attention_heads"];
  model.numKvHeads = json["num_key_value_heads"];
  model.headDim = json["head_dim"];
  model.numExperts = json.contains("num_experts") ? json["num_experts"]
                                                  : json["num_local_experts"];
  bool residual = json.value("residual_moe", false);
  model.expertWidth =
      residual ? json["moe_intermediate_size"] : json["intermediate_size"];
  model.denseWidth = residual ? uint32_t(json["intermediate_size"]) : 0;
  model.tiedHead = !residual;
  if (json.contains("expert_routing"))
    model.hash = HashRouting{};
  return model;
}

/// Whole tensors: the bf16 data of all weight files, slices joined by hand.
std::map<std::string, Tensor> readAll(const std::string &directory) {
  std::vector<std::string> names;
  for (const auto &file : std::filesystem::directory_iterator(directory))
    if (std::string name = file.path().filename().string();
        name.ends_with(".safetensors") && name != "golden.safetensors")
      names.push_back(name);
  std::ranges::sort(names);
  std::map<std::string, Tensor> all;
  for (const std::string &name : names) {
    std::string bytes = contents(directory + "/" + name);
    uint64_t length;
    std::memcpy(&length, bytes.data(), 8);
    Json header = Json::parse(bytes.substr(8, length));
    for (auto &[key, entry] : header.items()) {
      if (key == "__metadata__")
        continue;
      uint64_t begin = entry["data_offsets"][0], end = entry["data_offsets"][1];
      Tensor part{entry["dtype"], entry["shape"],
                  bytes.substr(8 + length + begin, end - begin)};
      auto [it, isNew] = all.emplace(key, part);
      if (isNew)
        continue;
      Tensor &whole = it->second;
      if (!key.ends_with("w2.weight")) { // below what is there
        whole.data += part.data;
        whole.shape[0] += part.shape[0];
        continue;
      }
      std::string joined; // to the right of what is there
      uint64_t left = whole.shape[1] * 2, right = part.shape[1] * 2;
      for (uint64_t row = 0; row < whole.shape[0]; ++row)
        joined += whole.data.substr(row * left, left) +
                  part.data.substr(row * right, right);
      whole.data = joined;
      whole.shape[1] += part.shape[1];
    }
  }
  return all;
}

struct Expected {
  TensorId id;
  std::string name;
};

/// The names as the two spellings of these models have them.
std::vector<Expected> expectedNames(const ModelConfig &m, bool selfAttn) {
  std::string norm = selfAttn ? "weight" : "scale";
  std::vector<Expected> out = {
      {{TensorKind::kTokenEmbedding, 0, 0}, "model.embed_tokens.weight"},
      {{TensorKind::kHead, 0, 0},
       m.tiedHead ? "model.embed_tokens.weight" : "lm_head.weight"},
      {{TensorKind::kFinalNorm, 0, 0}, "model.norm." + norm}};
  for (uint32_t l = 0; l < m.numLayers; ++l) {
    std::string at = absl::StrCat("model.layers.", l, ".");
    std::string attn = at + (selfAttn ? "self_attn." : "attn.");
    std::string moe = at + (selfAttn ? "block_sparse_moe." : "moe_block.");
    out.push_back(
        {{TensorKind::kPreAttnNorm, l, 0}, at + "pre_attn_norm." + norm});
    out.push_back(
        {{TensorKind::kPostAttnNorm, l, 0}, at + "post_attn_norm." + norm});
    out.push_back(
        {{TensorKind::kPreMoeNorm, l, 0}, at + "pre_moe_norm." + norm});
    out.push_back(
        {{TensorKind::kPostMoeNorm, l, 0}, at + "post_moe_norm." + norm});
    out.push_back({{TensorKind::kQuery, l, 0}, attn + "q_proj.weight"});
    out.push_back({{TensorKind::kKey, l, 0}, attn + "k_proj.weight"});
    out.push_back({{TensorKind::kValue, l, 0}, attn + "v_proj.weight"});
    out.push_back({{TensorKind::kAttnOut, l, 0}, attn + "o_proj.weight"});
    if (!m.hash)
      out.push_back({{TensorKind::kRouter, l, 0}, moe + "gate.weight"});
    for (uint32_t e = 0; e < m.numExperts; ++e) {
      std::string in = absl::StrCat(moe, "experts.", e, ".");
      out.push_back({{TensorKind::kExpertGate, l, e},
                     in + (selfAttn ? "w1" : "linear") + ".weight"});
      out.push_back({{TensorKind::kExpertUp, l, e},
                     in + (selfAttn ? "w3" : "linear_v") + ".weight"});
      out.push_back({{TensorKind::kExpertDown, l, e},
                     in + (selfAttn ? "w2" : "linear_1") + ".weight"});
    }
    if (m.denseWidth) {
      out.push_back(
          {{TensorKind::kDenseGate, l, 0}, at + "mlp.gate_proj.weight"});
      out.push_back({{TensorKind::kDenseUp, l, 0}, at + "mlp.up_proj.weight"});
      out.push_back(
          {{TensorKind::kDenseDown, l, 0}, at + "mlp.down_proj.weight"});
    }
  }
  return out;
}

class Models : public ::testing::TestWithParam<const char *> {};

TEST_P(Models, EveryRow) {
  std::string directory = absl::StrCat(modelsDirectory(), "/", GetParam());
  ModelConfig model = readConfig(directory);
  std::map<std::string, Tensor> all = readAll(directory);
  auto source = openCheckpoint(directory, model);
  ASSERT_TRUE(source.ok()) << source.status();
  bool selfAttn = all.count("model.norm.weight") != 0;
  for (const Expected &expected : expectedNames(model, selfAttn)) {
    ASSERT_TRUE(all.count(expected.name)) << expected.name;
    const Tensor &tensor = all[expected.name];
    uint64_t columns = tensor.shape.back();
    uint64_t rows = tensor.data.size() / 2 / columns;
    std::vector<float> row(columns);
    std::vector<uint16_t> half(columns);
    for (uint32_t r = 0; r < rows; ++r) {
      const char *bytes = tensor.data.data() + r * columns * 2;
      ASSERT_TRUE((*source)->readRow(expected.id, r, row).ok());
      ASSERT_TRUE(
          (*source)->readRow16(expected.id, r, DType::kBF16, half).ok());
      ASSERT_EQ(std::memcmp(half.data(), bytes, columns * 2), 0)
          << expected.name << " row " << r;
      for (uint64_t c = 0; c < columns; ++c) {
        uint32_t wide;
        std::memcpy(&wide, &row[c], 4);
        ASSERT_EQ(wide, uint32_t(half[c]) << 16) << expected.name;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Models,
                         ::testing::Values("tiny-hash", "tiny-top2",
                                           "grok1-deep", "grok1-mha-top1",
                                           "grok2-residual", "hash-offset"),
                         [](const auto &info) {
                           return absl::StrReplaceAll(info.param, {{"-", "_"}});
                         });

} // namespace
} // namespace grok::test
