// What the tools do when the system has no memory.
#pragma once

namespace grok::cli {

inline constexpr const char *kOutOfMemory =
    "out of memory; close other programs or choose smaller sizes";

/// Memory that ends where no exception may pass, in a destructor or a thread,
/// ends the process as it does elsewhere: status 1, a message, and no
/// temporaries left.
void explainTermination();

/// The same at once, from where memory ends.
[[noreturn]] void exitWithoutMemory();

} // namespace grok::cli
