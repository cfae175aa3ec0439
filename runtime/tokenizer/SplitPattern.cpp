#include "runtime/tokenizer/SplitPattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <cctype>
#include <new>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/tokenizer/Utf8.h"

namespace grok {
namespace {

std::string messageOf(int code) {
  PCRE2_UCHAR text[256];
  pcre2_get_error_message(code, text, sizeof text);
  return reinterpret_cast<const char *>(text);
}

size_t nextCharacter(std::string_view text, size_t at) {
  do
    ++at;
  while (at < text.size() && (uint8_t(text[at]) & 0xc0) == 0x80);
  return at;
}

/// Released patterns have some hundred bytes.
constexpr size_t kLongestPattern = 4096;
constexpr uint32_t kDeepestParentheses = 250;
/// Characters that a pattern may look behind.
constexpr uint32_t kFarthestBehind = 255;
/// What PCRE2 may hold to go back to, in KiB.
constexpr uint32_t kHeapLimit = 64 << 10;

template <typename T> using Owned = std::unique_ptr<T, void (*)(T *)>;

/// What PCRE2 made, which is null if there was no memory for it.
template <typename T> Owned<T> made(T *object, void (*free)(T *)) {
  if (!object)
    throw std::bad_alloc();
  return {object, free};
}

/// What a part of the pattern, from one callout to the next, may cost beyond
/// what the next callout's place in the text shows.
struct Part {
  uint64_t steps = 1;       // whenever it is tried
  uint64_t perByte = 1;     // of the text that it matches
  bool reachesBack = false; // looks at what was matched before
  bool graphemes = false;   // `\X`, which may look at all of the text
};

/// The largest least count of the part's repeats: `a{500}` fails at the last.
uint64_t leastRepeats(std::string_view part) {
  uint64_t most = 0;
  for (size_t at = 0; (at = part.find('{', at)) != part.npos;) {
    const std::string_view before = part.substr(0, at++);
    uint64_t count = 0;
    for (; at < part.size() && isdigit(uint8_t(part[at])) && count < 1 << 16;
         ++at)
      count = 10 * count + uint64_t(part[at] - '0');
    // Of a character, not of a repeat.
    if (!before.ends_with("\\x") && !before.ends_with("\\o"))
      most = std::max(most, count);
  }
  return most;
}

bool isOneOf(char c, std::string_view set) { return set.find(c) != set.npos; }

/// Whether the part may be a back reference or a call of a group. PCRE2
/// compares all of a group's text, or goes back through all groups that it is
/// in.
bool mayReachBack(std::string_view part) {
  for (size_t at = 0; at < part.size(); ++at) {
    const std::string_view rest = part.substr(at);
    if (rest.size() > 1 && rest[0] == '\\' && isOneOf(rest[1], "123456789gk"))
      return true;
    if (rest.size() > 2 && rest.starts_with("(?") &&
        isOneOf(rest[2], "RP&+-0123456789"))
      return true;
  }
  return false;
}

/// Whether there is a callout at each place of the pattern. PCRE2_AUTO_CALLOUT
/// puts one before everything, but for a repeat, which belongs to what is
/// before it.
std::vector<bool> placesOfCallouts(const pcre2_code *code, size_t bytes) {
  std::vector<bool> places(bytes + 1); // PCRE2 must not see it allocate
  pcre2_callout_enumerate(
      code,
      [](pcre2_callout_enumerate_block *block, void *out) {
        (*static_cast<std::vector<bool> *>(out))[block->pattern_position] =
            true;
        return 0;
      },
      &places);
  return places;
}

/// The parts by their place in the pattern.
std::vector<Part> partsOf(const pcre2_code *code, std::string_view pattern) {
  uint32_t groups = 0;
  pcre2_pattern_info(code, PCRE2_INFO_CAPTURECOUNT, &groups);
  std::vector<Part> parts(pattern.size() + 1);
  const std::vector<bool> places = placesOfCallouts(code, pattern.size());
  for (size_t begin = 0; begin < pattern.size(); ++begin) {
    if (!places[begin])
      continue;
    size_t end = begin + 1;
    while (end < pattern.size() && !places[end])
      ++end;
    const std::string_view text = pattern.substr(begin, end - begin);
    Part &part = parts[begin];
    // Classes are looked through, the bounds of groups copied.
    part.perByte += text.size() / 32;
    part.steps += groups / 16 + (1 + leastRepeats(text)) * part.perByte;
    part.reachesBack = mayReachBack(text);
    part.graphemes = text.find("\\X") != text.npos;
    if (text.find("(?<") != text.npos) // going back runs no callout
      part.steps += kFarthestBehind;
  }
  return parts;
}

/// Counts the steps of the matches of one text. PCRE2's own limit counts anew
/// from every place in the text, doesn't count what `a*` passes over, and tells
/// no one how much of it was taken.
class Steps {
public:
  Steps(const std::vector<Part> &parts, SplitBudget &budget)
      : parts_(parts), budget_(budget) {}

  /// A callout; ends the match when there are too many.
  static int count(pcre2_callout_block *block, void *steps) {
    return static_cast<Steps *>(steps)->add(*block) ? 0
                                                    : PCRE2_ERROR_MATCHLIMIT;
  }

private:
  bool add(const pcre2_callout_block &block) {
    const Part &part = parts_[block.pattern_position];
    uint64_t steps = part.steps;
    if (block.current_position > at_)
      steps += (block.current_position - at_) * part_->perByte;
    if (part.reachesBack)
      steps += reach(block);
    if (part.graphemes)
      steps += block.subject_length;
    at_ = block.current_position;
    part_ = &part;
    return budget_.take(steps);
  }

  /// Bytes since the match's begin, and of the longest group.
  static uint64_t reach(const pcre2_callout_block &block) {
    uint64_t longest = 0;
    for (uint32_t i = 1; i < block.capture_top; ++i) {
      const PCRE2_SIZE *group = block.offset_vector + size_t(2) * i;
      if (group[0] != PCRE2_UNSET && group[1] > group[0])
        longest = std::max<uint64_t>(longest, group[1] - group[0]);
    }
    if (block.current_position > block.start_match)
      longest += block.current_position - block.start_match;
    return longest;
  }

  const std::vector<Part> &parts_;
  SplitBudget &budget_;
  size_t at_ = 0;                    // the place in the text
  const Part *part_ = parts_.data(); // that was tried there
};

} // namespace

struct SplitPattern::Code {
  Owned<pcre2_code> code;
  std::vector<Part> parts;
};

absl::StatusOr<SplitPattern> SplitPattern::compile(const std::string &pattern,
                                                   Trust trust) {
  if (pattern.size() > kLongestPattern)
    return absl::InvalidArgumentError(absl::StrCat("found ", pattern.size(),
                                                   " bytes, expected at most ",
                                                   kLongestPattern));
  auto context =
      made(pcre2_compile_context_create(nullptr), pcre2_compile_context_free);
  pcre2_set_parens_nest_limit(context.get(), kDeepestParentheses);
  uint32_t options = PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C;
  // What looks for a match's begin beforehand counts no steps.
  if (trust == Trust::Unknown)
    options |= PCRE2_AUTO_CALLOUT | PCRE2_NO_START_OPTIMIZE;
  int error = 0;
  PCRE2_SIZE at = 0;
  Owned<pcre2_code> code(
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()),
                    pattern.size(), options, &error, &at, context.get()),
      pcre2_code_free);
  if (!code)
    return absl::InvalidArgumentError(
        absl::StrCat("found ", messageOf(error), " at byte ", uint64_t(at),
                     ", expected a regular expression"));
  uint32_t behind = 0;
  pcre2_pattern_info(code.get(), PCRE2_INFO_MAXLOOKBEHIND, &behind);
  if (behind > kFarthestBehind)
    return absl::InvalidArgumentError(
        absl::StrCat("found ", behind,
                     " characters that it looks behind, "
                     "expected at most ",
                     kFarthestBehind));
  std::vector<Part> parts = partsOf(code.get(), pattern);
  SplitPattern out;
  out.code_ =
      std::make_shared<const Code>(Code{std::move(code), std::move(parts)});
  return out;
}

namespace {

/// The matches in a text, one after the other.
class Matches {
public:
  Matches(const pcre2_code *code, const std::vector<Part> &parts,
          SplitBudget &budget)
      : code_(code), steps_(parts, budget),
        data_(made(pcre2_match_data_create_from_pattern(code, nullptr),
                   pcre2_match_data_free)),
        context_(made(pcre2_match_context_create(nullptr),
                      pcre2_match_context_free)) {
    pcre2_set_heap_limit(context_.get(), kHeapLimit);
    pcre2_set_match_limit(context_.get(), UINT32_MAX); // the budget is less
    pcre2_set_callout(context_.get(), &Steps::count, &steps_);
  }

  /// The bytes [first, second) of the match at `at` or behind; {npos, npos}:
  /// there is none. `run` begins at byte `begin` of the text.
  absl::StatusOr<std::pair<size_t, size_t>>
  next(std::string_view run, size_t at, uint32_t options, size_t begin) {
    const int found =
        pcre2_match(code_, reinterpret_cast<PCRE2_SPTR>(run.data()), run.size(),
                    at, options, data_.get(), context_.get());
    if (found == PCRE2_ERROR_NOMATCH)
      return std::pair(run.npos, run.npos);
    if (found < 0)
      return absl::InvalidArgumentError(absl::StrCat(
          "found that it fails at byte ", uint64_t(begin + at),
          " of the text (", messageOf(found), "), expected a match or none"));
    const PCRE2_SIZE *bounds = pcre2_get_ovector_pointer(data_.get());
    // A group with \K that is called from what looks ahead or behind moves the
    // match's begin anywhere: text would be lost or come twice.
    if (bounds[0] < at || bounds[1] < bounds[0])
      return absl::InvalidArgumentError(absl::StrCat(
          "found a match from byte ", uint64_t(begin + bounds[0]), " to ",
          uint64_t(begin + bounds[1]), " of the text, looked for from byte ",
          uint64_t(begin + at),
          " on, expected one that goes neither back nor before that (\\K sets "
          "where it begins)"));
    return std::pair(size_t(bounds[0]), size_t(bounds[1]));
  }

private:
  const pcre2_code *code_;
  Steps steps_;
  Owned<pcre2_match_data> data_;
  Owned<pcre2_match_context> context_;
};

} // namespace

absl::Status SplitPattern::split(
    std::string_view text, SplitBudget &budget,
    const std::function<void(std::string_view piece)> &visit) const {
  Matches matches(code_->code.get(), code_->parts, budget);
  size_t done = 0;
  // The matches of text[begin, end), which is valid UTF-8: if PCRE2 looked for
  // what is not, it would look through all that is left at every match.
  auto splitRun = [&](size_t begin, size_t end) -> absl::Status {
    const std::string_view run = text.substr(begin, end - begin);
    const uint32_t options = PCRE2_NO_UTF_CHECK |
                             (begin != 0 ? PCRE2_NOTBOL : 0) |
                             (end != text.size() ? PCRE2_NOTEOL : 0);
    for (size_t at = 0; at < run.size();) {
      absl::StatusOr<std::pair<size_t, size_t>> match =
          matches.next(run, at, options, begin);
      if (!match.ok())
        return match.status();
      const auto [from, to] = *match;
      if (from == run.npos)
        break;
      if (to == from) { // matched nothing: go on behind it
        at = nextCharacter(run, to);
        continue;
      }
      if (begin + from > done)
        visit(text.substr(done, begin + from - done));
      visit(run.substr(from, to - from));
      at = to;
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
