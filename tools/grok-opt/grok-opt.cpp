// grok-opt: runs the compiler's passes on IR in text form, each alone or in a
// chain.
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/CommandLine.h"

#include "compiler/Passes/Passes.h"
#include "ir/Model/GrokDialect.h"
#include "ir/Plan/PlanDialect.h"

/// Takes the options of LLVM's code generators, which register themselves when
/// the library is loaded, off --help. MLIR's own come later and stay.
static void hideCodeGeneratorOptions() {
  for (auto &[name, option] : llvm::cl::getRegisteredOptions()) {
    bool generic = false; // --help and --version
    for (const llvm::cl::OptionCategory *category : option->Categories)
      generic |= category->getName() == "Generic Options";
    if (!generic)
      option->setHiddenFlag(llvm::cl::ReallyHidden);
  }
}

int main(int argc, char **argv) {
  hideCodeGeneratorOptions();
  mlir::DialectRegistry registry;
  registry.insert<grok::ir::GrokDialect, grok::plan::PlanDialect>();
  grok::registerGrokPasses();
  return mlir::asMainReturnCode(mlir::MlirOptMain(
      argc, argv, "runs passes on Grok models and plans", registry));
}
