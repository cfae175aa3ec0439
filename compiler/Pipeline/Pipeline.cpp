#include "compiler/Pipeline/Pipeline.h"

#include <filesystem>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/Config/TextFile.h"
#include "compiler/Pipeline/Build.h"
#include "runtime/bundle/Manifest.h"
#include "runtime/checkpoint/Checkpoint.h"
#include "runtime/tokenizer/BytePair.h"

namespace grok {
namespace {

/// Bytes of a file, one or more; none for an empty path.
absl::StatusOr<std::string> readTokenizer(const std::string &path) {
  constexpr size_t kMaxBytes = size_t(256) << 20; // Grok-2's has 10 MB
  if (path.empty())
    return std::string();
  absl::StatusOr<std::string> bytes = readTextFile(path, kMaxBytes);
  if (bytes.ok() && bytes->empty())
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": found an empty file, expected a tokenizer; download it again "
              "or move it away"));
  return bytes;
}

absl::StatusOr<std::unique_ptr<TensorSource>>
openWeights(const CompileRequest &request, const CompileHooks &hooks) {
  std::vector<std::string> notes;
  absl::StatusOr<std::unique_ptr<TensorSource>> source =
      openCheckpoint(request.checkpoint, request.model, &notes);
  if (hooks.report)
    for (const std::string &note : notes)
      hooks.report(CompileHooks::Severity::kWarning, note);
  return source;
}

} // namespace

std::optional<EmitPhase> parseEmitPhase(std::string_view name) {
  constexpr std::pair<std::string_view, EmitPhase> kNames[] = {
      {"grok", EmitPhase::kGrok},
      {"plan", EmitPhase::kPlan},
      {"ptx", EmitPhase::kPtx},
      {"bundle", EmitPhase::kBundle}};
  for (auto [known, phase] : kNames)
    if (name == known)
      return phase;
  return std::nullopt;
}

absl::Status compile(const CompileRequest &request, std::ostream &text,
                     const CompileHooks &hooks) {
  absl::StatusOr<std::string> tokenizer = readTokenizer(request.tokenizer);
  if (!tokenizer.ok())
    return tokenizer.status();
  std::string name =
      std::filesystem::path(request.tokenizer).filename().string();
  if (name == kBytePairFile) // what is wrong with it is better known now
    if (absl::Status status =
            BytePairTokenizer::parse(*tokenizer, request.tokenizer,
                                     request.model.vocabSize)
                .status();
        !status.ok())
      return status;
  Ingredients ingredients{[&] { return openWeights(request, hooks); },
                          *std::move(tokenizer), std::move(name)};
  return build(request, ingredients, text, hooks);
}

} // namespace grok
