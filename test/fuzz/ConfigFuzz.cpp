// config.json in its public spellings.
#include "compiler/Config/Config.h"
#include "test/fuzz/Fuzz.h"

using namespace grok;
using namespace grok::fuzz;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  absl::StatusOr<ParsedConfig> config = parseConfig(textOf(data, size), kFile);
  if (!config.ok()) {
    requireRefusal(config.status());
    return 0;
  }
  require(config->model.validate().ok(), "what was read is valid");
  absl::StatusOr<ModelConfig> again =
      ModelConfig::fromJson(config->model.toJson(), kFile);
  require(again.ok() && *again == config->model,
          "a config survives its canonical form");
  return 0;
}
