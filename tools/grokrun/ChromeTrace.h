// Spans of slots as a file for chrome://tracing or Perfetto.
#pragma once

#include <span>
#include <string>

#include "runtime/Executor.h"

namespace grok::grokrun {

/// Chrome's trace event format: a track a slot; a span a phase and inside it
/// one for the wait, if there was one; times in microseconds. `spans` are each
/// slot's in order of time.
std::string chromeTrace(std::span<const TraceSpan> spans);

} // namespace grok::grokrun
