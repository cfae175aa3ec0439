// grok-opt: runs the compiler's passes on IR in text form, each alone or in a
// chain.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "mlir/IR/DialectRegistry.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

#include "compiler/Passes/Passes.h"
#include "ir/Model/GrokDialect.h"
#include "ir/Plan/PlanDialect.h"
#include "runtime/bundle/InputFile.h"
#include "runtime/bundle/OutputFile.h"
#include "tools/cli/Memory.h"
#include "tools/cli/Process.h"
#include "tools/grok-opt/TextLimits.h"

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

/// LLVM ends the process where it cannot write to standard output or has no
/// memory, and catches nothing.
static void explainFatalErrors() {
  llvm::install_fatal_error_handler([](void *, const char *reason, bool) {
    std::fprintf(stderr, "error: %s\n", reason);
    std::_Exit(1);
  });
  llvm::install_bad_alloc_error_handler(
      [](void *, const char *, bool) { grok::cli::exitWithoutMemory(); });
}

static int fail(llvm::StringRef message) {
  llvm::errs() << message << "\n";
  return 1;
}

static int fail(const absl::Status &status) {
  return fail("error: " + std::string(status.message()));
}

/// Standard input if `file` is "-".
static std::unique_ptr<llvm::MemoryBuffer> readText(const std::string &file,
                                                    llvm::StringRef splitMarker,
                                                    std::string &error) {
  if (absl::Status status =
          file == "-" ? absl::OkStatus() : grok::checkInputFile(file);
      !status.ok()) {
    error = "error: " + std::string(status.message());
    return nullptr;
  }
  std::unique_ptr<llvm::MemoryBuffer> text = mlir::openInputFile(file, &error);
  if (!text) {
    error = "error: " + error;
    return nullptr;
  }
  error = grok::findExcess(text->getBuffer(), splitMarker,
                           file == "-" ? "<stdin>" : file);
  return error.empty() ? std::move(text) : nullptr;
}

/// Runs the passes that the command line names.
static int process(const std::string &input, const std::string &output,
                   mlir::DialectRegistry &registry,
                   const mlir::MlirOptMainConfig &config) {
  const bool toFile = output != "-";
  if (toFile)
    if (absl::Status status = grok::checkApart(output, {input}); !status.ok())
      return fail(status);
  std::string error;
  std::unique_ptr<llvm::MemoryBuffer> text =
      readText(input, config.inputSplitMarker(), error);
  if (!text)
    return fail(error);
  std::string result;
  llvm::raw_string_ostream stream(result);
  const bool done = mlir::succeeded(
      mlir::MlirOptMain(stream, std::move(text), registry, config));
  if (!toFile)
    llvm::outs() << result;
  else if (done)
    if (absl::Status status = grok::writeTextFile(output, result); !status.ok())
      return fail(status);
  return done ? 0 : 1;
}

int main(int argc, char **argv) {
  grok::prepareProcess();
  explainFatalErrors();
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
  auto config = mlir::MlirOptMainConfig::createFromCLOptions();
  if (config.shouldShowDialects() || config.shouldListPasses())
    return mlir::asMainReturnCode(
        mlir::MlirOptMain(argc, argv, input, output, registry));
  return process(input, output, registry, config);
}
