// Plans for tests, made in the process by the compiler's passes.
#pragma once

#include <string>

#include "runtime/bundle/PlanTables.h"

namespace grok {

struct PlanOptions {
  std::string slots = "all", banks = "striped";
  uint32_t maxBatch = 8;
  std::string activations = "single";
  bool keepUnreachable = false;
};

/// The config of one of the test models.
ModelConfig readModel(const std::string &name);

/// The tables, which a reader must accept and read back equal.
PlanTables tablesFor(const ModelConfig &model, const std::string &target,
                     const PlanOptions &options = {});

/// The sizes of the released models.
ModelConfig grok1();
ModelConfig grok2();

inline constexpr const char *kModels[] = {"tiny-hash",      "tiny-top2",
                                          "grok1-deep",     "grok1-mha-top1",
                                          "grok2-residual", "hash-offset"};

} // namespace grok
