// From the plan's tables to PTX: a small translation unit that instantiates the
// device library with the constants of one model and one plan, compiled in the
// process.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "compiler/Target/Target.h"
#include "runtime/bundle/PlanTables.h"

namespace grok {

/// The translation unit: constants, and one line a kernel. `trace`: its decode
/// kernel notes when each slot begins and ends each phase. InvalidArgument if a
/// constant of the model is no finite float32.
absl::StatusOr<std::string> emitTranslationUnit(const ModelConfig &model,
                                                const PlanTables &plan,
                                                const Target &target,
                                                bool trace = false);

/// decode.ptx, or with `trace` trace.ptx: the kernels grok_decode, grok_fill
/// and grok_stream for a GPU target. Errors as emitTranslationUnit's and
/// codegen::compileToPtx's.
absl::StatusOr<std::string> emitDecodePtx(const ModelConfig &model,
                                          const PlanTables &plan,
                                          const Target &target,
                                          bool trace = false);

/// The translation unit of the prefill kernels, of a plan with prefill.
absl::StatusOr<std::string>
emitPrefillUnit(const ModelConfig &model, const PlanTables &plan, uint32_t sm);

/// prefill.ptx: the kernels grok_prefill_*. Errors as emitDecodePtx's.
absl::StatusOr<std::string> emitPrefillPtx(const ModelConfig &model,
                                           const PlanTables &plan,
                                           const Target &target);

} // namespace grok
