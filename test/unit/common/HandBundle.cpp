// grok-hand-bundle CONFIG_OR_DIRECTORY WEIGHTS OUT.grok: a bundle for the CPU
// on a plan made by hand, so that the runtime's tests need no compiler. WEIGHTS
// is a checkpoint directory, none or synthetic:SEED. The tokenizer beside the
// config goes along.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "compiler/Config/Config.h"
#include "compiler/Target/Target.h"
#include "runtime/bundle/Bundle.h"
#include "runtime/checkpoint/Checkpoint.h"
#include "test/unit/common/HandPlan.h"

namespace grok::test {
namespace {

std::string readFile(const std::filesystem::path &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file),
          std::istreambuf_iterator<char>()};
}

BundleContents contentsOf(const ModelConfig &model, const std::string &config) {
  BundleContents c;
  c.model = model;
  c.plan = handPlan(model, {});
  c.options.dtype = c.plan.dtype;
  c.options.maxBatch = c.plan.maxBatch;
  c.options.maxSeq = c.plan.maxSeq;
  c.manifest.compilerVersion = "by hand";
  Target target = findTarget("cpu").value();
  target.name = "hand";
  c.manifest.target = {target.name, target.toJson()};
  c.manifest.predictionJson = R"({"clock_mhz": 3000, "predictions": []})";
  std::filesystem::path tokenizer =
      std::filesystem::path(config) / "tokenizer.model";
  if (std::filesystem::exists(tokenizer))
    c.files["tokenizer.model"] = readFile(tokenizer);
  return c;
}

absl::Status write(const std::string &config, const std::string &weights,
                   const std::string &out) {
  absl::StatusOr<ParsedConfig> parsed = readConfig(config);
  if (!parsed.ok())
    return parsed.status();
  BundleContents contents = contentsOf(parsed->model, config);
  if (weights == "none")
    return writeBundle(out, contents, nullptr);
  if (weights.rfind("synthetic:", 0) == 0) {
    contents.manifest.weights = {WeightsRecipe::Kind::kSynthetic,
                                 std::stoull(weights.substr(10))};
    return writeBundle(out, contents, nullptr);
  }
  absl::StatusOr<std::unique_ptr<TensorSource>> source =
      openCheckpoint(weights, parsed->model);
  if (!source.ok())
    return source.status();
  contents.manifest.weights.kind = WeightsRecipe::Kind::kBlob;
  return writeBundle(out, contents, source->get());
}

} // namespace
} // namespace grok::test

int main(int argc, char **argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: grok-hand-bundle CONFIG WEIGHTS OUT.grok\n");
    return 1;
  }
  absl::Status status = grok::test::write(argv[1], argv[2], argv[3]);
  if (!status.ok())
    std::fprintf(stderr, "error: %s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
