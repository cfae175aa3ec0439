// grokrun: the command line of the runtime. Exit status 0, 1 for the user's
// mistakes, 70 for ours.
#include <exception>
#include <memory>

#include "tools/cli/CommandLine.h"
#include "tools/cli/Process.h"
#include "tools/grokrun/Commands.h"

namespace {

int run(int argc, char **argv) {
  CLI::App app("Runs compiled bundles (NAME.grok) on a GPU or the CPU.",
               "grokrun");
  app.set_version_flag("--version", "grokrun " GROK_VERSION);
  app.require_subcommand(1);
  app.formatter(std::make_shared<grok::cli::HelpFormatter>());
  app.get_formatter()->column_width(34);
  using namespace grok::grokrun;
  return grok::cli::runTool(app, argc, argv,
                            {{"generate", addGenerate(app)},
                             {"logits", addLogits(app)},
                             {"eval", addEval(app)},
                             {"bench", addBench(app)},
                             {"serve", addServe(app)},
                             {"request", addRequest(app)},
                             {"verify", addVerify(app)},
                             {"check", addCheck(app)},
                             {"pack", addPack(app)},
                             {"probe", addProbe(app)},
                             {"replay", addReplay(app)}});
}

} // namespace

int main(int argc, char **argv) {
  grok::prepareProcess();
  try {
    return run(argc, argv);
  } catch (const std::exception &e) {
    return grok::cli::reportException(e);
  }
}
