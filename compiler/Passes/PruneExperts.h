// --grok-prune-experts with a histogram that is at hand, not in a file.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "compiler/Passes/Passes.h"

namespace grok {

/// As createPruneExperts, but with these counts per expert; empty: the exact
/// reach of the hash decides.
std::unique_ptr<mlir::Pass>
createPruneExpertsFor(double ratio, std::vector<uint64_t> histogram);

} // namespace grok
