// The part of the pipeline that runs on IR: from a config to the plan's tables.
// Internal to this room.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "compiler/Pipeline/Pipeline.h"
#include "runtime/bundle/PlanTables.h"

namespace grok {

/// What the IR says. Only `grokText` is filled in when the request ends at
/// EmitPhase::kGrok.
struct Lowered {
  std::string grokText; // the module after the passes on the model
  std::string planText; // the module with its plan: plan.mlir
  PlanTables tables;
  std::string predictionJson;
};

/// Runs the passes. Remarks and warnings go to hooks.report, errors into the
/// status: InvalidArgument if a pass refuses the request, Internal if it leaves
/// IR that does not verify.
absl::StatusOr<Lowered> lower(const CompileRequest &request,
                              const CompileHooks &hooks);

} // namespace grok
