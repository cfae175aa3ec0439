// Compiling with weights that are at hand, as compile (from a checkpoint) and
// retarget (from a bundle) both do. Internal to this room.
#pragma once

#include <functional>
#include <iosfwd>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "compiler/Pipeline/Pipeline.h"

namespace grok {

/// Things that a bundle holds beside what is compiled.
struct Ingredients {
  /// Opens the weights of a recipe of kind kBlob; called once the plan stands.
  std::function<absl::StatusOr<std::unique_ptr<TensorSource>>()> openWeights;
  std::string tokenizer;     // its bytes; empty: none
  std::string tokenizerFile; // its name in the bundle
};

/// compile, with the ingredients given. request.checkpoint and
/// request.tokenizer are not looked at.
absl::Status build(CompileRequest request, const Ingredients &ingredients,
                   std::ostream &text, const CompileHooks &hooks);

} // namespace grok
