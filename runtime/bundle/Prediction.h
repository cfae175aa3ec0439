// What the compiler predicted, as a bundle's manifest has it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace grok {

/// What is predicted: a step (`generated` 0) or a request of so many prompt
/// positions and new ids.
struct PredictionKey {
  bool request = false;
  uint32_t batch = 1, context = 1, generated = 0;
  bool operator==(const PredictionKey &) const = default;
};

/// Best and worst over every routing outcome.
struct Prediction {
  struct Case {
    double seconds = 0;
    /// What it is the sum of: names without a unit, and seconds.
    std::vector<std::pair<std::string, double>> terms;
  };
  PredictionKey key;
  Case best, worst;
};

/// Those of a manifest's JSON that have all that a prediction needs; its
/// reader does not look at them.
std::vector<Prediction> predictionsOf(const std::string &predictionJson);

/// Nothing if the manifest's JSON does not have it.
std::optional<Prediction> findPrediction(const std::string &predictionJson,
                                         const PredictionKey &key);

} // namespace grok
