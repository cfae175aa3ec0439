// The two JSON files of a bundle: model.json and manifest.json.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "runtime/bundle/Bundle.h"

namespace grok {

inline constexpr const char *kManifestFile = "manifest.json";
inline constexpr const char *kModelFile = "model.json";
inline constexpr const char *kPlanFile = "plan.bin";
inline constexpr const char *kBlobFile = "weights.blob";
inline constexpr const char *kDecodeFile = "decode.ptx";
inline constexpr const char *kPrefillFile = "prefill.ptx";
inline constexpr const char *kTraceFile = "trace.ptx";
// Tokenizers, of which a bundle has one at most.
inline constexpr const char *kSentencePieceFile = "tokenizer.model";
inline constexpr const char *kBytePairFile = "tokenizer.tok.json";

/// {"config": ..., "options": ...}, canonical.
std::string writeModelJson(const ModelConfig &model,
                           const CompileOptions &options);
/// Options that `formatVersion` didn't have yet are off.
absl::StatusOr<std::pair<ModelConfig, CompileOptions>>
readModelJson(std::string_view text, std::string_view file,
              uint32_t formatVersion);

/// Canonical JSON. InvalidArgument if the target's or the prediction's text is
/// no JSON object.
absl::StatusOr<std::string> writeManifest(const Manifest &manifest);
/// A manifest's text with its seal made right: the SHA-256 of the text with
/// zeros in the seal's place. Text without a place for one seal, `"seal": "`
/// and 64 digits, comes back as it is.
absl::StatusOr<std::string> sealManifest(std::string text);
/// FailedPrecondition if a newer release wrote it.
absl::StatusOr<Manifest> readManifest(std::string_view text,
                                      std::string_view file);

/// True for what may be the name of a bundle's file: letters, digits, '.', '_'
/// and '-', not beginning with '.'.
bool isFileName(std::string_view name);

} // namespace grok
