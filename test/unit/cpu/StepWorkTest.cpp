// What a step needs, against sums by hand.
#include "runtime/common/StepWork.h"

#include "gtest/gtest.h"

namespace grok {
namespace {

ModelConfig model() {
  ModelConfig m;
  m.vocabSize = 100;
  m.hiddenSize = 20;
  m.numLayers = 3;
  m.numHeads = 4;
  m.numKvHeads = 2;
  m.headDim = 6;
  m.numExperts = 8;
  m.expertsPerToken = 2;
  m.expertWidth = 10;
  m.denseWidth = 12;
  return m;
}

TEST(StepWork, BytesAreThoseOfTheElements) {
  StepBytes b = stepBytes(model(), 2, 7, 5, Quantization::kNone, 2);
  EXPECT_EQ(b.qkv, 3 * (4 + 2 * 2) * 6 * 20 * 2);
  EXPECT_EQ(b.attnOut, 3 * 20 * 24 * 2);
  EXPECT_EQ(b.experts, 5 * 3 * 10 * 20 * 2);
  EXPECT_EQ(b.denseMlp, 3 * 3 * 12 * 20 * 2);
  EXPECT_EQ(b.vectors, (3 * (4 + 8) + 1) * 20 * 4);
  EXPECT_EQ(b.head, 100 * 20 * 2);
  EXPECT_EQ(b.embedding, 2 * 20 * 2);
  EXPECT_EQ(b.kv, 3 * 2 * 7 * (2 * 2 * 6) * 2);
  EXPECT_EQ(b.total(), b.qkv + b.attnOut + b.experts + b.denseMlp + b.vectors +
                           b.head + b.embedding + b.kv);
  EXPECT_EQ(stepBytes(model(), 2, 7, 5, Quantization::kNone, 4).kv, 2 * b.kv);
}

TEST(StepWork, CodesHaveAByteAndScales) {
  StepBytes b = stepBytes(model(), 2, 7, 5, Quantization::kInt8, 2);
  EXPECT_EQ(b.qkv, 3 * (4 + 2 * 2) * 6 * (20 + 2));
  EXPECT_EQ(b.head, 100 * (20 + 2));
  ModelConfig m = model();
  m.hiddenSize = 256; // 8 blocks of inputs
  b = stepBytes(m, 2, 7, 5, Quantization::kFp8, 2);
  EXPECT_EQ(b.qkv, 3 * (4 + 2 * 2) * 6 * (256 + 16));
}

TEST(StepWork, HashRoutingHasNoRouter) {
  ModelConfig m = model();
  m.hash.emplace();
  EXPECT_EQ(stepBytes(m, 1, 1, 1, Quantization::kNone, 2).vectors,
            (3 * 4 + 1) * 20 * 4);
  EXPECT_EQ(handOversOfStep(m), 3u * 6 + 1);
  EXPECT_EQ(handOversOfStep(model()), 3u * 7 + 1);
}

} // namespace
} // namespace grok
