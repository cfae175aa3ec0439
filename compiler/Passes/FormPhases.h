// --grok-form-phases for a target that is at hand, not named.
#pragma once

#include <memory>

#include "compiler/Passes/Passes.h"
#include "compiler/Target/Target.h"

namespace grok {

/// As createFormPhases(options), but for `target`, whatever options.target
/// says.
std::unique_ptr<mlir::Pass> createFormPhasesFor(Target target,
                                                FormPhasesOptions options);

} // namespace grok
