#include "tools/cli/CommandLine.h"

#include <cctype>
#include <cstdio>
#include <exception>
#include <iostream>
#include <new>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tools/cli/Memory.h"
#include "tools/cli/Printable.h"

namespace grok::cli {
namespace {

constexpr int kUserError = 1, kInternalError = 70;

int report(const std::string &message, int code) {
  std::cout.flush();
  std::fprintf(stderr, "error: %s\n", printable(message).c_str());
  return code;
}

/// The exit status of what was done, once what it printed is written.
int finishOutput() {
  std::cout.flush();
  return std::cout ? 0
                   : report("found standard output closed or full, expected to "
                            "write to it",
                            kUserError);
}

int report(const absl::Status &status) {
  bool ours = status.code() == absl::StatusCode::kInternal ||
              status.code() == absl::StatusCode::kUnknown;
  return report(std::string(status.message()),
                ours ? kInternalError : kUserError);
}

/// The parser's messages begin with a capital; ours don't.
std::string lowerStart(std::string message) {
  auto second = message.size() > 1 ? static_cast<unsigned char>(message[1]) : 0;
  if (std::islower(second) || second == ' ')
    message[0] = char(std::tolower(static_cast<unsigned char>(message[0])));
  while (!message.empty() && (message.back() == '\n' || message.back() == '.'))
    message.pop_back();
  return message;
}

/// The commands that --help lists.
std::string commandList(const CLI::App &app) {
  std::vector<std::string> names;
  for (const CLI::App *command : app.get_subcommands(
           [](const CLI::App *c) { return !c->get_group().empty(); }))
    names.push_back(command->get_name());
  std::string last = names.back();
  names.pop_back();
  return absl::StrCat(absl::StrJoin(names, ", "), names.empty() ? "" : " or ",
                      last);
}

/// An option with an empty value, which is neither a name nor a number nor the
/// same as to leave it out: mostly a shell's variable that is not set.
absl::Status checkValues(const CLI::App &command) {
  for (const CLI::Option *option : command.get_options())
    for (const std::string &value : option->results())
      if (value.empty())
        return absl::InvalidArgumentError(
            absl::StrCat(option->get_name(), ": found '', expected ",
                         option->get_type_name(), " of one character or more"));
  return absl::OkStatus();
}

int reportMistake(const CLI::App &app, const CLI::ParseError &error) {
  if (!app.get_subcommands().empty())
    return report(lowerStart(error.what()), kUserError);
  std::vector<std::string> words = app.remaining();
  return report(
      absl::StrCat("found ",
                   words.empty() ? "no command" : "'" + words.front() + "'",
                   ", expected a command: ", commandList(app)),
      kUserError);
}

} // namespace

std::string HelpFormatter::make_help(const CLI::App *app, std::string name,
                                     CLI::AppFormatMode mode) const {
  std::string help = CLI::Formatter::make_help(app, std::move(name), mode);
  help.erase(help.find_last_not_of('\n') + 1);
  if (size_t blank = help.find("\n\n"); blank != help.npos)
    help.erase(blank, 1);
  return help + "\n";
}

int runTool(CLI::App &app, int argc, char **argv,
            const std::vector<std::pair<std::string, Action>> &actions) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success &e) {
    app.exit(e); // prints
    return finishOutput();
  } catch (const CLI::ParseError &e) {
    return reportMistake(app, e);
  }
  for (const auto &[name, action] : actions)
    if (app.got_subcommand(name)) {
      absl::Status status = checkValues(*app.get_subcommand(name));
      if (status.ok())
        status = action();
      if (!status.ok())
        return report(status);
    }
  return finishOutput();
}

int reportException(const std::exception &e) {
  if (dynamic_cast<const std::bad_alloc *>(&e))
    return report(kOutOfMemory, kUserError);
  if (dynamic_cast<const std::system_error *>(&e))
    return report(absl::StrCat("the system refuses: ", e.what()), kUserError);
  return report(e.what(), kInternalError);
}

} // namespace grok::cli
