#include "test/unit/cpu/TestModel.h"

#include "compiler/Config/Config.h"
#include "runtime/checkpoint/Checkpoint.h"
#include "test/unit/cpu/Goldens.h"
#include "gtest/gtest.h"

namespace grok::test {
namespace {

void fill(TestModel &t, const HandPlanOptions &options, TensorSource &weights) {
  t.plan = handPlan(t.model, options);
  absl::StatusOr<PlanTables> checked =
      PlanTables::parse(t.plan.serialize(), "plan.bin", t.model);
  if (!checked.ok()) {
    ADD_FAILURE() << checked.status();
    return;
  }
  absl::StatusOr<std::vector<uint8_t>> blob =
      handBlob(t.model, t.plan, weights);
  if (!blob.ok()) {
    ADD_FAILURE() << blob.status();
    return;
  }
  t.blob = std::move(*blob);
  t.load();
}

} // namespace

void TestModel::load(const cpu::CpuOptions &options) {
  absl::StatusOr<std::unique_ptr<Executor>> created =
      cpu::createExecutor(model, plan, blob, {}, options);
  if (created.ok())
    executor = std::move(*created);
  else
    ADD_FAILURE() << created.status();
}

TestModel loadModel(const std::string &name, const HandPlanOptions &plan) {
  TestModel t;
  std::string directory = modelsDirectory() + "/" + name;
  absl::StatusOr<ParsedConfig> config = readConfig(directory);
  if (!config.ok()) {
    ADD_FAILURE() << config.status();
    return t;
  }
  t.model = config->model;
  absl::StatusOr<std::unique_ptr<TensorSource>> weights =
      openCheckpoint(directory, t.model);
  if (!weights.ok()) {
    ADD_FAILURE() << weights.status();
    return t;
  }
  fill(t, plan, **weights);
  return t;
}

TestModel syntheticModel(const ModelConfig &model, const HandPlanOptions &plan,
                         uint64_t seed) {
  TestModel t;
  t.model = model;
  fill(t, plan, *syntheticSource(model, seed));
  return t;
}

ModelConfig smallConfig(bool hash) {
  ModelConfig m;
  m.vocabSize = 61;
  m.hiddenSize = 72;
  m.numLayers = 2;
  m.numHeads = 6;
  m.numKvHeads = 2;
  m.headDim = 20;
  m.numExperts = 8;
  m.expertsPerToken = hash ? 1 : 2;
  m.expertWidth = 38;
  m.denseWidth = hash ? 0 : 50;
  m.maxPositions = 700;
  m.embeddingMultiplier = 3;
  m.outputMultiplier = 2;
  m.attentionScale = 0.4;
  m.attentionCap = 30;
  m.routerCap = hash ? 0 : 20;
  m.finalCap = hash ? 0 : 50;
  m.attentionTemperatureLength = hash ? 0 : 8;
  m.gelu = hash ? Gelu::kTanh : Gelu::kErf;
  m.tiedHead = hash;
  if (hash)
    m.hash = HashRouting{2, 4, 2654435761u, 123456789u, 6, 2, 3, 0};
  return m;
}

std::vector<float> logitsOf(Executor &executor,
                            const std::vector<int32_t> &ids) {
  std::vector<float> all;
  BatchRequest request;
  request.rows = {{ids, 0, 0}};
  request.onLogits = [&](uint32_t, uint32_t, std::span<const float> logits) {
    all.insert(all.end(), logits.begin(), logits.end());
    return absl::OkStatus();
  };
  absl::StatusOr<BatchResult> result = executor.run(request);
  EXPECT_TRUE(result.ok()) << result.status();
  return all;
}

} // namespace grok::test
