// Generating ids until one of several says that the text ends.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/Executor.h"

namespace grok::grokrun {

struct Continuation {
  std::vector<int32_t> ids; // the one that ended it included
  bool stopped = false;     // by one of the stop ids
  double seconds = 0;
};

struct ContinueOptions {
  uint32_t count = 0; // ids at most
  std::vector<int32_t> stopIds;
  float temperature = 0;
  uint64_t seed = 0;
  /// Called after every id, with all new ones so far, if set.
  std::function<absl::Status(const std::vector<int32_t> &ids)> onIds;
};

/// The ids do not depend on whether onIds is set.
absl::StatusOr<Continuation> continueIds(Executor &executor,
                                         const ModelConfig &model,
                                         const std::vector<int32_t> &prompt,
                                         const ContinueOptions &options);

} // namespace grok::grokrun
