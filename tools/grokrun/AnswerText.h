// The text of ids that come a few at a time, whole characters only.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "tools/grokrun/Tokenizer.h"

namespace grok::grokrun {

class AnswerText {
public:
  /// `tokenizer` must outlive it.
  explicit AnswerText(const Tokenizer &tokenizer)
      : decoder_(tokenizer.decoder()) {}

  /// What the ids add to the text of those before. What may still become
  /// another character is held back until the `last` ones. An error stays.
  absl::StatusOr<std::string> add(std::span<const int32_t> ids, bool last);

private:
  std::unique_ptr<TextDecoder> decoder_;
  std::string held_; // bytes that are no whole character yet
  absl::Status failure_;
};

} // namespace grok::grokrun
