// The subcommands of grokrun. Each adds itself to the command line and keeps
// what was said there.
#pragma once

#include <functional>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"

namespace grok::grokrun {

/// What to do once the command line is read.
using Action = std::function<absl::Status()>;

/// Each returns its action, to be run if `app.got_subcommand(NAME)`.
Action addGenerate(CLI::App &app);
Action addLogits(CLI::App &app);
Action addEval(CLI::App &app);
Action addBench(CLI::App &app);
Action addCheck(CLI::App &app);
Action addVerify(CLI::App &app);
Action addPack(CLI::App &app);
Action addProbe(CLI::App &app);
Action addReplay(CLI::App &app);
Action addServe(CLI::App &app);
Action addRequest(CLI::App &app);

} // namespace grok::grokrun
