// Libraries that are opened when they are needed.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace grok {

/// Opens a library by its path, or by a name that the loader looks for.
/// Unavailable with the loader's reason.
absl::StatusOr<void *> openLibrary(const std::string &name);

} // namespace grok
