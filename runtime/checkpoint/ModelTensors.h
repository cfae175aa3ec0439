// Which stored tensor is which tensor of the model.
#pragma once

#include <map>

#include "absl/status/statusor.h"
#include "runtime/bundle/TensorSource.h"
#include "runtime/checkpoint/FileSet.h"

namespace grok {

using TensorMap = std::map<TensorId, StoredTensor>;

/// Takes every tensor of the model out of `set`. NotFound or InvalidArgument,
/// with file, tensor, what was found and expected, if one is missing, has
/// another shape or an element type that is not read, or if a tensor is left
/// over. A tied head that is not stored is the embedding.
absl::StatusOr<TensorMap> matchTensors(FileSet &set, const ModelConfig &model);

} // namespace grok
