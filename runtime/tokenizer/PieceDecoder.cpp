#include "runtime/tokenizer/PieceDecoder.h"

#include <algorithm>
#include <string_view>

#include "runtime/tokenizer/Utf8.h"

namespace grok {
namespace {

/// Bytes of a character that can be there without its last one, each shown as
/// U+FFFD.
constexpr size_t kMostUnfinished = 3;
/// Ids that make so many U+FFFD at most: that is a character of three bytes
/// too.
constexpr size_t kMostHeld = 3 * kMostUnfinished;

/// Bytes of `text` that no byte piece behind it changes.
size_t certainBytes(std::string_view text) {
  size_t end = text.size();
  for (size_t i = 0; i < kMostUnfinished; ++i)
    if (text.substr(0, end).ends_with(kReplacement))
      end -= kReplacement.size();
  return end;
}

} // namespace

absl::StatusOr<std::string> PieceDecoder::add(int32_t id) {
  ids_.push_back(id);
  absl::StatusOr<std::string> text = decode_(ids_);
  if (!text.ok()) {
    ids_.pop_back();
    return text;
  }
  // A piece of a byte always changes the text. Any other one ends their run.
  const bool isByte = *text != text_;
  text_ = *std::move(text);
  const size_t end =
      std::max(given_, isByte ? certainBytes(text_) : text_.size());
  std::string more = text_.substr(given_, end - given_);
  given_ = end;
  if (absl::Status status = forget(); !status.ok())
    return status;
  return more;
}

/// Keeps the ids few.
absl::Status PieceDecoder::forget() {
  if (given_ == text_.size())
    return forgetSettled();
  if (ids_.size() - beginning_ <= kMostHeld)
    return absl::OkStatus();
  // The oldest one may leave a part of a character, but what is held back comes
  // from those behind it.
  ids_.erase(ids_.begin() + ptrdiff_t(beginning_));
  absl::StatusOr<std::string> text = decode_(ids_);
  if (!text.ok())
    return text.status();
  given_ = text->size() - (text_.size() - given_);
  text_ = *std::move(text);
  return absl::OkStatus();
}

/// All that is settled ends alike: with some text before, and no byte pieces
/// that wait. So its first ids stand for all of them.
absl::Status PieceDecoder::forgetSettled() {
  if (text_.empty()) {
    // A first blank is remembered: with another one it is a text. What is none
    // either way changes nothing.
    absl::StatusOr<std::string> twice = decode_({ids_.back(), ids_.back()});
    if (twice.ok() && twice->empty())
      ids_.pop_back();
    return twice.status();
  }
  if (beginning_ == 0) {
    beginning_ = ids_.size();
    beginningText_ = text_;
  }
  ids_.resize(beginning_);
  text_ = beginningText_;
  given_ = text_.size();
  return absl::OkStatus();
}

} // namespace grok
