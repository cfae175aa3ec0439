// The whole compiler behind two functions: a config and a target become a
// bundle, and a bundle becomes a bundle for another target. Plain C++: no
// header of LLVM is needed to call it.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "compiler/Target/Target.h"
#include "runtime/bundle/Bundle.h"
#include "runtime/bundle/ModelConfig.h"

namespace grok {

/// Where compilation ends (grokc --emit). The first three print text; kBundle
/// writes the bundle.
enum class EmitPhase { kGrok, kPlan, kPtx, kBundle };
/// "grok", "plan", "ptx" or "bundle"; nullopt for anything else.
std::optional<EmitPhase> parseEmitPhase(std::string_view name);

/// Ids of a row's prompt, and those that it gets.
struct RequestShape {
  uint32_t prompt = 512, generated = 64;
};

struct CompileRequest {
  ModelConfig model;
  /// Where the model's keys stand (json::Document's file and lines), for the
  /// locations of messages; may be empty. The bundle does not depend on it.
  std::string configFile;
  std::map<std::string, unsigned> configLines;
  Target target;
  /// maxSeq 0 means min(model.maxPositions, 8192). Recorded in the bundle as
  /// resolved.
  CompileOptions options;
  WeightsRecipe weights;
  std::string checkpoint; // directory, for weights of kind kBlob
  /// A file tokenizer.model or tokenizer.tok.json to copy; empty: the bundle
  /// has none.
  std::string tokenizer;
  bool allowOversize = false;
  /// The policy whose worst predicted request is the shortest; the one in
  /// `options` is not looked at. Recorded in the bundle as chosen.
  bool autoSmPolicy = false, autoBankPolicy = false;
  /// The request that is predicted, fewer ids where rows are shorter.
  RequestShape shape;
  /// What no predicted request may exceed, in seconds.
  std::optional<double> deadline;
  EmitPhase emit = EmitPhase::kBundle;
  std::string output; // bundle directory, for kBundle
};

/// What a caller may listen to; every member may be empty.
struct CompileHooks {
  enum class Severity { kRemark, kWarning };
  /// Findings that are no errors: unreachable experts, bank collisions, a model
  /// larger than the device, ...
  std::function<void(Severity, const std::string &message)> report;
  /// Bytes of the blob written, and their total.
  std::function<void(uint64_t, uint64_t)> progress;
  /// Bytes of retarget's input whose hashes were checked, and their total.
  std::function<void(uint64_t, uint64_t)> checked;
};

/// Compiles as far as request.emit says; text of the earlier phases goes to
/// `text`, which kBundle leaves alone. InvalidArgument, FailedPrecondition,
/// NotFound and the like tell of the request: a model that the target cannot
/// hold
/// ("needs N bytes, M are available", unless allowOversize), a policy that the
/// model has no groups for, a checkpoint that is incomplete, a deadline that
/// the worst predicted request misses. Internal is a
/// fault of the compiler, with the text of the pass or of Clang.
absl::Status compile(const CompileRequest &request, std::ostream &text,
                     const CompileHooks &hooks = {});

struct RetargetRequest {
  std::string input;                 // bundle
  std::optional<Target> target;      // absent: the input's target
  std::optional<uint32_t> bankCount; // replaces the target's
  bool allowOversize = false;
  std::string output;
};

/// The bundle for another target, from `input` alone: the model, the options
/// and the weights (or their recipe) come from it. The result equals, file by
/// file, what compile would write for the new target. Errors as compile's; also
/// InvalidArgument when neither target nor bankCount is given, and whatever
/// reading the bundle finds; the hash of every file that is used is checked
/// before anything is written.
absl::Status retarget(const RetargetRequest &request,
                      const CompileHooks &hooks = {});

} // namespace grok
