#include <memory>

#include "compiler/Pipeline/Pipeline.h"
#include "tools/grokc/Commands.h"
#include "tools/grokc/Flags.h"
#include "tools/grokc/Progress.h"

namespace grok::grokc {
namespace {

struct Arguments {
  std::string input, target, banks, output;
  bool allowOversize = false;
};

absl::Status retargetCommand(const Arguments &args) {
  RetargetRequest request;
  request.input = args.input;
  request.output = args.output;
  request.allowOversize = args.allowOversize;
  if (args.output.empty())
    return absl::InvalidArgumentError(
        "-o: not given, expected the bundle to write, OUT.grok");
  if (!args.banks.empty()) {
    auto banks = flagInteger("--banks", args.banks, 1, 256);
    if (!banks.ok())
      return banks.status();
    request.bankCount = *banks;
  }
  // Without either, findTarget's error lists the targets.
  if (!args.target.empty() || args.banks.empty()) {
    absl::StatusOr<Target> target = flagTarget(args.target);
    if (!target.ok())
      return target.status();
    request.target = *std::move(target);
  }
  return retarget(request, consoleHooks());
}

} // namespace

Action addRetarget(CLI::App &app) {
  auto args = std::make_shared<Arguments>();
  CLI::App *c = app.add_subcommand(
      "retarget", "Make the bundle for another target from a bundle alone");
  c->add_option("bundle", args->input,
                "the bundle to start from; it stays as it is")
      ->required()
      ->type_name("IN.grok");
  c->add_option("--target", args->target, "the part to compile for")
      ->type_name("NAME|FILE");
  c->add_option("--banks", args->banks,
                "number of banks, instead of the target's")
      ->type_name("N");
  c->add_option("-o", args->output, "the bundle to write")
      ->type_name("OUT.grok");
  c->add_flag("--allow-oversize", args->allowOversize,
              "compile what the device cannot hold");
  return [args] { return retargetCommand(*args); };
}

} // namespace grok::grokc
