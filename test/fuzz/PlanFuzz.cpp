// plan.bin, against the models that the seeds were compiled from.
#include <vector>

#include "compiler/Config/Config.h"
#include "runtime/bundle/PlanTables.h"
#include "test/fuzz/Fuzz.h"

using namespace grok;
using namespace grok::fuzz;

namespace {

std::vector<ModelConfig> readModels() {
  std::vector<ModelConfig> models;
  for (const char *name : {"/hash.json", "/learned.json"}) {
    absl::StatusOr<ParsedConfig> config =
        readConfig(std::string(GROK_FUZZ_MODELS) + name);
    require(config.ok(), "the seeds' configs can be read");
    models.push_back(config->model);
  }
  return models;
}

} // namespace

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const std::vector<ModelConfig> models = readModels();
  std::string_view text = textOf(data, size);
  for (const ModelConfig &model : models) {
    absl::StatusOr<PlanTables> plan = PlanTables::parse(text, kFile, model);
    if (!plan.ok()) {
      requireRefusal(plan.status());
      continue;
    }
    // Version 2 is not written any more.
    absl::StatusOr<PlanTables> again =
        PlanTables::parse(plan->serialize(), kFile, model);
    require(again.ok() && *again == *plan, "a plan survives being written");
  }
  return 0;
}
