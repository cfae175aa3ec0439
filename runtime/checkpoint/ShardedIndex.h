// The index of a checkpoint in shards: {"metadata": {"total_size": N},
// "weight_map": {tensor: file}}.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "runtime/bundle/Json.h"

namespace grok {

/// The weight map, each tensor with the place of its line.
struct ShardIndex {
  struct Target {
    std::string file, place;
  };
  std::string path;
  std::string end; // of the shards' names: ".safetensors" or ".bin"
  std::map<std::string, Target> weights;
  std::set<std::string> files; // plain names, all of a numbered set
  nlohmann::json totalSize;    // null: not given
};

/// `path` names the text in errors; its end says which kind of shards it lists.
/// InvalidArgument, naming the key and its line, if it is no such index, lists
/// what is no plain file name of that kind, or not all of a numbered set.
absl::StatusOr<ShardIndex> parseShardIndex(std::string_view text,
                                           const std::string &path);

} // namespace grok
