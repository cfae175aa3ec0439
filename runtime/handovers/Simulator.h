// Plays a network in one order.
#pragma once

#include "absl/status/status.h"
#include "runtime/handovers/Network.h"
#include "runtime/handovers/Schedule.h"

namespace grok::handovers {

/// Until every consumer is done. FailedPrecondition "FILE: slot S, phase P,
/// layer L, step T: ..." with the schedule's name where nobody can go on, where
/// words are overwritten before they have been read, and where entries of the
/// KV cache are streamed before they are sure to be there.
absl::Status simulate(const Network &network, const Schedule &schedule);

} // namespace grok::handovers
