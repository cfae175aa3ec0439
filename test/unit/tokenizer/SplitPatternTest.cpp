// Patterns of other files than the released one.
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
