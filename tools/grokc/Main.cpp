// grokc: the compiler's command line. Exit status 0, 1 for the user's mistakes,
// 70 for ours.
#include <exception>
#include <memory>

#include "compiler/Pipeline/Memory.h"
#include "tools/cli/CommandLine.h"
#include "tools/cli/Memory.h"
#include "tools/cli/Process.h"
#include "tools/grokc/Commands.h"

namespace {

int run(int argc, char **argv) {
  CLI::App app("Compiles Grok-family mixture-of-experts models ahead of time, "
               "for one GPU or the CPU.",
               "grokc");
  app.set_version_flag("--version", "grokc " GROK_VERSION);
  app.require_subcommand(1);
  app.formatter(std::make_shared<grok::cli::HelpFormatter>());
  app.get_formatter()->column_width(38);
  using namespace grok::grokc;
  return grok::cli::runTool(app, argc, argv,
                            {{"compile", addCompile(app)},
                             {"retarget", addRetarget(app)},
                             {"inspect", addInspect(app)},
                             {"routing", addRouting(app)}});
}

} // namespace

int main(int argc, char **argv) {
  grok::prepareProcess();
  grok::endWithoutMemory(grok::cli::exitWithoutMemory);
  try {
    return run(argc, argv);
  } catch (const std::exception &e) {
    return grok::cli::reportException(e);
  }
}
