// The plan IR behind TestPlans.h.
#pragma once

#include <memory>
#include <string>

#include "mlir/IR/BuiltinOps.h"

#include "compiler/Artifact/Tables.h"
#include "ir/Plan/PlanDialect.h"
#include "test/unit/plan/TestPlans.h"

namespace grok {

/// A plan and the context that it lives in.
struct Planned {
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::string errors;

  plan::DeviceOp device() { return *module->getOps<plan::DeviceOp>().begin(); }
};

/// Null, and a failed test, if the passes fail.
std::unique_ptr<Planned> planFor(const ModelConfig &model,
                                 const std::string &targetName,
                                 const PlanOptions &options = {});

} // namespace grok
