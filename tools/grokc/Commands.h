// The subcommands of grokc. Each adds itself to the command line and keeps what
// was said there.
#pragma once

#include <functional>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"

namespace grok::grokc {

/// What to do once the command line is read.
using Action = std::function<absl::Status()>;

/// Each returns its action, to be run if `app.got_subcommand(NAME)`.
Action addCompile(CLI::App &app);
Action addRetarget(CLI::App &app);
Action addInspect(CLI::App &app);
Action addRouting(CLI::App &app);

} // namespace grok::grokc
