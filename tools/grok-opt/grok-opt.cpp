// grok-opt: runs the compiler's passes on IR in text form, each alone or in a
// chain.
#include "llvm/Support/CommandLine.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/ADT/StringSet.h"

#include "compiler/Passes/Passes.h"
#include "ir/Model/GrokDialect.h"
#include "ir/Plan/PlanDialect.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registry.insert<grok::ir::GrokDialect, grok::plan::PlanDialect>();
  grok::registerGrokPasses();
  return mlir::asMainReturnCode(mlir::MlirOptMain(
      argc, argv, "runs passes on Grok models and plans", registry));
}
