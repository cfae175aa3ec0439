#include "tools/grokrun/TextStream.h"

#include "runtime/tokenizer/Utf8.h"

namespace grok::grokrun {

void TextStream::update(std::string_view whole) {
  // SentencePiece shows bytes that are no character yet as U+FFFD.
  constexpr std::string_view kReplacement = "\xef\xbf\xbd";
  size_t end = completeBytes(whole);
  while (whole.substr(0, end).ends_with(kReplacement))
    end -= kReplacement.size();
  print(whole, end);
}

void TextStream::finish(std::string_view whole) { print(whole, whole.size()); }

void TextStream::print(std::string_view whole, size_t end) {
  if (end <= printed_)
    return;
  out_ << replaceInvalid(whole.substr(printed_, end - printed_));
  out_.flush();
  printed_ = end;
}

} // namespace grok::grokrun
