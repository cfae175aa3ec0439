// config.json in the three public spellings (hpcai-tech's and keyfan's Grok-1,
// xAI's Grok-2), with this system's `expert_routing`, reduced to a ModelConfig.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "runtime/bundle/Json.h"
#include "runtime/bundle/ModelConfig.h"

namespace grok {

struct ParsedConfig {
  ModelConfig model;
  json::Document
      document; // where every key stands, for locations in later messages
};

/// Reads `path`, a config.json or a directory that holds one. `gelu` overrides
/// what the config says or implies.
///
/// InvalidArgument "FILE:LINE: key 'x': found V, expected E" for malformed
/// JSON, wrong types, values out of range, keys that are unknown, and keys that
/// are known but ask for something that is not compiled; NotFound if there is
/// no such file.
absl::StatusOr<ParsedConfig>
readConfig(const std::string &path, std::optional<Gelu> gelu = std::nullopt);

/// The same for text that is already there; `file` names it in messages.
absl::StatusOr<ParsedConfig>
parseConfig(std::string_view text, std::string_view file,
            std::optional<Gelu> gelu = std::nullopt);

} // namespace grok
