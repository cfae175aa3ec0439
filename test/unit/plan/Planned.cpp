#include "test/unit/plan/Planned.h"

#include "mlir/Pass/PassManager.h"
#include "gtest/gtest.h"

#include "compiler/Config/Config.h"
#include "compiler/Passes/FormPhases.h"
#include "ir/Model/ModelBuilder.h"

namespace grok {

ModelConfig readModel(const std::string &name) {
  auto config = readConfig(std::string(GROK_MODELS) + "/" + name);
  EXPECT_TRUE(config.ok()) << config.status();
  return config->model;
}

static mlir::LogicalResult runPasses(Planned &planned, const Target &target,
                                     const PlanOptions &options) {
  mlir::PassManager manager(&planned.context);
  auto &model = manager.nest<ir::ModelOp>();
  model.addPass(createRemoveUnreachableExperts(
      RemoveUnreachableExpertsOptions{options.keepUnreachable}));
  FormPhasesOptions phases;
  phases.maxBatch = options.maxBatch;
  phases.activations = options.activations;
  manager.addPass(createFormPhasesFor(target, phases));
  auto &device = manager.nest<plan::DeviceOp>();
  device.addPass(createAssignSlots(AssignSlotsOptions{options.slots}));
  device.addPass(createPlaceBanks(PlaceBanksOptions{options.banks}));
  device.addPass(createPlanMemory(PlanMemoryOptions{/*allowOversize=*/true}));
  device.addPass(createPredictLatency());
  return manager.run(*planned.module);
}

std::unique_ptr<Planned> planFor(const ModelConfig &model,
                                 const std::string &targetName,
                                 const PlanOptions &options) {
  auto planned = std::make_unique<Planned>();
  planned->context.loadDialect<ir::GrokDialect, plan::PlanDialect>();
  planned->context.getDiagEngine().registerHandler(
      [errors = planned.get()](mlir::Diagnostic &diagnostic) {
        if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error)
          errors->errors += diagnostic.str() + "\n";
      });
  planned->module = ir::buildModel(planned->context, model);
  auto target = findTarget(targetName);
  EXPECT_TRUE(target.ok()) << target.status();
  if (failed(runPasses(*planned, *target, options))) {
    ADD_FAILURE() << targetName << ": " << planned->errors;
    return nullptr;
  }
  return planned;
}

PlanTables tablesFor(const ModelConfig &model, const std::string &target,
                     const PlanOptions &options) {
  auto planned = planFor(model, target, options);
  if (!planned)
    return {};
  mlir::FailureOr<PlanTables> tables = toTables(planned->device());
  EXPECT_TRUE(succeeded(tables)) << planned->errors;
  auto read = PlanTables::parse(tables->serialize(), "plan.bin", model);
  EXPECT_TRUE(read.ok()) << target << ": " << read.status();
  EXPECT_TRUE(read.ok() && *read == *tables);
  return *tables;
}

ModelConfig grok1() {
  ModelConfig m = readModel("grok1-deep");
  m.vocabSize = 131072;
  m.hiddenSize = 6144;
  m.numLayers = 64;
  m.numHeads = 48;
  m.numKvHeads = 8;
  m.headDim = 128;
  m.numExperts = 8;
  m.expertsPerToken = 2;
  m.expertWidth = 32768;
  m.maxPositions = 8192;
  return m;
}

ModelConfig grok2() {
  ModelConfig m = readModel("grok2-residual");
  m.vocabSize = 131072;
  m.hiddenSize = 8192;
  m.numLayers = 64;
  m.numHeads = 64;
  m.numKvHeads = 8;
  m.headDim = 128;
  m.numExperts = 8;
  m.expertsPerToken = 2;
  m.expertWidth = 16384;
  m.denseWidth = 32768;
  m.maxPositions = 131072;
  return m;
}

} // namespace grok
