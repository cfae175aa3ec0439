// What of a tokenizer.model SentencePiece takes as it is, so that a file made
// to harm would have it read outside of its tables, or without end.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace grok {

struct SentencePieceCheck {
  /// "found ..., expected ..."; nothing if SentencePiece may have `model`. It
  /// says itself what else it cannot read.
  std::optional<std::string> fault;
  /// What was checked, without the texts that SentencePiece would encode as it
  /// opens a model, to test itself.
  std::string model;
};

/// `model`: a serialised sentencepiece.ModelProto. Checked are the format of
/// the messages, the pieces' lengths and types, how many user-defined ones
/// begin alike, and the normaliser's table (`precompiled_charsmap`): a
/// double-array trie of little-endian units after its size in bytes, then the
/// texts that its leaves are offsets of, each ended by a NUL. A denormaliser's
/// is a fault.
SentencePieceCheck checkSentencePiece(std::string_view model);

} // namespace grok
