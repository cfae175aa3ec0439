// What becomes of the compiler when the system has no memory.
#pragma once

namespace grok {

/// LLVM, which is built without exceptions, calls `end` where it has no memory;
/// it must not return. Without this LLVM aborts with a message of its own.
void endWithoutMemory(void (*end)());

} // namespace grok
