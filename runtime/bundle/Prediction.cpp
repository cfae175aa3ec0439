#include "runtime/bundle/Prediction.h"

#include "runtime/bundle/Json.h"

namespace grok {
namespace {

std::optional<Prediction::Case> caseOf(const nlohmann::json &prediction,
                                       const char *outcome) {
  auto found = prediction.find(outcome);
  if (found == prediction.end() || !found->is_object())
    return std::nullopt;
  auto us = found->find("us");
  if (us == found->end() || !us->is_number() || !(us->get<double>() > 0))
    return std::nullopt;
  Prediction::Case result{us->get<double>() * 1e-6, {}};
  auto terms = found->find("terms");
  if (terms == found->end() || !terms->is_object())
    return result;
  for (const auto &[name, value] : terms->items())
    if (value.is_number())
      result.terms.emplace_back(name.substr(0, name.rfind("_us")),
                                value.get<double>() * 1e-6);
  return result;
}

std::optional<PredictionKey> keyOf(const nlohmann::json &prediction) {
  if (!prediction.is_object())
    return std::nullopt;
  auto scope = prediction.find("scope");
  if (scope == prediction.end() || (*scope != "step" && *scope != "request"))
    return std::nullopt;
  PredictionKey key;
  key.request = *scope == "request";
  for (auto [name, number] :
       {std::pair{"batch", &key.batch}, std::pair{"context", &key.context},
        std::pair{"generated", &key.generated}}) {
    auto found = prediction.find(name);
    if (found == prediction.end() || !found->is_number_unsigned())
      return std::nullopt;
    *number = found->get<uint32_t>();
  }
  return key;
}

} // namespace

std::vector<Prediction> predictionsOf(const std::string &predictionJson) {
  std::vector<Prediction> all;
  absl::StatusOr<json::Document> document =
      json::parse(predictionJson, "prediction");
  if (!document.ok() || !document->root.is_object() ||
      !document->root.contains("predictions"))
    return all;
  for (const nlohmann::json &one : document->root["predictions"]) {
    std::optional<PredictionKey> key = keyOf(one);
    if (!key)
      continue;
    std::optional<Prediction::Case> best = caseOf(one, "best"),
                                    worst = caseOf(one, "worst");
    if (best && worst)
      all.push_back({*key, *best, *worst, caseOf(one, "expected")});
  }
  return all;
}

std::optional<Prediction> findPrediction(const std::string &predictionJson,
                                         const PredictionKey &key) {
  for (const Prediction &one : predictionsOf(predictionJson))
    if (one.key == key)
      return one;
  return std::nullopt;
}

} // namespace grok
