// What the tools do about signals that end them.
#pragma once

namespace grok {

/// Signals that end the process remove its temporaries first. Those that are
/// ignored stay so.
void removeTemporariesOnSignals();

} // namespace grok
