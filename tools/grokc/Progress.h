// What a long command says while it works: findings, and how far it is.
#pragma once

#include "compiler/Pipeline/Pipeline.h"

namespace grok::grokc {

/// "remark: ..." and "warning: ..." on stderr, and how far the blob is: a bar
/// if stderr is a terminal, else, of large ones, a line for every tenth.
CompileHooks consoleHooks();

} // namespace grok::grokc
