// A model loaded for a test: config, plan made by hand, blob and executor.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/cpu/CpuExecutor.h"
#include "test/unit/common/HandPlan.h"

namespace grok::test {

struct TestModel {
  ModelConfig model;
  PlanTables plan;
  std::vector<uint8_t> blob;
  std::unique_ptr<Executor> executor; // null after a failure, which is reported

  /// Creates `executor` again with other options.
  void load(const cpu::CpuOptions &options = {});
};

/// A model of the test models' directory.
TestModel loadModel(const std::string &name, const HandPlanOptions &plan = {});
/// A model with synthetic weights.
TestModel syntheticModel(const ModelConfig &model,
                         const HandPlanOptions &plan = {}, uint64_t seed = 1);
/// A small config: hash or learned routing, every size odd enough to need
/// padding.
ModelConfig smallConfig(bool hash);

/// Logits of every position of a row, one after another.
std::vector<float> logitsOf(Executor &executor,
                            const std::vector<int32_t> &ids);

} // namespace grok::test
