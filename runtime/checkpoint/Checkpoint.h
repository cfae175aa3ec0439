// Opening a checkpoint directory, whatever its layout and spelling.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/bundle/TensorSource.h"

namespace grok {

/// The directory's checkpoint, in any of the public tensor spellings: one
/// safetensors file, a sharded index, or Grok-2's tensor-parallel file set;
/// PyTorch's .bin, one or sharded; GGUF, one file or split, of which any may be
/// named itself; xAI's ckpt-0. Checks that every tensor of `model` is there,
/// whole and of the right shape, before it returns. `notes`, if given, gets
/// oddities that are no errors (files that were ignored, a wrong total size), a
/// line each. The files are mapped: they must not be made shorter while the
/// source lives.
absl::StatusOr<std::unique_ptr<TensorSource>>
openCheckpoint(const std::string &directory, const ModelConfig &model,
               std::vector<std::string> *notes = nullptr);

} // namespace grok
