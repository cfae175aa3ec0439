// Stored names and the tensors that they are of.
#include <string>

#include "runtime/checkpoint/TensorNames.h"
#include "test/unit/checkpoint/CheckpointFiles.h"
#include "gtest/gtest.h"

namespace grok::test {
namespace {

/// A model with every kind of tensor, whose numbers have one digit and two.
ModelConfig largeModel() {
  ModelConfig model = smallModel(true);
  model.numLayers = 12;
  model.numExperts = 11;
  return model;
}

/// Every tensor with a name of its own is found by it again.
TEST(Names, BackAndForth) {
  for (size_t s = 0; s < kSpellings; ++s) {
    const Spelling spelling = Spelling(s);
    ASSERT_TRUE(forEachTensor(largeModel(), [&](const TensorId &id) {
                  std::string name = storedName(spelling, id);
                  bool first = !isStacked(spelling, id.kind) || id.expert == 0;
                  if (!name.empty() && first)
                    EXPECT_EQ(storedId(spelling, name), id) << name;
                  return absl::OkStatus();
                }).ok());
  }
}

TEST(Names, OfNoTensor) {
  for (const char *name :
       {"", "model.layers.", "model.layers.00.self_attn.q_proj.weight",
        "model.layers.-1.self_attn.q_proj.weight",
        "model.layers.4294967296.self_attn.q_proj.weight",
        "model.layers.1.self_attn.q_proj.weight.",
        "x.model.layers.1.self_attn.q_proj.weight",
        "model.layers.1.block_sparse_moe.experts.1.self_attn.q_proj.weight",
        "model.layers.self_attn.q_proj.weight"})
    EXPECT_FALSE(storedId(Spelling::kSelfAttn, name)) << name;
}

/// What is counted and known to be there is what is visited.
TEST(Names, CountedAsVisited) {
  for (bool dense : {false, true})
    for (bool hash : {false, true}) {
      ModelConfig model = largeModel();
      if (!dense)
        model.denseWidth = 0;
      if (hash)
        model.hash = HashRouting{};
      uint64_t visits = 0;
      ASSERT_TRUE(forEachTensor(model, [&](const TensorId &id) {
                    ++visits;
                    EXPECT_TRUE(hasTensor(model, id));
                    return absl::OkStatus();
                  }).ok());
      EXPECT_EQ(countTensors(model), visits);
      EXPECT_EQ(hasTensor(model, {TensorKind::kRouter, 0, 0}), !hash);
      EXPECT_EQ(hasTensor(model, {TensorKind::kDenseUp, 0, 0}), dense);
      EXPECT_FALSE(hasTensor(model, {TensorKind::kQuery, 12, 0}));
      EXPECT_FALSE(hasTensor(model, {TensorKind::kExpertUp, 12, 0}));
      EXPECT_FALSE(hasTensor(model, {TensorKind::kExpertUp, 0, 11}));
    }
}

} // namespace
} // namespace grok::test
