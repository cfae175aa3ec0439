// Whole characters out of any bytes.
#include <string>

#include "runtime/tokenizer/Utf8.h"
#include "gtest/gtest.h"

namespace grok::test {
namespace {

TEST(Utf8, BeginningsAreHeldBack) {
  EXPECT_EQ(completeBytes(""), 0u);
  EXPECT_EQ(completeBytes("ab"), 2u);
  EXPECT_EQ(completeBytes("a\xc3"), 1u);
  EXPECT_EQ(completeBytes("a\xc3\xa9"), 3u);
  EXPECT_EQ(completeBytes("a\xe6\x97"), 1u);
  EXPECT_EQ(completeBytes("a\xf0\x9f\x91"), 1u);
  EXPECT_EQ(completeBytes("\xf0"), 0u);
}

/// What no bytes can complete is not waited for.
TEST(Utf8, NoCharacterIsNotHeldBack) {
  EXPECT_EQ(completeBytes("a\xff"), 2u);
  EXPECT_EQ(completeBytes("a\x80"), 2u);
  EXPECT_EQ(completeBytes("a\xc0"), 2u);
  EXPECT_EQ(completeBytes("a\xe0\x80"), 3u);
  EXPECT_EQ(completeBytes("a\xed\xa0"), 3u);
  EXPECT_EQ(completeBytes("a\xf4\x90"), 3u);
}

TEST(Utf8, Valid) {
  EXPECT_EQ(validBytes(""), 0u);
  EXPECT_EQ(validBytes("a\xc3\xa9\xf0\x9f\x91\x8d"), 7u);
  EXPECT_EQ(validBytes("a\xc3"), 1u);
  EXPECT_EQ(validBytes("a\xed\xa0\x80"
                       "b"),
            1u);
  EXPECT_EQ(validBytes("\x80"), 0u);
}

TEST(Utf8, Replaced) {
  const std::string r = "\xef\xbf\xbd";
  EXPECT_EQ(replaceInvalid("a\xc3\xa9"), "a\xc3\xa9");
  EXPECT_EQ(replaceInvalid("a\xff"), "a" + r);
  EXPECT_EQ(replaceInvalid("\xf0\x9f\x91"
                           "a"),
            r + "a"); // one beginning
  EXPECT_EQ(replaceInvalid("\xe0\x80"
                           "a"),
            r + r + "a");                               // overlong
  EXPECT_EQ(replaceInvalid("\xed\xa0\x80"), r + r + r); // surrogate
  EXPECT_EQ(replaceInvalid("\xf4\x8f\xbf\xbf"), "\xf4\x8f\xbf\xbf");
  EXPECT_EQ(replaceInvalid(std::string_view("\0", 1)), std::string(1, '\0'));
}

/// However a text is cut, the pieces are those of the whole.
TEST(Utf8, CutAnywhere) {
  const std::string text = "a\xc3\xa9\xe6\x97\xa5\xf0\x9f\x91\x8d\xff\xe6\x97z";
  std::string printed;
  size_t done = 0;
  for (size_t size = 1; size <= text.size(); ++size) {
    std::string_view whole = std::string_view(text).substr(0, size);
    size_t end = completeBytes(whole);
    ASSERT_GE(end, done);
    printed += replaceInvalid(whole.substr(done, end - done));
    done = end;
  }
  printed += replaceInvalid(std::string_view(text).substr(done));
  EXPECT_EQ(printed, replaceInvalid(text));
}

} // namespace
} // namespace grok::test
