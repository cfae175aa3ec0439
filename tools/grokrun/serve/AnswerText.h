// The text of a request's new ids, whole characters as they come.
#pragma once

#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/grokrun/TextStream.h"
#include "tools/grokrun/Tokenizer.h"

namespace grok::serve {

class AnswerText {
public:
  /// `tokenizer` must outlive it.
  AnswerText(const grokrun::Tokenizer &tokenizer, std::vector<int32_t> prompt);
  AnswerText(const AnswerText &) = delete;

  /// What the ids add to the text. What may still become another character is
  /// held back until the `last` ones.
  absl::StatusOr<std::string> add(std::span<const int32_t> ids, bool last);

private:
  std::string takeOutput();

  const grokrun::Tokenizer &tokenizer_;
  std::vector<int32_t> ids_; // prompt and new ones: a text is that of the
                             // whole, not the sum of its ids'
  bool started_ = false;     // the prompt's text has been passed
  std::ostringstream output_;
  grokrun::TextStream stream_;
};

} // namespace grok::serve
