// Small models and plans made by hand, without the compiler.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/bundle/Bundle.h"

namespace grok::test {

/// Learned router, dense MLP, untied head; sizes that leave padding in rows
/// and columns.
ModelConfig learnedModel();
/// Hash routing in 2 groups of 2 experts, tied head, no dense MLP.
ModelConfig hashModel();

struct PlanOptions {
  uint32_t slots = 5, banks = 3;
  uint64_t bankAlign = 4096;
  DType dtype = DType::kBF16;
  SmPolicy smPolicy = SmPolicy::kAll;
  std::vector<uint32_t> dropped; // experts, as pruned
  uint32_t blockSteps = 16, ringStages = 4;
  Quantization quantization = Quantization::kNone;
};
/// A striped plan with a decode kernel's memory.
PlanTables makePlan(const ModelConfig &model, const PlanOptions &options = {});
CompileOptions optionsOf(const PlanTables &plan);
BundleContents contentsOf(const ModelConfig &model, const PlanTables &plan,
                          WeightsRecipe recipe);

/// The blob that packBlob makes of the synthetic weights of `seed`.
std::string packSynthetic(const ModelConfig &model, const PlanTables &plan,
                          uint64_t seed);

/// Every tensor of a model and its rows.
void forEachTensor(const ModelConfig &model,
                   const std::function<void(const TensorId &)> &visit);

std::string readText(const std::string &path);
void writeText(const std::string &path, const std::string &text);

/// A fresh directory that goes away with the object.
class TempDirectory {
public:
  TempDirectory();
  ~TempDirectory();
  std::string operator/(const std::string &name) const {
    return path_ + "/" + name;
  }
  std::vector<std::string> names() const;

private:
  std::string path_;
};

} // namespace grok::test
