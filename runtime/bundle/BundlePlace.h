// Where a bundle may be written, and where nothing else may.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace grok {

/// An error for what no rename can put a bundle in the place of.
absl::Status checkReplaceable(const std::string &path);
/// Whether a bundle is at `path`; an error if something else is.
absl::StatusOr<bool> findBundle(const std::string &path);
/// An error for what lies inside of another bundle, which would be one no more:
/// its manifest lists every file.
absl::Status checkOutsideOfBundles(const std::string &path);

} // namespace grok
