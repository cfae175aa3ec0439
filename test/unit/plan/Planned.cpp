#include "test/unit/plan/Planned.h"

#include <algorithm>
#include <filesystem>

#include "mlir/Pass/PassManager.h"
#include "gtest/gtest.h"

#include "compiler/Config/Config.h"
#include "compiler/Passes/FormPhases.h"
#include "ir/Model/ModelBuilder.h"

namespace grok {

static ModelConfig configAt(const std::string &path) {
  auto config = readConfig(path);
  EXPECT_TRUE(config.ok()) << config.status();
  return config->model;
}

ModelConfig readModel(const std::string &name) {
  return configAt(std::string(GROK_MODELS) + "/" + name);
}

std::vector<std::string> fullSizeConfigs() {
  std::vector<std::string> names;
  for (const auto &entry : std::filesystem::directory_iterator(GROK_CONFIGS))
    if (entry.path().extension() == ".json")
      names.push_back(entry.path().stem());
  std::sort(names.begin(), names.end());
  return names;
}

ModelConfig readFullSize(const std::string &name) {
  return configAt(std::string(GROK_CONFIGS) + "/" + name + ".json");
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
  phases.quantization = options.quantization;
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

} // namespace grok
