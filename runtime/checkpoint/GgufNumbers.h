// What a GGUF file says of the model beside its weights.
#pragma once

#include "absl/status/status.h"
#include "runtime/bundle/ModelConfig.h"
#include "runtime/checkpoint/FileSet.h"

namespace grok {

/// InvalidArgument, with the key and both values, where the file's metadata
/// contradicts the config, or is of a wrong type. Keys that are absent say
/// nothing: readers disagree on what they mean then.
absl::Status checkNumbers(const FileSet &set, const ModelConfig &model);

/// Notes what the metadata says beyond what is understood, and a context that
/// is shorter than the config's.
void noteNumbers(FileSet &set, const ModelConfig &model);

} // namespace grok
