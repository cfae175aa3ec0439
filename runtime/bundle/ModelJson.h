// What is a member of a larger document (model.json): ModelConfig, options.
#pragma once

#include "runtime/bundle/Json.h"
#include "runtime/bundle/ModelConfig.h"

namespace grok {

struct CompileOptions;

void writeModelConfig(const ModelConfig &config, nlohmann::json &out);
/// Reads the object at `pointer`; errors name the document's lines.
absl::StatusOr<ModelConfig> modelConfigFromJson(const json::Document &document,
                                                const std::string &pointer);
void writeOptions(const CompileOptions &options, nlohmann::json &out);

} // namespace grok
