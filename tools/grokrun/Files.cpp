// The subcommands that work on a bundle's files: verify and pack; and probe,
// which writes a target's.
#include <iostream>
#include <memory>

#include "absl/strings/str_cat.h"
#include "runtime/api/Device.h"
#include "runtime/bundle/Bundle.h"
#include "runtime/checkpoint/Checkpoint.h"
#include "tools/cli/Numbers.h"
#include "tools/cli/Records.h"
#include "tools/grokrun/Commands.h"
#include "tools/grokrun/Progress.h"
#include "tools/grokrun/Session.h"

namespace grok::grokrun {
namespace {

absl::Status verifyCommand(const std::string &path) {
  absl::StatusOr<std::shared_ptr<Bundle>> bundle = Bundle::open(path);
  if (!bundle.ok())
    return bundle.status();
  {
    Progress progress("verify");
    absl::Status status = (*bundle)->verify(
        [&](uint64_t done, uint64_t total) { progress.update(done, total); });
    if (!status.ok())
      return status;
  }
  if (absl::Status s = cli::readRecords(**bundle).status(); !s.ok())
    return s;
  uint64_t bytes = 0;
  for (const auto &[name, record] : (*bundle)->manifest().files)
    bytes += record.bytes;
  std::cout << path << ": " << (*bundle)->manifest().files.size() << " files, "
            << bytes << " bytes, all as recorded\n";
  return absl::OkStatus();
}

/// A source for --weights, and what the manifest says of it.
absl::StatusOr<std::unique_ptr<TensorSource>>
openWeights(const std::string &text, const ModelConfig &model,
            WeightsRecipe &recipe) {
  constexpr std::string_view kSynthetic = "synthetic:";
  if (text.compare(0, kSynthetic.size(), kSynthetic) != 0) {
    recipe.kind = WeightsRecipe::Kind::kBlob;
    return openCheckpoint(text, model);
  }
  recipe.kind = WeightsRecipe::Kind::kSynthetic;
  if (!cli::parseDecimal(std::string_view(text).substr(kSynthetic.size()),
                         recipe.seed))
    return absl::InvalidArgumentError(absl::StrCat(
        "--weights: found '", text,
        "', expected synthetic:SEED with an integer SEED, 0 .. 2^64 - 1"));
  return syntheticSource(model, recipe.seed);
}

absl::Status packCommand(const std::string &path, const std::string &weights) {
  WeightsRecipe recipe;
  std::unique_ptr<TensorSource> source;
  {
    absl::StatusOr<std::shared_ptr<Bundle>> bundle = Bundle::open(path);
    if (!bundle.ok())
      return bundle.status();
    absl::StatusOr<std::unique_ptr<TensorSource>> opened =
        openWeights(weights, (*bundle)->model(), recipe);
    if (!opened.ok())
      return opened.status();
    source = std::move(*opened);
  }
  Progress progress("pack");
  WriteHooks hooks;
  hooks.progress = [&](uint64_t done, uint64_t total) {
    progress.update(done, total);
  };
  hooks.report = [](bool warning, const std::string &message) {
    std::cerr << (warning ? "warning: " : "remark: ") << message << "\n";
  };
  return packBundle(path, *source, recipe, hooks);
}

absl::Status probeCommand(const std::string &device) {
  absl::StatusOr<std::string> target = probeTarget(device);
  if (!target.ok())
    return target.status();
  std::cout << *target;
  return absl::OkStatus();
}

} // namespace

Action addVerify(CLI::App &app) {
  auto path = std::make_shared<std::string>();
  CLI::App *command =
      app.add_subcommand("verify", "Check a bundle's structure and every hash");
  addBundle(*command, *path);
  return [path] { return verifyCommand(*path); };
}

Action addPack(CLI::App &app) {
  auto path = std::make_shared<std::string>();
  auto weights = std::make_shared<std::string>();
  CLI::App *command = app.add_subcommand(
      "pack", "Fill in the weights of a bundle without them");
  addBundle(*command, *path);
  command
      ->add_option(
          "--weights", *weights,
          "Checkpoint (a directory or a .gguf file), or synthetic:SEED")
      ->type_name("W")
      ->required();
  return [path, weights] { return packCommand(*path, *weights); };
}

Action addProbe(CLI::App &app) {
  auto device = std::make_shared<std::string>("cuda:0");
  CLI::App *command = app.add_subcommand(
      "probe", "Print a target description of the GPU that is there");
  command->add_option("--device", *device, "The GPU")
      ->type_name("cuda:N")
      ->capture_default_str();
  return [device] { return probeCommand(*device); };
}

} // namespace grok::grokrun
