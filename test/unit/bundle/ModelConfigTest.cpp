#include "runtime/bundle/ModelConfig.h"

#include <functional>
#include <gtest/gtest.h>
#include <limits>

#include "test/unit/bundle/TestModel.h"

namespace grok {
namespace {

std::string replaced(std::string text, const std::string &from,
                     const std::string &to) {
  size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string errorOf(const std::string &text) {
  auto config = ModelConfig::fromJson(text, "model.json");
  return config.ok() ? "no error" : std::string(config.status().message());
}

TEST(ModelConfig, SurvivesJson) {
  for (const ModelConfig &m : {test::learnedModel(), test::hashModel()}) {
    ASSERT_TRUE(m.validate().ok()) << m.validate();
    std::string text = m.toJson();
    auto back = ModelConfig::fromJson(text, "model.json");
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(*back, m);
    EXPECT_EQ(back->toJson(), text);
  }
}

TEST(ModelConfig, AwkwardDoublesAreExact) {
  ModelConfig m = test::learnedModel();
  m.ropeTheta = 208533496;
  m.normEps = 1e-5;
  m.embeddingMultiplier = 0.1 + 0.2;
  m.attentionScale = 1.0 / 3;
  auto back = ModelConfig::fromJson(m.toJson(), "model.json");
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(*back, m);
}

TEST(ModelConfig, ErrorsNameLineKeyFoundAndExpected) {
  std::string text = test::learnedModel().toJson();
  EXPECT_EQ(errorOf(replaced(text, "\"gelu\": \"erf\"", "\"gelu\": \"relu\"")),
            "model.json:13: key 'gelu': found \"relu\", expected \"tanh\" or "
            "\"erf\"");
  EXPECT_EQ(errorOf(replaced(text, "\"head_dim\": 10", "\"head_dim\": -10")),
            "model.json:15: key 'head_dim': found -10, expected an integer, 0 "
            "or more");
  EXPECT_EQ(errorOf(replaced(text, "\"head_dim\"", "\"head_dimm\"")),
            "model.json: found no key 'head_dim', expected it in the file");
  EXPECT_EQ(errorOf(replaced(text, "\"gelu\"", "\"extra\": 1, \"gelu\"")),
            "model.json:13: found unknown key 'extra', expected none but the "
            "documented ones");
  EXPECT_EQ(errorOf(replaced(text, "\"num_heads\": 4", "\"num_heads\": 5")),
            "model.json: 'num_heads': found 5, expected a multiple of "
            "num_kv_heads (2)");
  EXPECT_EQ(errorOf("[]"), "model.json: found an array of 0, expected an "
                           "object");
}

TEST(ModelConfig, ValidatesRangesAndProducts) {
  struct Case {
    const char *field;
    std::function<void(ModelConfig &)> spoil;
  };
  const Case cases[] = {
      {"vocab_size", [](ModelConfig &m) { m.vocabSize = 0; }},
      {"num_layers", [](ModelConfig &m) { m.numLayers = 65536; }},
      {"head_dim", [](ModelConfig &m) { m.headDim = 11; }},
      {"head_dim",
       [](ModelConfig &m) { m.numHeads = m.numKvHeads = m.headDim = 65534; }},
      {"num_heads", [](ModelConfig &m) { m.numKvHeads = 3; }},
      {"num_kv_heads", [](ModelConfig &m) { m.numKvHeads = 0; }},
      {"experts_per_token", [](ModelConfig &m) { m.expertsPerToken = 5; }},
      {"sizes together",
       [](ModelConfig &m) {
         m.numExperts = m.numLayers = 65535;
         m.expertWidth = m.hiddenSize = 1 << 24;
       }},
      {"attention_scale", [](ModelConfig &m) { m.attentionScale = 0; }},
      {"attention_cap", [](ModelConfig &m) { m.attentionCap = -1; }},
      {"rope_theta", [](ModelConfig &m) { m.ropeTheta = 1e300; }},
      {"rope_theta", [](ModelConfig &m) { m.ropeTheta = 1; }},
      {"rope_theta", [](ModelConfig &m) { m.ropeTheta = 0.5; }},
      {"rope_theta", [](ModelConfig &m) { m.ropeTheta = 0; }},
      {"rope_theta", [](ModelConfig &m) { m.ropeTheta = -2; }},
      {"norm_eps", [](ModelConfig &m) { m.normEps = 1e-300; }},
      {"final_cap",
       [](ModelConfig &m) {
         m.finalCap = std::numeric_limits<double>::quiet_NaN();
       }},
      {"eos_id", [](ModelConfig &m) { m.eosId = 83; }},
      {"pad_id", [](ModelConfig &m) { m.padId = -2; }},
      {"experts_per_token",
       [](ModelConfig &m) { m.hash = test::hashModel().hash; }},
  };
  for (const Case &c : cases) {
    ModelConfig m = test::learnedModel();
    c.spoil(m);
    EXPECT_NE(m.validate().message().find(c.field), absl::string_view::npos)
        << c.field << ": " << m.validate();
  }
}

TEST(ModelConfig, ValidatesHashRouting) {
  struct Case {
    const char *field;
    std::function<void(HashRouting &)> spoil;
  };
  const Case cases[] = {
      {"num_groups", [](HashRouting &h) { h.numGroups = 0; }},
      {"num_groups", [](HashRouting &h) { h.expertsPerGroup = 3; }},
      {"hash_bits", [](HashRouting &h) { h.hashBits = 33; }},
      {"index_shift", [](HashRouting &h) { h.indexShift = 32; }},
      {"index_mask", [](HashRouting &h) { h.indexMask = 2; }},
  };
  for (const Case &c : cases) {
    ModelConfig m = test::hashModel();
    c.spoil(*m.hash);
    EXPECT_NE(m.validate().message().find(c.field), absl::string_view::npos)
        << c.field << ": " << m.validate();
  }
}

TEST(TensorSource, OverflowOfF16IsAnError) {
  struct Large : TensorSource {
    absl::Status readRow(const TensorId &, uint32_t,
                         std::span<float> out) override {
      for (size_t i = 0; i < out.size(); ++i)
        out[i] = i == 3 ? 70000.0f : 1.0f;
      return absl::OkStatus();
    }
  } source;
  uint16_t out[5];
  EXPECT_TRUE(
      source.readRow16({TensorKind::kKey, 2, 0}, 7, DType::kBF16, out).ok());
  EXPECT_EQ(
      source.readRow16({TensorKind::kKey, 2, 0}, 7, DType::kF16, out).message(),
      "tensor 'layers.2.key' [7, 3]: found 70000, expected a value that "
      "f16 can hold; compile with --dtype bf16");
}

} // namespace
} // namespace grok
