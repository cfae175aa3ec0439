// What a manifest's reader refuses of a prediction, and what tools read of it.
#include "runtime/bundle/Prediction.h"

#include "runtime/bundle/PredictionCheck.h"
#include "gtest/gtest.h"

namespace grok {
namespace {

constexpr const char *kValid = R"({"prediction": {
  "clock_mhz": 1980,
  "predictions": [
    {"scope": "step", "batch": 8, "context": 512, "generated": 0, "exhaustive": true,
     "best": {"us": 3, "experts": 1, "terms": {"head_us": 1, "kv_us": 2}},
     "expected": {"us": 4, "experts": 6.5, "terms": {"head_us": 1, "kv_us": 3}},
     "worst": {"us": 5, "experts": 8, "terms": {"head_us": 1, "kv_us": 4}}}]}})";

/// `from` of a valid prediction replaced.
std::string changed(const std::string &from, const std::string &to) {
  std::string text = kValid;
  size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string errorOf(const std::string &text) {
  absl::StatusOr<json::Document> document = json::parse(text, "manifest.json");
  EXPECT_TRUE(document.ok()) << document.status();
  absl::Status status = checkPredictions(*document, "/prediction");
  return std::string(status.message());
}

TEST(Prediction, TakesWhatIsWhole) {
  EXPECT_EQ(errorOf(kValid), "");
  EXPECT_EQ(errorOf(R"({"prediction": {"clock_mhz": 1, "predictions": []}})"),
            "");
}

struct Fault {
  const char *from, *to, *error;
};
class PredictionFaults : public testing::TestWithParam<Fault> {};

TEST_P(PredictionFaults, AreRefused) {
  const auto &[from, to, error] = GetParam();
  EXPECT_NE(errorOf(changed(from, to)).find(error), std::string::npos)
      << errorOf(changed(from, to));
}

INSTANTIATE_TEST_SUITE_P(
    Each, PredictionFaults,
    testing::Values(
        Fault{"1980", "\"fast\"", "manifest.json:2: key 'clock_mhz': found"},
        Fault{"\"clock_mhz\": 1980,", "\"clock_mhz\": 1980, \"more\": 1,",
              "found unknown key 'more'"},
        Fault{"[\n", "7, \"x\": [\n",
              "key 'predictions': found 7, expected an array"},
        Fault{"\"step\"", "\"layer\"", "manifest.json:4: key 'scope': found"},
        Fault{"\"batch\": 8", "\"batch\": 0",
              "key 'batch': found 0, expected at least 1"},
        Fault{"\"context\": 512", "\"context\": 0",
              "key 'context': found 0, expected at least 1"},
        Fault{"\"generated\": 0", "\"generated\": 64",
              "key 'generated': found 64, expected 0 for a step"},
        Fault{"\"step\"", "\"request\"",
              "key 'generated': found 0, expected at least 1 for a request"},
        Fault{"\"exhaustive\": true", "\"exhaustive\": 1",
              "key 'exhaustive': found 1"},
        Fault{"\"expected\": {", "\"mean\": {", "found no key 'expected'"},
        Fault{"\"experts\": 6.5, ", "", "found no key 'experts'"},
        Fault{"6.5", "-1", "key 'experts': found -1, expected at least 0"},
        Fault{"{\"head_us\": 1, \"kv_us\": 3}", "[]",
              "key 'terms': found an array of 0, expected an object"},
        Fault{"\"kv_us\": 3", "\"kv_us\": \"3\"",
              "key 'terms': found \"kv_us\": \"3\", expected numbers of at "
              "least 0"},
        Fault{"\"head_us\": 1, \"kv_us\": 3", "\"head_us\": -1, \"kv_us\": 5",
              "key 'terms': found \"head_us\": -1"},
        Fault{"\"kv_us\": 3", "\"kv_us\": 2",
              "key 'us': found 4, expected what the terms add up to, 3"},
        Fault{"\"us\": 4, \"experts\": 6.5, \"terms\": {\"head_us\": 1",
              "\"us\": 3.5, \"experts\": 6.5, \"terms\": {\"head_us\": 1",
              "key 'us': found 3.5, expected what the terms add up to, 4"},
        Fault{"\"us\": 3, \"experts\": 1, \"terms\": {\"head_us\": 1, "
              "\"kv_us\": 2",
              "\"us\": 4.5, \"experts\": 1, \"terms\": {\"head_us\": 2.5, "
              "\"kv_us\": 2",
              "manifest.json:6: key 'expected': found 4 us, expected at least "
              "4.5: 0 <= best <= expected <= worst"},
        Fault{
            "\"us\": 5, \"experts\": 8, \"terms\": {\"head_us\": 1, \"kv_us\": "
            "4",
            "\"us\": 1, \"experts\": 8, \"terms\": {\"head_us\": 1, \"kv_us\": "
            "0",
            "manifest.json:7: key 'worst': found 1 us, expected at least 4"}));

TEST(Prediction, ToolsFindEachCase) {
  const std::string text = R"({"predictions": [
    {"scope": "step", "batch": 8, "context": 512, "generated": 0,
     "best": {"us": 3}, "expected": {"us": 4, "terms": {"head_us": 4}},
     "worst": {"us": 5}}]})";
  std::optional<Prediction> found =
      findPrediction(text, {.batch = 8, .context = 512});
  ASSERT_TRUE(found && found->expected);
  EXPECT_DOUBLE_EQ(found->best.seconds, 3e-6);
  EXPECT_DOUBLE_EQ(found->expected->seconds, 4e-6);
  EXPECT_EQ(found->expected->terms.at(0).first, "head");
  EXPECT_DOUBLE_EQ(found->worst.seconds, 5e-6);
  EXPECT_FALSE(findPrediction(text, {.batch = 7, .context = 512}));
}

/// Bundles before version 6 have none.
TEST(Prediction, ToolsDoWithoutAnExpectedCase) {
  std::optional<Prediction> found = findPrediction(
      R"({"predictions": [{"scope": "step", "batch": 8, "context": 512,
          "generated": 0, "best": {"us": 3}, "worst": {"us": 5}}]})",
      {.batch = 8, .context = 512});
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->expected);
}

} // namespace
} // namespace grok
