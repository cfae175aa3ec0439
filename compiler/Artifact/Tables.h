// Plan IR as the tables that a bundle carries.
#pragma once

#include <string>

#include "ir/Plan/PlanDialect.h"
#include "runtime/bundle/PlanTables.h"

namespace grok {

/// The tables of a verified device through which all planning passes have gone;
/// one that lacks a pass's part is an error at the device that names the pass.
mlir::FailureOr<PlanTables> toTables(plan::DeviceOp device);

/// The device's predictions as a canonical JSON object: {"clock_mhz",
/// "predictions": [{"scope": "step" | "request", "batch", "context",
/// "generated", "exhaustive", "best": {"us", "experts", "terms": {...}},
/// "expected": ..., "worst": ...}]}.
std::string predictionJson(plan::DeviceOp device);

} // namespace grok
