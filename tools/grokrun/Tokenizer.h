// A bundle's tokenizer: text to ids and back.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/bundle/Bundle.h"

namespace grok::grokrun {

/// A conversation: what the user says first, what the assistant answered, and
/// so on; the user has the last word.
struct Chat {
  std::string system; // empty: none
  std::vector<std::string> turns;
};

/// The text of ids that come one by one. What one costs does not depend on how
/// many came before.
class TextDecoder {
public:
  virtual ~TextDecoder() = default;
  /// What the id adds to the text of those before, as far as that is certain:
  /// any bytes, as a token may be a part of a character.
  virtual absl::StatusOr<std::string> add(int32_t id) = 0;
  /// What was not certain, now that no id follows.
  virtual std::string finish() = 0;
};

class Tokenizer {
public:
  /// NotFound if the bundle has no tokenizer.
  static absl::StatusOr<std::unique_ptr<Tokenizer>> open(const Bundle &bundle);
  virtual ~Tokenizer() = default;

  virtual absl::StatusOr<std::vector<int32_t>>
  encode(const std::string &text) const = 0;
  /// The conversation in the model's form, up to where the answer begins.
  virtual absl::StatusOr<std::vector<int32_t>>
  encodeChat(const Chat &chat) const = 0;
  /// Of a new text; the tokenizer must outlive it.
  virtual std::unique_ptr<TextDecoder> decoder() const = 0;
  /// Bytes of the longest token of a text; nothing if that bounds no text's
  /// ids, as the tokenizer changes the text first.
  virtual std::optional<size_t> longestToken() const = 0;
  /// The ids after which a text ends: the end's and the separator's.
  virtual absl::StatusOr<std::vector<int32_t>> stopIds() const = 0;
};

/// tokenizer.model, Grok-1's; Unavailable if there is no plugin that reads it.
absl::StatusOr<std::unique_ptr<Tokenizer>>
openSentencePiece(const Bundle &bundle);
/// tokenizer.tok.json, Grok-2's.
absl::StatusOr<std::unique_ptr<Tokenizer>> openBytePairs(const Bundle &bundle);

/// The ids after which a text ends, each once: the config's end id, then those
/// that the tokenizer's file names.
absl::StatusOr<std::vector<int32_t>> textStopIds(const ModelConfig &model,
                                                 const Tokenizer &tokenizer);

} // namespace grok::grokrun
