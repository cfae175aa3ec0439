// The text of the grok and plan dialects, as grok-opt reads it.
#include <memory>
#include <string>

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/raw_ostream.h"

#include "ir/Model/GrokDialect.h"
#include "ir/Plan/PlanDialect.h"
#include "test/fuzz/Fuzz.h"
#include "tools/grok-opt/TextLimits.h"

using namespace grok::fuzz;

namespace {

std::string textOf(mlir::ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream out(text);
  module.print(out);
  return text;
}

} // namespace

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  // A context keeps every type and attribute that it has seen, so it is
  // renewed.
  constexpr unsigned kInputsOfContext = 1000;
  static std::unique_ptr<mlir::MLIRContext> context;
  static unsigned inputs = 0;
  if (inputs++ % kInputsOfContext == 0) {
    context = std::make_unique<mlir::MLIRContext>(
        mlir::MLIRContext::Threading::DISABLED);
    context->loadDialect<grok::ir::GrokDialect, grok::plan::PlanDialect>();
    context->getDiagEngine().registerHandler(
        [](mlir::Diagnostic &) { return mlir::success(); });
  }
  // As in a file's buffer, a NUL comes behind it: the lexer looks there.
  std::string text(reinterpret_cast<const char *>(data), size);
  if (!grok::findExcess(text, /*splitMarker=*/"", kFile).empty())
    return 0;
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, context.get());
  if (!module)
    return 0;
  std::string printed = textOf(*module);
  auto again = mlir::parseSourceString<mlir::ModuleOp>(printed, context.get());
  require(again && textOf(*again) == printed,
          "a module survives being printed");
  return 0;
}
