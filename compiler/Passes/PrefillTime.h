// How long prompts take through prefill.
#pragma once

#include "compiler/Target/Target.h"
#include "ir/Plan/PlanDialect.h"

namespace grok::plan {

/// Microseconds in which the passes of a device with a plan.prefill take
/// `batch` prompts of `prompt` ids, their tokens spread evenly over `experts`
/// distinct experts of each layer, a mean perhaps; without the head. Besides
/// whole tiles an expert's tokens fill `partTiles` of one: none at best, half
/// of them in the mean, every one at worst.
double prefillUs(DeviceOp device, const Target &target, uint32_t batch,
                 uint32_t prompt, double experts, double partTiles);

} // namespace grok::plan
