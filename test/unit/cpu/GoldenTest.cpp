// Every test model against its float64 reference.
#include <cmath>

#include "test/unit/cpu/Goldens.h"
#include "test/unit/cpu/TestModel.h"
#include "gtest/gtest.h"

namespace grok::test {
namespace {

class GoldenTest : public testing::TestWithParam<const char *> {};

TEST_P(GoldenTest, LogitsAgreeWithFloat64) {
  TestModel t = loadModel(GetParam());
  ASSERT_TRUE(t.executor);
  std::vector<Golden> goldens =
      readGoldens(modelsDirectory() + "/" + GetParam());
  ASSERT_FALSE(goldens.empty());
  double difference = 0, reference = 0;
  for (const Golden &golden : goldens) {
    std::vector<float> logits = logitsOf(*t.executor, golden.ids);
    ASSERT_EQ(logits.size(), golden.ids.size() * t.model.vocabSize);
    for (size_t i = 0; i != golden.logits.size(); ++i) {
      size_t position = i / t.model.vocabSize * golden.stride;
      double d = logits[position * t.model.vocabSize + i % t.model.vocabSize] -
                 double(golden.logits[i]);
      difference += d * d;
      reference += double(golden.logits[i]) * golden.logits[i];
    }
  }
  double error = std::sqrt(difference / reference);
  RecordProperty("relative_error", std::to_string(error));
  std::printf("%s: relative error %.3g\n", GetParam(), error);
  EXPECT_LE(error, 1e-4);
}

INSTANTIATE_TEST_SUITE_P(Models, GoldenTest,
                         testing::Values("tiny-hash", "tiny-top2", "grok1-deep",
                                         "grok1-mha-top1", "grok2-residual",
                                         "hash-offset"),
                         [](const auto &info) {
                           std::string name = info.param;
                           for (char &c : name)
                             c = c == '-' ? '_' : c;
                           return name;
                         });

} // namespace
} // namespace grok::test
