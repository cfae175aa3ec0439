#include "compiler/Pipeline/Lowering.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/raw_ostream.h"

#include "absl/strings/str_cat.h"
#include "compiler/Artifact/Tables.h"
#include "compiler/Passes/FormPhases.h"
#include "compiler/Passes/PruneExperts.h"
#include "ir/Model/ModelBuilder.h"
#include "runtime/bundle/Names.h"

using namespace mlir;

namespace grok {
namespace {

/// "config.json:12: message", the notes on lines of their own.
std::string diagnosticText(Diagnostic &diagnostic) {
  std::string text;
  if (auto place = diagnostic.getLocation()->findInstanceOf<FileLineColLoc>())
    absl::StrAppend(&text, place.getFilename().str(), ":", place.getLine(),
                    ": ");
  absl::StrAppend(&text, diagnostic.str());
  for (Diagnostic &note : diagnostic.getNotes())
    absl::StrAppend(&text, "\n", diagnosticText(note));
  return text;
}

/// Runs the passes one by one, so that a pass that refuses (the request's
/// fault) and one that leaves broken IR (ours) can be told apart.
class Lowering {
public:
  Lowering(const CompileRequest &request, const CompileHooks &hooks)
      : request_(request), hooks_(hooks),
        context_(MLIRContext::Threading::DISABLED),
        handler_(&context_, [this](Diagnostic &d) { return note(d); }) {
    context_.printOpOnDiagnostic(false); // nobody who reads it wrote the op
  }

  absl::StatusOr<Lowered> run();

private:
  LogicalResult note(Diagnostic &diagnostic);
  absl::Status pass(std::unique_ptr<Pass> pass);
  absl::Status all(std::vector<std::unique_ptr<Pass>> passes);
  std::vector<std::unique_ptr<Pass>> modelPasses();
  std::vector<std::unique_ptr<Pass>> planPasses();
  void build();
  std::string print();
  absl::Status readPlan(Lowered &result);

  const CompileRequest &request_;
  const CompileHooks &hooks_;
  MLIRContext context_;
  std::string errors_;
  ScopedDiagnosticHandler handler_;
  OwningOpRef<ModuleOp> module_;
};

LogicalResult Lowering::note(Diagnostic &diagnostic) {
  using Severity = CompileHooks::Severity;
  std::string text = diagnosticText(diagnostic);
  if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
    absl::StrAppend(&errors_, errors_.empty() ? "" : "\n", text);
  else if (hooks_.report)
    hooks_.report(diagnostic.getSeverity() == DiagnosticSeverity::Warning
                      ? Severity::kWarning
                      : Severity::kRemark,
                  text);
  return success();
}

void Lowering::build() {
  ir::SourceLines source{request_.configFile, request_.configLines};
  module_ = ir::buildModel(context_, request_.model,
                           request_.configFile.empty() ? nullptr : &source);
}

absl::Status Lowering::pass(std::unique_ptr<Pass> pass) {
  std::string name = pass->getArgument().str();
  PassManager manager(&context_, ModuleOp::getOperationName(),
                      PassManager::Nesting::Implicit);
  manager.enableVerifier(false);
  manager.addPass(std::move(pass));
  if (failed(manager.run(*module_)))
    return absl::InvalidArgumentError(
        errors_.empty() ? absl::StrCat("pass --", name, " failed") : errors_);
  if (failed(verify(*module_)))
    return absl::InternalError(absl::StrCat(
        "pass --", name, " left IR that does not verify: ", errors_));
  return absl::OkStatus();
}

absl::Status Lowering::all(std::vector<std::unique_ptr<Pass>> passes) {
  for (std::unique_ptr<Pass> &p : passes)
    if (absl::Status status = pass(std::move(p)); !status.ok())
      return status;
  return absl::OkStatus();
}

std::vector<std::unique_ptr<Pass>> Lowering::modelPasses() {
  const CompileOptions &o = request_.options;
  std::vector<std::unique_ptr<Pass>> passes;
  passes.push_back(createRemoveUnreachableExperts({.keep = o.keepUnreachable}));
  if (o.pruningRatio > 0)
    passes.push_back(createPruneExpertsFor(o.pruningRatio, o.histogram));
  return passes;
}

std::vector<std::unique_ptr<Pass>> Lowering::planPasses() {
  const CompileOptions &o = request_.options;
  FormPhasesOptions form;
  form.maxBatch = o.maxBatch;
  form.maxSeq = o.maxSeq;
  form.activations = wordFor(o.activations);
  form.dtype = wordFor(o.dtype);
  form.quantization = wordFor(o.quantization);
  std::vector<std::unique_ptr<Pass>> passes;
  passes.push_back(createFormPhasesFor(request_.target, form));
  passes.push_back(
      createAssignSlots({.policy = std::string(wordFor(o.smPolicy))}));
  passes.push_back(
      createPlaceBanks({.policy = std::string(wordFor(o.bankPolicy))}));
  passes.push_back(createPlanMemory({.allowOversize = request_.allowOversize}));
  passes.push_back(createPlanPrefill(
      {.maxPrefill = o.maxPrefill, .allowOversize = request_.allowOversize}));
  passes.push_back(
      createPredictLatency({.promptTokens = request_.shape.prompt,
                            .newTokens = request_.shape.generated}));
  return passes;
}

std::string Lowering::print() {
  std::string text;
  llvm::raw_string_ostream out(text);
  module_->print(out);
  return text;
}

absl::Status Lowering::readPlan(Lowered &result) {
  auto devices = module_->getOps<plan::DeviceOp>();
  if (!llvm::hasSingleElement(devices))
    return absl::InternalError("expected one plan.device");
  FailureOr<PlanTables> tables = toTables(*devices.begin());
  if (failed(tables))
    return absl::InternalError(errors_);
  result.tables = *std::move(tables);
  result.predictionJson = predictionJson(*devices.begin());
  return absl::OkStatus();
}

absl::StatusOr<Lowered> Lowering::run() {
  Lowered result;
  build();
  if (failed(verify(*module_)))
    return absl::InternalError(
        absl::StrCat("the model's IR does not verify: ", errors_));
  if (absl::Status status = all(modelPasses()); !status.ok())
    return status;
  result.grokText = print();
  if (request_.emit == EmitPhase::kGrok)
    return result;
  if (absl::Status status = all(planPasses()); !status.ok())
    return status;
  result.planText = print();
  if (absl::Status status = readPlan(result); !status.ok())
    return status;
  return result;
}

} // namespace

absl::StatusOr<Lowered> lower(const CompileRequest &request,
                              const CompileHooks &hooks) {
  return Lowering(request, hooks).run();
}

} // namespace grok
