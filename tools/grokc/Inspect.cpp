#include <iostream>
#include <memory>

#include "runtime/bundle/Bundle.h"
#include "runtime/bundle/OutputFile.h"
#include "tools/grokc/Commands.h"
#include "tools/grokc/InspectJson.h"
#include "tools/report/BundleSections.h"

namespace grok::grokc {
namespace {

struct Arguments {
  std::string bundle, report;
  bool json = false;
};

absl::Status inspectCommand(const Arguments &args) {
  if (absl::Status s = checkApart(args.report, {args.bundle}); !s.ok())
    return s;
  absl::StatusOr<std::shared_ptr<Bundle>> bundle = Bundle::open(args.bundle);
  if (!bundle.ok())
    return bundle.status();
  absl::StatusOr<nlohmann::json> shown = inspectJson(**bundle);
  if (!shown.ok())
    return shown.status();
  if (!args.report.empty()) {
    absl::StatusOr<std::string> page = report::bundlePage(**bundle);
    if (!page.ok())
      return page.status();
    if (absl::Status s = writeTextFile(args.report, *page); !s.ok())
      return s;
  }
  // ASCII, as a terminal obeys other bytes; a path need not be UTF-8.
  using Handler = nlohmann::json::error_handler_t;
  std::cout << (args.json ? shown->dump(2, ' ', true, Handler::replace) + "\n"
                          : inspectText(*shown));
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
  c->add_option("--report", args->report, "also write a page with plots, HTML")
      ->type_name("FILE");
  return [args] { return inspectCommand(*args); };
}

} // namespace grok::grokc
