#include "tools/grokrun/AnswerText.h"

#include "runtime/tokenizer/Utf8.h"

namespace grok::grokrun {

absl::StatusOr<std::string> AnswerText::add(std::span<const int32_t> ids,
                                            bool last) {
  for (int32_t id : ids) {
    absl::StatusOr<std::string> more = decoder_->add(id);
    if (more.ok())
      held_ += *more;
    else
      failure_.Update(more.status());
  }
  if (!failure_.ok())
    return failure_;
  if (last)
    held_ += decoder_->finish();
  const size_t end = last ? held_.size() : completeBytes(held_);
  std::string text = replaceInvalid(std::string_view(held_).substr(0, end));
  held_.erase(0, end);
  return text;
}

} // namespace grok::grokrun
