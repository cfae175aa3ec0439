// What a bundle records beside what the runtime reads: the target's description
// and what the experts' choice follows from. inspect shows it, verify checks
// it.
#pragma once

#include <optional>

#include "absl/status/statusor.h"
#include "compiler/Routing/Routing.h"
#include "compiler/Target/Target.h"
#include "runtime/bundle/Bundle.h"
#include "runtime/bundle/Json.h"

namespace grok::cli {

struct Records {
  Target target;
  json::Document prediction;
  std::optional<HashAnalysis> hash;     // of a model with hash routing
  std::optional<PruningChoice> pruning; // if experts were pruned
};

/// InvalidArgument "BUNDLE/FILE...: ..." if a part cannot be read.
absl::StatusOr<Records> readRecords(const Bundle &bundle);

} // namespace grok::cli
