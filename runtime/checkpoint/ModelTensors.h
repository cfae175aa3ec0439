// Which stored tensor is which tensor of the model.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/bundle/TensorSource.h"
#include "runtime/checkpoint/FileSet.h"
#include "runtime/checkpoint/Messages.h"
#include "runtime/checkpoint/TensorNames.h"

namespace grok {

using TensorMap = std::map<TensorId, StoredTensor>;

/// Takes every tensor of the model out of `set`. NotFound or InvalidArgument,
/// with file, tensor, what was found and expected, if one is missing, has
/// another shape or an element type that is not read, or if a tensor is left
/// over. A tied head that is not stored is the embedding.
absl::StatusOr<TensorMap> matchTensors(FileSet &set, const ModelConfig &model);

/// The spelling that most of the names have; none if no name has any.
std::optional<Spelling> detectSpelling(const FileSet &set);

/// All that matchTensors would stumble over, one after the other: messages for
/// missing and wrong tensors, and the names of those that are left over. Takes
/// time and memory for what is stored, whatever numbers the names have.
struct Mismatches {
  Listing missing, wrong, extra;
};
Mismatches findMismatches(FileSet set, const ModelConfig &model);

} // namespace grok
