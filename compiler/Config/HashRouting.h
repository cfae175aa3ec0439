// The `expert_routing` object of a config.json.
#pragma once

#include <optional>

#include "absl/status/statusor.h"
#include "runtime/bundle/Json.h"
#include "runtime/bundle/ModelConfig.h"

namespace grok {

/// Reads the object at "/expert_routing". `numExperts` is the config's.
/// InvalidArgument with the place if its type is unknown, a value is out of
/// range, or the formula could reach an expert that is not there.
absl::StatusOr<HashRouting> readHashRouting(const json::Document &document,
                                            uint32_t numExperts);

} // namespace grok
