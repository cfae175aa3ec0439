// From the name of a device to an executor on it.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/Executor.h"

namespace grok {

/// `device` is "auto", "cpu" or "cuda:N". With "auto" it is the first GPU if
/// the bundle has PTX and a driver and a fitting device are there, else the
/// CPU. InvalidArgument for another name or wrong limits; Unavailable for a GPU
/// that is not there or that this build cannot use; else what the executor
/// says. The bundle must outlive the executor.
absl::StatusOr<std::unique_ptr<Executor>>
openExecutor(const Bundle &bundle, const std::string &device,
             const LoadLimits &limits);

/// The ordinal in "cuda:N"; InvalidArgument for anything else.
absl::StatusOr<int> cudaOrdinal(const std::string &device);

/// A target description of that GPU, as a JSON text.
absl::StatusOr<std::string> probeTarget(const std::string &device);

} // namespace grok
