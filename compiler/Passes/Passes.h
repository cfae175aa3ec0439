// The passes of the compiler; Passes.td documents them.
#pragma once

#include <memory>
#include <string>

#include "mlir/Pass/Pass.h"

#include "ir/Model/GrokDialect.h"
#include "ir/Plan/PlanDialect.h"

namespace grok {

#define GEN_PASS_DECL
#include "compiler/Passes/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "compiler/Passes/Passes.h.inc"

} // namespace grok
