// What the compiler predicted, as a bundle's manifest has it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace grok {

/// How far the terms of a case may be from its time, of that time.
inline constexpr double kTermsTolerance = 1e-6;

/// What is predicted: a step (`generated` 0) or a request of so many prompt
/// positions and new ids.
struct PredictionKey {
  bool request = false;
  uint32_t batch = 1, context = 1, generated = 0;
  bool operator==(const PredictionKey &) const = default;
};

/// Best and worst over every routing outcome, and the mean over rows of random
/// ids.
struct Prediction {
  struct Case {
    double seconds = 0;
    /// What it is the sum of: names without a unit, and seconds.
    std::vector<std::pair<std::string, double>> terms;
  };
  PredictionKey key;
  Case best, worst;
  std::optional<Case> expected; // not before kExpectedFormatVersion
};

/// Those of a manifest's JSON that have all that a prediction needs; of older
/// formats the reader did not look at them.
std::vector<Prediction> predictionsOf(const std::string &predictionJson);

/// Nothing if the manifest's JSON does not have it.
std::optional<Prediction> findPrediction(const std::string &predictionJson,
                                         const PredictionKey &key);

} // namespace grok
