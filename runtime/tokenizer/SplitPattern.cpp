#include "runtime/tokenizer/SplitPattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "absl/strings/str_cat.h"
#include "runtime/tokenizer/Utf8.h"

namespace grok {
namespace {

std::string messageOf(int code) {
  PCRE2_UCHAR text[256];
  pcre2_get_error_message(code, text, sizeof text);
  return reinterpret_cast<const char *>(text);
}

using MatchData =
    std::unique_ptr<pcre2_match_data, void (*)(pcre2_match_data *)>;

size_t nextCharacter(std::string_view text, size_t at) {
  do
    ++at;
  while (at < text.size() && (uint8_t(text[at]) & 0xc0) == 0x80);
  return at;
}

} // namespace

absl::StatusOr<SplitPattern> SplitPattern::compile(const std::string &pattern) {
  int error = 0;
  PCRE2_SIZE at = 0;
  pcre2_code *code = pcre2_compile(
      reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
      PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &error, &at, nullptr);
  if (!code)
    return absl::InvalidArgumentError(
        absl::StrCat("found ", messageOf(error), " at byte ", uint64_t(at),
                     ", expected a regular expression"));
  SplitPattern out;
  out.code_ = std::shared_ptr<void>(
      code, [](void *p) { pcre2_code_free(static_cast<pcre2_code *>(p)); });
  return out;
}

absl::Status SplitPattern::split(
    std::string_view text,
    const std::function<void(std::string_view piece)> &visit) const {
  auto *code = static_cast<const pcre2_code *>(code_.get());
  MatchData match(pcre2_match_data_create_from_pattern(code, nullptr),
                  pcre2_match_data_free);
  size_t done = 0;
  // The matches of text[begin, end), which is valid UTF-8: if PCRE2 looked for
  // what is not, it would look through all that is left at every match.
  auto splitRun = [&](size_t begin, size_t end) -> absl::Status {
    const std::string_view run = text.substr(begin, end - begin);
    const uint32_t options = PCRE2_NO_UTF_CHECK |
                             (begin != 0 ? PCRE2_NOTBOL : 0) |
                             (end != text.size() ? PCRE2_NOTEOL : 0);
    for (size_t at = 0; at < run.size();) {
      int found = pcre2_match(code, reinterpret_cast<PCRE2_SPTR>(run.data()),
                              run.size(), at, options, match.get(), nullptr);
      if (found == PCRE2_ERROR_NOMATCH)
        break;
      if (found < 0)
        return absl::InvalidArgumentError(absl::StrCat(
            "found that it fails at byte ", uint64_t(begin + at),
            " of the text (", messageOf(found), "), expected a match or none"));
      const PCRE2_SIZE *bounds = pcre2_get_ovector_pointer(match.get());
      if (bounds[1] == bounds[0]) { // matched nothing: go on behind it
        at = nextCharacter(run, bounds[1]);
        continue;
      }
      if (begin + bounds[0] > done)
        visit(text.substr(done, begin + bounds[0] - done));
      visit(run.substr(bounds[0], bounds[1] - bounds[0]));
      at = bounds[1];
      done = begin + at;
    }
    return absl::OkStatus();
  };
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = begin + validBytes(text.substr(begin));
    if (absl::Status status = splitRun(begin, end); !status.ok())
      return status;
    begin = end + 1; // behind a byte that begins no character
  }
  if (done < text.size())
    visit(text.substr(done));
  return absl::OkStatus();
}

} // namespace grok
