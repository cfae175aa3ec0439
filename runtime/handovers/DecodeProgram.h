// The decode kernel's order of waits and hand-overs for a plan. It follows
// codegen/Device: decode.h, attention*.h, experts.h, head.h, matvec.h and
// ring.h; whoever changes what those wait for changes this too.
#pragma once

#include <vector>

#include "runtime/handovers/Program.h"
#include "runtime/handovers/Scenario.h"

namespace grok::handovers {

/// Every slot's consumer, then every slot's producer. The plan has been checked
/// and is for a machine with a decode kernel.
std::vector<Process> decodeProcesses(const ModelConfig &model,
                                     const PlanTables &plan,
                                     const Scenario &scenario);

} // namespace grok::handovers
