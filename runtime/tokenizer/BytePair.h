// Grok-2's tokenizer.tok.json: byte-level pair merges by rank, a split pattern,
// and special tokens that stand for no text.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json_fwd.hpp"
#include "runtime/tokenizer/SplitPattern.h"

namespace grok {

class BytePairTokenizer {
public:
  /// `file` names the text in errors, `vocabulary` is the model's. Everything
  /// is checked: fields, bytes, that ids and byte strings are single, and that
  /// every byte has a token, so that every text can be encoded.
  static absl::StatusOr<BytePairTokenizer>
  parse(std::string_view text, const std::string &file, uint32_t vocabulary);
  /// The same from a document.
  static absl::StatusOr<BytePairTokenizer> fromJson(const nlohmann::json &root,
                                                    const std::string &file,
                                                    uint32_t vocabulary);

  /// Special tokens are recognised in the text only if the file's
  /// default_allowed_special lists them; what others would be is plain text.
  absl::StatusOr<std::vector<int32_t>> encode(std::string_view text) const;
  /// No special token is recognised.
  absl::StatusOr<std::vector<int32_t>> encodePlain(std::string_view text) const;
  /// The tokens' bytes, which need not be UTF-8; special ones have none.
  absl::StatusOr<std::string> decode(std::span<const int32_t> ids) const;
  /// Bytes of the longest token that a text can have.
  size_t longestToken() const { return longest_; }
  /// The id of a special token; -1: there is none of this text.
  int32_t special(const std::string &text) const;

  BytePairTokenizer(BytePairTokenizer &&) = default; // bytes_ points into it
  BytePairTokenizer &operator=(BytePairTokenizer &&) = default;

private:
  BytePairTokenizer() = default;
  friend class BytePairReader;

  absl::Status encodePlain(std::string_view text, SplitBudget &budget,
                           std::vector<int32_t> &out) const;
  void encodePiece(std::string_view piece, std::vector<int32_t> &out) const;

  std::unordered_map<std::string, int32_t> ranks_; // bytes to id
  std::vector<const std::string *> bytes_;         // id to bytes; null: special
  std::map<std::string, int32_t> special_;
  std::set<std::string> allowed_; // of the special ones, in plain text
  SplitPattern pattern_;
  std::string file_; // that the pattern is of
  size_t longest_ = 0;
};

} // namespace grok
