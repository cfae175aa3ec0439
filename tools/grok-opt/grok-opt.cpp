// grok-opt: runs the compiler's passes on IR in text form, each alone or in a
// chain.
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include "compiler/Passes/Passes.h"
#include "ir/Model/GrokDialect.h"
#include "ir/Plan/PlanDialect.h"
#include "runtime/bundle/InputFile.h"

/// In the order in which the compiler runs them.
static constexpr const char *kPasses[] = {
    "grok-routing-analysis", "grok-remove-unreachable-experts",
    "grok-prune-experts",    "grok-form-phases",
    "plan-assign-slots",     "plan-place-banks",
    "plan-memory",           "plan-prefill",
    "plan-predict"};

static constexpr const char *kFlags[][2] = {
    {"-o FILE", "Write to FILE instead of standard output"},
    {"--pass-pipeline=TEXT", "Passes as text, nested and with options"},
    {"--split-input-file", "Run on each part between lines // -----"},
    {"--verify-diagnostics", "Check messages against // expected-error"},
    {"--mlir-print-ir-after-all", "Print the IR after each pass"},
    {"--mlir-print-debuginfo", "Print where each op comes from"},
    {"--help-all", "List the passes' options and all of MLIR's"},
};

/// Ours: MLIR's own does not fit a screen.
static void printHelp() {
  auto row = [](llvm::StringRef name, llvm::StringRef what) {
    llvm::outs() << llvm::formatv("  {0,-34}{1}\n", name, what);
  };
  llvm::outs() << "Runs passes on Grok models and plans.\n"
                  "Usage: grok-opt [OPTIONS] [FILE.mlir]\n"
                  "Without FILE it reads standard input.\n\nPasses:\n";
  for (const char *name : kPasses)
    if (const mlir::PassInfo *pass = mlir::PassInfo::lookup(name))
      row(("--" + llvm::Twine(name)).str(), pass->getPassDescription());
  llvm::outs() << "\nOptions:\n";
  for (auto [name, what] : kFlags)
    row(name, what);
}

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
  static char help[] = "--help";
  for (char *&argument : llvm::MutableArrayRef(argv + 1, argv + argc)) {
    llvm::StringRef word = argument;
    if (word == "--help" || word == "-help" || word == "-h") {
      printHelp();
      return 0;
    }
    if (word == "--help-all")
      argument = help; // MLIR's
  }
  auto [input, output] = mlir::registerAndParseCLIOptions(
      argc, argv, "runs passes on Grok models and plans", registry);
  if (input != "-")
    if (absl::Status status = grok::checkInputFile(input); !status.ok()) {
      llvm::errs() << "error: " << std::string(status.message()) << "\n";
      return 1;
    }
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, input, output, registry));
}
