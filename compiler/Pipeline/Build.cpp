#include "compiler/Pipeline/Build.h"

#include <algorithm>
#include <ostream>

#include "absl/strings/str_cat.h"
#include "codegen/Emit/Emit.h"
#include "compiler/Pipeline/Deadline.h"
#include "compiler/Pipeline/Policies.h"
#include "runtime/bundle/Manifest.h"

namespace grok {
namespace {

Manifest manifestOf(const CompileRequest &request, const Lowered &lowered) {
  const Target &target = request.target;
  Manifest manifest;
  manifest.formatVersion = kBundleFormatVersion;
  manifest.compilerVersion = GROK_VERSION;
  manifest.target = {target.name, target.toJson()};
  manifest.sm = target.sm;
  manifest.ptxVersion = target.ptxVersion;
  manifest.minimumDriver = target.minDriver;
  manifest.weights = request.weights;
  manifest.predictionJson = lowered.predictionJson;
  return manifest;
}

absl::StatusOr<std::string> emitPtx(const CompileRequest &request,
                                    const Lowered &lowered, bool trace) {
  if (request.target.isCpu())
    return absl::InvalidArgumentError(
        absl::StrCat("--emit=ptx: found the target '", request.target.name,
                     "', expected a GPU; it runs no PTX"));
  return emitDecodePtx(request.model, lowered.tables, request.target, trace);
}

/// decode.ptx, prefill.ptx if prompts go through it, and trace.ptx if it is
/// asked for.
absl::Status addKernels(const CompileRequest &request, const Lowered &lowered,
                        std::map<std::string, std::string> &files) {
  for (bool trace : {false, true}) {
    if (trace && !request.options.trace)
      continue;
    absl::StatusOr<std::string> ptx = emitPtx(request, lowered, trace);
    if (!ptx.ok())
      return ptx.status();
    files[trace ? kTraceFile : kDecodeFile] = *std::move(ptx);
  }
  if (lowered.tables.prefill.tokens) {
    absl::StatusOr<std::string> ptx =
        emitPrefillPtx(request.model, lowered.tables, request.target);
    if (!ptx.ok())
      return ptx.status();
    files[kPrefillFile] = *std::move(ptx);
  }
  return absl::OkStatus();
}

absl::Status writeBundleOf(const CompileRequest &request, Lowered lowered,
                           const Ingredients &ingredients,
                           const CompileHooks &hooks) {
  BundleContents contents;
  contents.model = request.model;
  contents.options = request.options;
  contents.manifest = manifestOf(request, lowered);
  std::unique_ptr<TensorSource> weights;
  if (request.weights.kind == WeightsRecipe::Kind::kBlob) {
    absl::StatusOr<std::unique_ptr<TensorSource>> opened =
        ingredients.openWeights();
    if (!opened.ok())
      return opened.status();
    weights = *std::move(opened);
  }
  if (!request.target.isCpu())
    if (absl::Status status = addKernels(request, lowered, contents.files);
        !status.ok())
      return status;
  contents.files["plan.mlir"] = std::move(lowered.planText);
  if (!ingredients.tokenizer.empty())
    contents.files[ingredients.tokenizerFile] = ingredients.tokenizer;
  contents.plan = std::move(lowered.tables);
  WriteHooks listeners;
  listeners.progress = hooks.progress;
  if (hooks.report)
    listeners.report = [&](bool warning, const std::string &message) {
      hooks.report(warning ? CompileHooks::Severity::kWarning
                           : CompileHooks::Severity::kRemark,
                   message);
    };
  return writeBundle(request.output, contents, weights.get(), listeners);
}

} // namespace

absl::Status build(CompileRequest request, const Ingredients &ingredients,
                   std::ostream &text, const CompileHooks &hooks) {
  if (absl::Status status = request.model.validate(); !status.ok())
    return status;
  if (request.options.maxSeq == 0)
    request.options.maxSeq = request.model.defaultMaxSeq();
  absl::StatusOr<Lowered> lowered = lowerWithPolicies(request, hooks);
  if (!lowered.ok())
    return lowered.status();
  if (request.deadline)
    if (absl::Status status =
            checkDeadline(lowered->predictionJson, *request.deadline);
        !status.ok())
      return status;
  switch (request.emit) {
  case EmitPhase::kGrok:
    text << lowered->grokText;
    return absl::OkStatus();
  case EmitPhase::kPlan:
    text << lowered->planText;
    return absl::OkStatus();
  case EmitPhase::kPtx: {
    absl::StatusOr<std::string> ptx =
        emitPtx(request, *lowered, request.options.trace);
    if (ptx.ok())
      text << *ptx;
    return ptx.status();
  }
  case EmitPhase::kBundle:
    return writeBundleOf(request, *std::move(lowered), ingredients, hooks);
  }
  return absl::InternalError("unknown phase");
}

} // namespace grok
