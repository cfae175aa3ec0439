// The frame of a tool with subcommands: parse, act, report.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"

namespace grok::cli {

/// Help without empty lines at its end and before its first list, so that more
/// of it fits a screen.
class HelpFormatter : public CLI::Formatter {
public:
  std::string make_help(const CLI::App *app, std::string name,
                        CLI::AppFormatMode mode) const override;
};

/// What to do once the command line is read.
using Action = std::function<absl::Status()>;

/// Parses the command line and runs the action of the command that it names.
/// Errors go to stderr, "error: ...". Exit status 0, 1 for the user's mistakes,
/// 70 for ours.
int runTool(CLI::App &app, int argc, char **argv,
            const std::vector<std::pair<std::string, Action>> &actions);

/// "error: MESSAGE" of what escaped `runTool`; exit status 1 where the system
/// has no memory or no thread left, else 70.
int reportException(const std::exception &e);

} // namespace grok::cli
