// What a checkpoint is, told without reading its weights.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/bundle/ModelConfig.h"
#include "runtime/checkpoint/ModelTensors.h"

namespace grok {

struct Survey {
  struct Amount {
    uint64_t tensors = 0, bytes = 0;
  };
  absl::Status unreadable; // openFileSet's: the rest is what it found before
  std::string place;       // the directory
  std::string layout;
  std::optional<Spelling> spelling;
  size_t files = 0;
  Amount all;
  std::map<std::string, Amount> types; // by element type and coding
  /// The config that was given, or the shapes that the tensors themselves show
  /// (numHeads * headDim and the like are right, their factors are not).
  ModelConfig model;
  Mismatches mismatches;
  Listing misplaced;          // FileSet's
  absl::Status contradiction; // metadata that the config contradicts
  std::string firstName;      // of a tensor
  std::vector<std::string> notes;
};

/// `model`: what the checkpoint should be; null: what most of it looks like.
/// An error if not even the layout can be named.
absl::StatusOr<Survey> surveyCheckpoint(const std::string &path,
                                        const ModelConfig *model);

} // namespace grok
