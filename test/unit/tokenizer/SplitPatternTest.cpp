// Patterns of other files than the released one.
#include <chrono>
#include <string>
#include <vector>

#include "runtime/tokenizer/SplitPattern.h"
#include "gtest/gtest.h"

namespace grok::test {
namespace {

using Pieces = std::vector<std::string>;

absl::StatusOr<Pieces> split(const std::string &pattern,
                             const std::string &text) {
  absl::StatusOr<SplitPattern> compiled = SplitPattern::compile(pattern);
  if (!compiled.ok())
    return compiled.status();
  Pieces pieces;
  absl::Status status = compiled->split(
      text, [&](std::string_view piece) { pieces.emplace_back(piece); });
  if (!status.ok())
    return status;
  return pieces;
}

/// What the pattern leaves out is not lost.
TEST(SplitPattern, GapsArePieces) {
  EXPECT_EQ(*split("[a-z]+", "ab1 cd?"), (Pieces{"ab", "1 ", "cd", "?"}));
  EXPECT_EQ(*split("x*", "axxb"), (Pieces{"a", "xx", "b"}));
  EXPECT_EQ(*split("a", ""), Pieces{});
}

TEST(SplitPattern, UnicodeClasses) {
  EXPECT_EQ(*split(R"(\p{L}+|\s+)", "\xc3\xa9\xe3\x80\x80z"),
            (Pieces{"\xc3\xa9", "\xe3\x80\x80", "z"}));
}

TEST(SplitPattern, InvalidBytesArePieces) {
  EXPECT_EQ(*split(R"(\p{L}+)", "a\xff"
                                "b"),
            (Pieces{"a", "\xff", "b"}));
}

/// Other bytes end what the text's begin and end are, and hide nothing.
TEST(SplitPattern, InvalidBytesAreNoEnds) {
  EXPECT_EQ(*split("^a|b$|x*", "a\xff"
                               "ab\x80\xe6\x97zb"),
            (Pieces{"a",
                    "\xff"
                    "ab\x80\xe6\x97z",
                    "b"}));
  EXPECT_EQ(*split("x*", "\xe6\x97\xa5x\xe6"),
            (Pieces{"\xe6\x97\xa5", "x", "\xe6"}));
}

/// A text's time is as its length: looked through at every match, this one took
/// minutes.
TEST(SplitPattern, LongTexts) {
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(split(R"(\p{N}|\s+)", std::string(1 << 20, '7'))->size(), 1u << 20);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
}

TEST(SplitPattern, NoPattern) {
  absl::Status status = split("(a", "a").status();
  EXPECT_EQ(status.message(),
            "found missing closing parenthesis at byte 2, expected a regular "
            "expression");
}

/// A hostile pattern ends with an error, not with the patience.
TEST(SplitPattern, MatchesAreBounded) {
  absl::Status status =
      split("(?:a|aa)+$|zz(?:a|aa)+c", std::string(60, 'a') + "b").status();
  EXPECT_FALSE(status.ok());
}

} // namespace
} // namespace grok::test
