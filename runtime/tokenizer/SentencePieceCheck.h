// What of a tokenizer.model SentencePiece takes as it is, so that a file made
// to harm would have it read outside of its tables.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace grok {

/// What is wrong with a serialised sentencepiece.ModelProto: "found ...,
/// expected ..."; nothing if SentencePiece may have it. It says itself what
/// else it cannot read. Checked are the format of the messages, the pieces'
/// lengths, how many user-defined ones begin alike, and the tables of the
/// normalisers (`precompiled_charsmap`): a double-array trie of little-endian
/// units after its size in bytes, then the texts that its leaves are offsets
/// of, each ended by a NUL.
std::optional<std::string> findSentencePieceFault(std::string_view model);

} // namespace grok
