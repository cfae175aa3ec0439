// The plan as a picture: slots by phases.
#pragma once

#include <string>

#include "runtime/bundle/PlanTables.h"

namespace grok::report {

/// Slots from top to bottom, the streamed matrices from left to right in the
/// order in which a step reads them, every expert's apart; a cell is as dark as
/// the slot has tiles, beside the slot that has the most.
std::string planChart(const PlanTables &plan);

} // namespace grok::report
