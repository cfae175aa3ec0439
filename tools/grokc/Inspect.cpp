#include <iostream>
#include <memory>

#include "runtime/bundle/Bundle.h"
#include "tools/grokc/Commands.h"
#include "tools/grokc/InspectJson.h"

namespace grok::grokc {
namespace {

struct Arguments {
  std::string bundle;
  bool json = false;
};

absl::Status inspectCommand(const Arguments &args) {
  absl::StatusOr<std::shared_ptr<Bundle>> bundle = Bundle::open(args.bundle);
  if (!bundle.ok())
    return bundle.status();
  absl::StatusOr<nlohmann::json> report = inspectJson(**bundle);
  if (!report.ok())
    return report.status();
  // A path need not be UTF-8.
  using Handler = nlohmann::json::error_handler_t;
  std::cout << (args.json ? report->dump(2, ' ', false, Handler::replace) + "\n"
                          : inspectText(*report));
  return absl::OkStatus();
}

} // namespace

Action addInspect(CLI::App &app) {
  auto args = std::make_shared<Arguments>();
  CLI::App *c = app.add_subcommand(
      "inspect",
      "Show a bundle's model, plan, banks, memory map and prediction");
  c->add_option("bundle", args->bundle, "the bundle")
      ->required()
      ->type_name("OUT.grok");
  c->add_flag("--json", args->json, "the same as JSON, complete");
  return [args] { return inspectCommand(*args); };
}

} // namespace grok::grokc
