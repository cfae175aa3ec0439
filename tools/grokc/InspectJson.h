// Everything that `grokc inspect` knows of a bundle, as JSON; the text is
// rendered from it.
#pragma once

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "runtime/bundle/Bundle.h"

namespace grok::grokc {

/// Members model, options, target, plan, experts, banks, memory, prediction,
/// weights and files.
absl::StatusOr<nlohmann::json> inspectJson(const Bundle &bundle);

/// Tables for people.
std::string inspectText(const nlohmann::json &report);

} // namespace grok::grokc
