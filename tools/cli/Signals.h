// What the tools do about signals that end them.
#pragma once

namespace grok {

/// Signals that end the process remove its temporaries first. Those that are
/// ignored stay so.
void removeTemporariesOnSignals();

/// From now on SIGINT or SIGTERM makes the descriptor that this returns
/// readable; the second one does what it did before. Those that are ignored
/// stay so. -1 if the system has no descriptor left.
int stopOnSignals();

} // namespace grok
