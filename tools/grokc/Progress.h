// What a long command says while it works: findings, and a bar when stderr is a
// terminal.
#pragma once

#include "compiler/Pipeline/Pipeline.h"

namespace grok::grokc {

/// "remark: ..." and "warning: ..." on stderr, and a progress bar of the blob
/// if stderr is a terminal.
CompileHooks consoleHooks();

} // namespace grok::grokc
