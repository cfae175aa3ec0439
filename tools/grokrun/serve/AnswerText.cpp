#include "tools/grokrun/serve/AnswerText.h"

#include <utility>

namespace grok::serve {

AnswerText::AnswerText(const grokrun::Tokenizer &tokenizer,
                       std::vector<int32_t> prompt)
    : tokenizer_(tokenizer), ids_(std::move(prompt)), stream_(output_) {}

std::string AnswerText::takeOutput() {
  return std::exchange(output_, std::ostringstream()).str();
}

absl::StatusOr<std::string> AnswerText::add(std::span<const int32_t> ids,
                                            bool last) {
  if (!started_) {
    absl::StatusOr<std::string> prompt = tokenizer_.decode(ids_);
    if (!prompt.ok())
      return prompt;
    stream_.update(*prompt);
    takeOutput();
    started_ = true;
  }
  ids_.insert(ids_.end(), ids.begin(), ids.end());
  absl::StatusOr<std::string> whole = tokenizer_.decode(ids_);
  if (!whole.ok())
    return whole;
  if (last)
    stream_.finish(*whole);
  else
    stream_.update(*whole);
  return takeOutput();
}

} // namespace grok::serve
