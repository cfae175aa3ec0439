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
  SplitBudget budget(text.size());
  absl::Status status =
      compiled->split(text, budget, [&](std::string_view piece) {
        pieces.emplace_back(piece);
      });
  if (!status.ok())
    return status;
  return pieces;
}

std::string errorOf(const std::string &pattern, const std::string &text) {
  return std::string(split(pattern, text).status().message());
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

TEST(SplitPattern, LongPatterns) {
  EXPECT_TRUE(split(std::string(4096, 'a'), "a").ok());
  EXPECT_EQ(errorOf(std::string(4097, 'a'), "a"),
            "found 4097 bytes, expected at most 4096");
  auto nested = [](size_t depth) {
    return split(std::string(depth, '(') + "a" + std::string(depth, ')'), "a");
  };
  EXPECT_TRUE(nested(250).ok());
  EXPECT_EQ(nested(251).status().message(),
            "found parentheses are too deeply nested at byte 251, expected a "
            "regular expression");
}

TEST(SplitPattern, FarLookbehind) {
  EXPECT_TRUE(split("(?<=a{255})b|a", "ab").ok());
  EXPECT_EQ(errorOf("(?<=a{256})b|a", "ab"),
            "found 256 characters that it looks behind, expected at most 255");
}

/// What PCRE2 does for them runs no callout.
TEST(SplitPattern, GraphemesOfALongText) {
  EXPECT_TRUE(split(R"(\X)", std::string(1000, 'a')).ok());
  std::string marks;
  for (int i = 0; i < 50000; ++i)
    marks += "\xcc\x81"; // U+0301
  EXPECT_TRUE(
      errorOf(R"(\X{2}|.)", marks).starts_with("found that it fails at byte "));
}

/// PCRE2's search for where a match may begin takes the `a` for two.
TEST(SplitPattern, RepeatedLookahead) {
  EXPECT_EQ(*split("a*(?=a)+(?i:A)", "b\xc3\xa9 xa "),
            (Pieces{"b\xc3\xa9 x", "a", " "}));
}

/// What is in front of a match's begin that \K sets is not lost.
TEST(SplitPattern, BeginsThatAreSet) {
  EXPECT_EQ(*split(R"(a\Kb)", "xabab"), (Pieces{"xa", "b", "a", "b"}));
  EXPECT_EQ(*split(R"(a\K)", "xaab"), Pieces{"xaab"});
}

/// Text would be lost or come twice, or the same match again for ever.
TEST(SplitPattern, MatchesThatGoBack) {
  EXPECT_EQ(errorOf(R"((?(DEFINE)(?<s>ab\K))a(?=(?&s)))", "aabxaab"),
            "found a match from byte 3 to 1 of the text, looked for from byte "
            "0 on, expected one that goes neither back nor before that (\\K "
            "sets where it begins)");
  using Case = std::pair<const char *, const char *>;
  for (const auto &[pattern, text] :
       std::vector<Case>{{R"((?(DEFINE)(?<s>a\K))(?=(?&s)))", "xaaay"},
                         {R"((?(DEFINE)(?<s>a\K))x(?=(?&s)))", "xay"},
                         {R"((?:(a\K)|b)(?=(?1)))", "abab"},
                         {R"((?(DEFINE)(?<s>\K..))a|(?<=(?&s))b)", "xab"}})
    EXPECT_TRUE(errorOf(pattern, text).starts_with("found a match from byte "))
        << pattern;
}

/// A hostile pattern ends with an error, not with the patience: each of these
/// goes over the text at every byte, or takes a step that is a long one.
TEST(SplitPattern, StepsAreBounded) {
  const std::string text(1 << 16, 'a');
  for (const char *pattern :
       {"(?:a|aa)+b|a", "(?:a?){23}b|a", "a*+b|a", "(?s).*?b|a", R"(\X+b|.)",
        "a{60000}b|a", R"(a\x{61}{60000}b|a)", "(?x)a (?#c) {60000} b|a",
        R"((?:\Xb|){1000}a)", R"((?:(?<=[^a]{255})|){250}a)",
        R"((?=.(a*))\1b|a)", R"((?<n>a*)(?=\k<n>b)|a)",
        "(?(DEFINE)(?<b>b)(?<r>(?:a|c)*(?&b)))(?&r)|a"})
    EXPECT_TRUE(
        errorOf(pattern, text).starts_with("found that it fails at byte "))
        << pattern;
}

/// Each match alone is within the bounds.
TEST(SplitPattern, StepsAreOfTheText) {
  const std::string pattern = "(?:a?){14}b|a";
  EXPECT_TRUE(split(pattern, std::string(14, 'a')).ok());
  EXPECT_EQ(errorOf(pattern, std::string(2000, 'a')),
            "found that it fails at byte 22 of the text (match limit "
            "exceeded), expected a match or none");
  auto compiled = SplitPattern::compile(pattern);
  SplitBudget budget(14);
  size_t count = 0;
  while (count != 2000 &&
         compiled->split(std::string(14, 'a'), budget, [](auto) {}).ok())
    ++count;
  EXPECT_GT(count, 1u);
  EXPECT_LT(count, 2000u);
}

TEST(SplitPattern, MemoryIsBounded) {
  EXPECT_EQ(errorOf("(?:a|b)*c|a", std::string(1 << 20, 'a')),
            "found that it fails at byte 0 of the text (heap limit exceeded), "
            "expected a match or none");
}

/// Counting changes no piece.
TEST(SplitPattern, KnownPatterns) {
  const std::string pattern = R"([^\p{L}]?\p{L}+|\p{N}{1,3}|\s+(?!\S)|\s+)";
  const std::string text = "It's 12345 o'clock,  \xc3\xa9t\xc3\xa9\n \n z";
  auto compiled = SplitPattern::compile(pattern, SplitPattern::Trust::Known);
  Pieces pieces;
  SplitBudget budget(0);
  EXPECT_TRUE(compiled
                  ->split(text, budget,
                          [&](std::string_view p) { pieces.emplace_back(p); })
                  .ok());
  EXPECT_EQ(*split(pattern, text), pieces);
}

} // namespace
} // namespace grok::test
