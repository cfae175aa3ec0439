// What the parts of a bundle must be to each other.
#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "runtime/bundle/Bundle.h"

namespace grok {

/// The plan was made from these options for this model.
absl::Status checkOptions(const CompileOptions &options, const PlanTables &plan,
                          std::string_view file);

/// What the manifest says of policies and files agrees with its target, its
/// weights recipe, the options and the plan.
absl::Status checkManifest(const Manifest &manifest,
                           const CompileOptions &options,
                           const PlanTables &plan, std::string_view file);

/// Every entry of the bundle's directory is a regular file that the manifest
/// lists, with the size that it says, and every listed one is there.
absl::Status checkDirectory(const std::string &path, const Manifest &manifest);

/// A path without trailing slashes.
std::string trimSlashes(std::string path);

} // namespace grok
