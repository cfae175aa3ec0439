#include "runtime/bundle/Json.h"

#include <gtest/gtest.h>

namespace grok::json {
namespace {

std::string errorOf(std::string_view text) {
  absl::StatusOr<Document> d = parse(text, "f.json");
  return d.ok() ? "no error" : std::string(d.status().message());
}

TEST(Json, KnowsTheLineOfEveryKeyAndElement) {
  auto d = parse("{\"a\": 1,\n \"b\": [10,\n20\n,\n{\"c/d~\": true}]}", "f");
  ASSERT_TRUE(d.ok()) << d.status();
  EXPECT_EQ(d->lines.at("/a"), 1u);
  EXPECT_EQ(d->lines.at("/b"), 2u);
  EXPECT_EQ(d->lines.at("/b/0"), 2u);
  EXPECT_EQ(d->lines.at("/b/1"), 3u); // the number ends at a newline
  EXPECT_EQ(d->lines.at("/b/2"), 5u);
  EXPECT_EQ(d->lines.at("/b/2/c~1d~0"), 5u);
  EXPECT_EQ(d->place("/b/1"), "f:3");
  EXPECT_EQ(d->place("/nowhere"), "f");
  EXPECT_EQ(d->root["b"][1], 20);
}

TEST(Json, KeepsNoLinesWhenToldSo) {
  auto d = parse("{\"a\": [1]}", "f", {64, false});
  ASSERT_TRUE(d.ok());
  EXPECT_TRUE(d->lines.empty());
  EXPECT_EQ(d->root["a"][0], 1);
}

TEST(Json, RejectsDuplicateKeysWithBothLines) {
  EXPECT_EQ(errorOf("{\"a\": 1,\n \"b\": 2,\n \"a\": 3}"),
            "f.json:3: key 'a': found a second time (the first is in line 1), "
            "expected once in an object; remove one of them");
}

TEST(Json, DuplicateInOtherObjectIsNone) {
  EXPECT_EQ(errorOf("[{\"a\": 1}, {\"a\": 1}]"), "no error");
}

TEST(Json, PlacesMalformedText) {
  EXPECT_EQ(errorOf("[1,\n2,,3]"),
            "f.json:2:3: malformed JSON: syntax error while parsing value - "
            "unexpected ','; expected '[', '{', or a literal");
  EXPECT_NE(errorOf("{\"a\": 1} x").find("f.json:1:10: malformed"),
            std::string::npos);
  EXPECT_NE(errorOf("").find("f.json:1:1: malformed"), std::string::npos);
}

TEST(Json, RejectsNaNInvalidUtf8AndOverflow) {
  for (std::string text :
       {"[NaN]", "[Infinity]", "[1e999]", "[\"\xff\"]", "[\"\xc0\x80\"]",
        "[01]", "['a']", "[1,]", "{", "// x\n1"})
    EXPECT_NE(errorOf(text).find("malformed JSON"), std::string::npos) << text;
}

TEST(Json, RejectsNulBytesAnywhere) {
  EXPECT_EQ(errorOf({"{\"a\": 1}\0garbage", 16}),
            "f.json:1:9: found a NUL byte, expected JSON in UTF-8, which has "
            "none; the file is damaged or in another encoding");
  EXPECT_EQ(errorOf({"{}\n \0", 5}).substr(0, 30),
            "f.json:2:2: found a NUL byte, ");
  for (std::string_view text :
       {std::string_view("\0", 1), std::string_view("\0{}", 3),
        std::string_view("{\0}", 3), std::string_view("[1\0]", 4),
        std::string_view("[\"\0\"]", 5), std::string_view("1\0", 2)})
    EXPECT_NE(errorOf(text).find("found a NUL byte"), std::string::npos);
  EXPECT_EQ(errorOf("[\"\\u0000\"]"), "no error");
}

TEST(Json, RejectsAByteOrderMark) {
  EXPECT_EQ(errorOf("\xef\xbb\xbf{}"),
            "f.json:1:1: found a byte order mark, expected JSON; save the file "
            "as UTF-8 without one");
  EXPECT_NE(errorOf("\xef\xbb").find("malformed"), std::string::npos);
  EXPECT_EQ(errorOf("[\"\xef\xbb\xbf\"]"), "no error");
}

TEST(Json, MessagesArePrintableAndShort) {
  std::string message = errorOf("[\"" + std::string(5000, 'x') + "\n\"]");
  EXPECT_LT(message.size(), 400u);
  for (char c : errorOf("[\"\xff\x01\"]"))
    EXPECT_TRUE(c >= 0x20 && c < 0x7f);
}

TEST(Json, LimitsNesting) {
  EXPECT_EQ(errorOf(std::string(64, '[') + std::string(64, ']')), "no error");
  EXPECT_EQ(errorOf(std::string(100000, '[')),
            "f.json:1: found nesting deeper than 64 levels, expected no more "
            "than that");
}

} // namespace
} // namespace grok::json
