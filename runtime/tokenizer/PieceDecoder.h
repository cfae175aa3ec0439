// The text of SentencePiece's ids as they come one by one. It is that of the
// whole, not the sum of the ids' own: a text's first blank is left out, and
// pieces of one byte make characters together, but show as U+FFFD each until
// they do. A model whose text is rewritten as a whole (with a denormalizer) is
// none of these.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace grok {

class PieceDecoder {
public:
  /// The text of a list of ids.
  using Decode = std::function<absl::StatusOr<std::string>(
      const std::vector<int32_t> &ids)>;
  explicit PieceDecoder(Decode decode) : decode_(std::move(decode)) {}

  /// What the id adds to the text for certain. At most three lists of a few ids
  /// are decoded, however many came before.
  absl::StatusOr<std::string> add(int32_t id);
  /// What was not certain, now that no id follows.
  std::string finish() { return text_.substr(given_); }

private:
  absl::Status forget();
  absl::Status forgetSettled();

  Decode decode_;
  /// What the text to come depends on: a beginning that stands for all that is
  /// settled, and the ids behind that.
  std::vector<int32_t> ids_;
  size_t beginning_ = 0;      // ids of it; 0: there is no settled text yet
  std::string beginningText_; // its text
  std::string text_;          // of ids_
  size_t given_ = 0;          // bytes of it that were certain
};

} // namespace grok
