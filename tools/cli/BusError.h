// Files that a tool has mapped, and that somebody cuts off meanwhile.
#pragma once

namespace grok {

/// A bus error ends the process with status 1, a message that names the
/// file, says what happened and what to do, and without its temporaries.
void explainBusErrors();

} // namespace grok
