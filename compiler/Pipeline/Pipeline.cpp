#include "compiler/Pipeline/Pipeline.h"

#include <filesystem>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/Pipeline/Build.h"
#include "runtime/bundle/InputFile.h"
#include "runtime/bundle/Manifest.h"
#include "runtime/checkpoint/Checkpoint.h"
#include "runtime/tokenizer/BytePair.h"
#include "runtime/tokenizer/PluginTokenizer.h"

namespace grok {
namespace {

/// Bytes of a file, one or more; none for an empty path.
absl::StatusOr<std::string> readTokenizer(const std::string &path) {
  if (path.empty())
    return std::string();
  absl::StatusOr<std::string> bytes = readInputFile(path, kMaxTokenizerBytes);
  if (bytes.ok() && bytes->empty())
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": found an empty file, expected a tokenizer; download it again "
              "or move it away"));
  return bytes;
}

/// What text that is generated stops on.
void checkStops(const BytePairTokenizer &tokenizer, const std::string &path,
                const CompileHooks &hooks) {
  for (const char *stop : {"<|eos|>", "<|separator|>"})
    if (tokenizer.special(stop) < 0 && hooks.report)
      hooks.report(CompileHooks::Severity::kWarning,
                   absl::StrCat(path, ": found no special token '", stop,
                                "', expected it: no text stops on it"));
}

/// What is wrong with a tokenizer is better known now than when text is asked
/// for.
absl::Status checkTokenizer(const CompileRequest &request,
                            const std::string &name, const std::string &text,
                            const CompileHooks &hooks) {
  const std::string &path = request.tokenizer;
  const uint32_t vocabulary = request.model.vocabSize;
  if (name == kBytePairFile) {
    absl::StatusOr<BytePairTokenizer> tokenizer =
        BytePairTokenizer::parse(text, path, vocabulary);
    if (tokenizer.ok())
      checkStops(*tokenizer, path, hooks);
    return tokenizer.status();
  }
  if (name != kSentencePieceFile)
    return absl::OkStatus();
  absl::Status status = PluginTokenizer::open(path, vocabulary).status();
  if (!absl::IsUnavailable(status))
    return status;
  if (hooks.report)
    hooks.report(CompileHooks::Severity::kRemark,
                 absl::StrCat(path, ": not checked; ", status.message()));
  return absl::OkStatus();
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
  if (absl::Status status = checkTokenizer(request, name, *tokenizer, hooks);
      !status.ok())
    return status;
  Ingredients ingredients{[&] { return openWeights(request, hooks); },
                          *std::move(tokenizer), std::move(name)};
  return build(request, ingredients, text, hooks);
}

} // namespace grok
