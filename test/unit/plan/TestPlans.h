// Plans for tests, made in the process by the compiler's passes.
#pragma once

#include <string>
#include <vector>

#include "runtime/bundle/PlanTables.h"

namespace grok {

struct PlanOptions {
  std::string slots = "all", banks = "striped";
  uint32_t maxBatch = 8;
  std::string activations = "single", quantization = "none";
  bool keepUnreachable = false;
};

/// The config of one of the test models.
ModelConfig readModel(const std::string &name);

/// The tables, which a reader must accept and read back equal.
PlanTables tablesFor(const ModelConfig &model, const std::string &target,
                     const PlanOptions &options = {});

/// The released models and the reference models at their real sizes.
std::vector<std::string> fullSizeConfigs();
ModelConfig readFullSize(const std::string &name);

inline constexpr const char *kModels[] = {"tiny-hash",      "tiny-top2",
                                          "grok1-deep",     "grok1-mha-top1",
                                          "grok2-residual", "hash-offset"};

} // namespace grok
