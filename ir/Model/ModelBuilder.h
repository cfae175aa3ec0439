// From a configuration to the dialect `grok` and back.
#pragma once

#include <map>
#include <string>

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include "ir/Model/GrokDialect.h"
#include "runtime/bundle/ModelConfig.h"

namespace grok::ir {

/// Where the keys of a config.json are: lines (from 1) by JSON pointer, as
/// json::Document::lines.
struct SourceLines {
  std::string file;
  std::map<std::string, unsigned> lines;
};

/// A module that holds one grok.model, "main", of a config that
/// `config.validate()` accepts. Operations carry the line of the key that they
/// come from, if `source` has it, else the first line of its file, else no
/// location.
mlir::OwningOpRef<mlir::ModuleOp>
buildModel(mlir::MLIRContext &context, const ModelConfig &config,
           const SourceLines *source = nullptr);

/// The inverse: the configuration that a model's operations state. Never fails
/// on a verified model.
mlir::FailureOr<ModelConfig> readModel(ModelOp model);

} // namespace grok::ir
