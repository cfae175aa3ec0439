// From what a traced kernel noted to spans of time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/Executor.h"
#include "runtime/bundle/KernelAbi.h"

namespace grok::cuda {

/// The spans of every slot, in the order of slots and of time. `entries` is
/// [slot][most], of which counts[slot] are there: a begin, at most one ready
/// and an end of one phase after the other. Internal if they are not so.
absl::StatusOr<std::vector<TraceSpan>>
traceSpans(std::span<const abi::TraceEntry> entries,
           std::span<const uint32_t> counts);

} // namespace grok::cuda
