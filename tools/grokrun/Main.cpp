// grokrun: the command line of the runtime. Exit status 0, 1 for the user's
// mistakes, 70 for ours.
#include <cctype>
#include <cstdio>
#include <exception>
#include <iostream>
#include <utility>

#include "tools/common/Signals.h"
#include "tools/grokrun/Commands.h"

namespace {

constexpr int kUserError = 1, kInternalError = 70;

int report(const std::string &message, int code) {
  std::cout.flush();
  std::fprintf(stderr, "error: %s\n", message.c_str());
  return code;
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

int run(int argc, char **argv) {
  CLI::App app("Runs compiled bundles (NAME.grok) on a GPU or the CPU.",
               "grokrun");
  app.set_version_flag("--version", "grokrun " GROK_VERSION);
  app.require_subcommand(1);
  app.get_formatter()->column_width(34);
  using namespace grok::grokrun;
  const std::pair<const char *, Action> actions[] = {
      {"generate", addGenerate(app)}, {"logits", addLogits(app)},
      {"eval", addEval(app)},         {"bench", addBench(app)},
      {"verify", addVerify(app)},     {"pack", addPack(app)},
      {"probe", addProbe(app)},       {"replay", addReplay(app)}};
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success &e) {
    return app.exit(e);
  } catch (const CLI::ParseError &e) {
    return report(lowerStart(e.what()), kUserError);
  }
  for (const auto &[name, action] : actions)
    if (app.got_subcommand(name))
      if (absl::Status status = action(); !status.ok())
        return report(status);
  std::cout.flush();
  return std::cout ? 0
                   : report("found standard output closed or full, expected to "
                            "write to it",
                            kUserError);
}

} // namespace

int main(int argc, char **argv) {
  grok::removeTemporariesOnSignals();
  try {
    return run(argc, argv);
  } catch (const std::exception &e) {
    return report(e.what(), kInternalError);
  }
}
