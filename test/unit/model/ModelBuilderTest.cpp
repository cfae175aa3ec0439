// From configs to models and back: nothing is lost, whatever field changes.
#include <functional>
#include <string>
#include <vector>

#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

#include "compiler/Config/Config.h"
#include "ir/Model/ModelBuilder.h"
#include "ir/Model/ModelStructure.h"

namespace grok {
namespace {

ModelConfig configOfModel(const std::string &name) {
  auto config = readConfig(std::string(GROK_MODELS) + "/" + name);
  EXPECT_TRUE(config.ok()) << config.status();
  return config->model;
}

ir::ModelOp modelIn(mlir::ModuleOp module) {
  return *module.getOps<ir::ModelOp>().begin();
}

/// Builds the config's model, prints it, reads the text and then the config.
ModelConfig throughText(const ModelConfig &config) {
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> built = ir::buildModel(context, config);
  EXPECT_TRUE(mlir::succeeded(mlir::verify(*built))) << config.toJson();
  std::string text;
  llvm::raw_string_ostream(text) << *built;
  auto parsed = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  if (!parsed)
    return {};
  mlir::FailureOr<ModelConfig> read = ir::readModel(modelIn(*parsed));
  return mlir::succeeded(read) ? *read : ModelConfig();
}

TEST(ModelBuilder, ShippedModelsComeBack) {
  for (const char *name : {"tiny-hash", "tiny-top2", "grok1-mha-top1",
                           "grok2-residual", "hash-offset", "grok1-deep"}) {
    ModelConfig config = configOfModel(name);
    EXPECT_EQ(throughText(config), config) << name;
  }
}

using Change = std::function<void(ModelConfig &)>;

/// A change of every field of a config that leaves the config valid.
std::vector<Change> changesOfAnyModel() {
  using C = ModelConfig;
  return {
      [](C &c) { c.vocabSize += 3; },
      [](C &c) { c.hiddenSize += 2; },
      [](C &c) { c.numLayers = 65535; },
      [](C &c) { c.numHeads = c.numKvHeads * 7; },
      [](C &c) { c.numHeads = c.numKvHeads = 5; },
      [](C &c) { c.headDim += 2; },
      [](C &c) { c.expertWidth += 1; },
      [](C &c) { c.denseWidth = c.denseWidth ? 0 : 17; },
      [](C &c) { c.maxPositions = 0x7fffffff; },
      [](C &c) { c.embeddingMultiplier = -0.1; },
      [](C &c) { c.outputMultiplier = 1.0 / 3; },
      [](C &c) { c.attentionScale = 1e-30; },
      [](C &c) { c.attentionCap = c.attentionCap ? 0 : 30.1; },
      [](C &c) { c.finalCap = c.finalCap ? 0 : 50.1; },
      [](C &c) { c.ropeTheta = 208533496; },
      [](C &c) { c.normEps = 1e-6; },
      [](C &c) { c.attentionTemperatureLength ^= 1024; },
      [](C &c) { c.gelu = c.gelu == Gelu::kErf ? Gelu::kTanh : Gelu::kErf; },
      [](C &c) { c.tiedHead = !c.tiedHead; },
      [](C &c) { c.checkpointDType = DType::kF16; },
      [](C &c) { c.checkpointDType = DType::kBF16; },
      [](C &c) { c.bosId = c.bosId == -1 ? 7 : -1; },
      [](C &c) { c.eosId = c.eosId == -1 ? 0 : -1; },
      [](C &c) { c.padId = int64_t(c.vocabSize) - 1; },
  };
}

std::vector<Change> changesOfLearnedRouters() {
  using C = ModelConfig;
  return {
      [](C &c) { c.numExperts += 1; },
      [](C &c) { c.expertsPerToken = c.numExperts; },
      [](C &c) { c.routerCap = c.routerCap ? 0 : 30.1; },
  };
}

std::vector<Change> changesOfHashes() {
  using C = ModelConfig;
  return {
      [](C &c) { c.hash->numGroups *= 2, c.numExperts *= 2; },
      [](C &c) { c.hash->expertsPerGroup *= 2, c.numExperts *= 2; },
      [](C &c) { c.hash->tokenMultiplier = 0xffffffff; },
      [](C &c) { c.hash->positionMultiplier = 0; },
      [](C &c) { c.hash->hashBits = 32; },
      [](C &c) { c.hash->indexShift = 31; },
      [](C &c) { c.hash->indexMask = 0; },
      [](C &c) { c.hash->positionOffsetMask = 0xffffffff; },
  };
}

void expectEachComesBack(const ModelConfig &base,
                         const std::vector<Change> &changes) {
  for (size_t i = 0; i < changes.size(); ++i) {
    ModelConfig config = base;
    changes[i](config);
    ASSERT_TRUE(config.validate().ok()) << i << ": " << config.validate();
    EXPECT_EQ(throughText(config), config) << "change " << i;
  }
}

TEST(ModelBuilder, EveryFieldComesBack) {
  for (const char *name : {"tiny-hash", "grok2-residual"})
    expectEachComesBack(configOfModel(name), changesOfAnyModel());
  expectEachComesBack(configOfModel("grok2-residual"),
                      changesOfLearnedRouters());
  expectEachComesBack(configOfModel("tiny-hash"), changesOfHashes());
}

std::string lineOf(mlir::Operation *op) {
  std::string text;
  llvm::raw_string_ostream out(text);
  op->getLoc().print(out);
  return text;
}

TEST(ModelBuilder, OperationsKnowTheirKeys) {
  mlir::MLIRContext context;
  ir::SourceLines source{"config.json",
                         {{"/num_hidden_layers", 4},
                          {"/num_experts", 9},
                          {"/max_attn_value", 11}}};
  auto module = ir::buildModel(context, configOfModel("tiny-top2"), &source);
  auto parts = ir::matchModel(modelIn(*module));
  ASSERT_TRUE(mlir::succeeded(parts));
  EXPECT_EQ(lineOf(parts->layers), "loc(\"config.json\":4:1)");
  EXPECT_EQ(lineOf(parts->experts), "loc(\"config.json\":9:1)");
  EXPECT_EQ(lineOf(parts->attention), "loc(\"config.json\":11:1)");
  // A key that the config leaves out.
  EXPECT_EQ(lineOf(parts->ropeQ), "loc(\"config.json\":1:1)");
}

TEST(ModelBuilder, WithoutASourceThereIsNoLocation) {
  mlir::MLIRContext context;
  auto module = ir::buildModel(context, configOfModel("tiny-top2"));
  EXPECT_EQ(lineOf(modelIn(*module)), "loc(unknown)");
}

} // namespace
} // namespace grok
