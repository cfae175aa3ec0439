// What a file of other special tokens than the released one's does.
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "runtime/tokenizer/BytePair.h"
#include "gtest/gtest.h"

namespace grok::test {
namespace {

using Ids = std::vector<int32_t>;

nlohmann::json token(const std::string &text, unsigned id) {
  nlohmann::json bytes = nlohmann::json::array();
  for (char c : text)
    bytes.push_back(uint8_t(c));
  return {{"bytes", bytes}, {"token", id}};
}

/// A token for every byte, and special ones from 256 on, all allowed.
nlohmann::json fileWith(const std::vector<std::string> &specials) {
  nlohmann::json file = {{"word_split", "V1"},
                         {"regular_tokens", nlohmann::json::array()},
                         {"special_tokens", nlohmann::json::array()},
                         {"default_allowed_special", specials}};
  for (unsigned byte = 0; byte != 256; ++byte)
    file["regular_tokens"].push_back(token(std::string(1, char(byte)), byte));
  unsigned id = 256;
  for (const std::string &special : specials)
    file["special_tokens"].push_back(token(special, id++));
  return file;
}
BytePairTokenizer withSpecials(const std::vector<std::string> &specials) {
  return *BytePairTokenizer::fromJson(fileWith(specials), "file", 300);
}

/// The first counts, the longest of those at one place, and each is found
/// again.
TEST(BytePair, SpecialTokens) {
  BytePairTokenizer tokenizer = withSpecials({"<a", "<ab>", "<c>", "<d>"});
  EXPECT_EQ(*tokenizer.encode("x<c><a<ab>y<c><<a"),
            (Ids{'x', 258, 256, 257, 'y', 258, '<', 256}));
  EXPECT_EQ(*tokenizer.encode("<b>"), (Ids{'<', 'b', '>'}));
  EXPECT_EQ(*tokenizer.encode(""), Ids{});
}

TEST(BytePair, LongestToken) {
  EXPECT_EQ(withSpecials({}).longestToken(), 1u);
  EXPECT_EQ(withSpecials({"<a", "<ab>", "<c>"}).longestToken(), 4u);
}

/// No pattern of its own is the released one's.
TEST(BytePair, NullPattern) {
  nlohmann::json file = fileWith({});
  file["pat_str"] = nullptr;
  auto tokenizer = BytePairTokenizer::fromJson(file, "file", 300);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ(*tokenizer->encode("a b"), (Ids{'a', ' ', 'b'}));
}

/// One that fails only when it is used names its file too.
TEST(BytePair, PatternFails) {
  nlohmann::json file = fileWith({});
  file["pat_str"] = "(?R)?a";
  auto tokenizer = BytePairTokenizer::fromJson(file, "file", 300);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  std::string message(tokenizer->encode("a").status().message());
  EXPECT_TRUE(message.starts_with("file: key 'pat_str': found that it fails at "
                                  "byte 0 of the text ("))
      << message;
  EXPECT_TRUE(message.ends_with("), expected a match or none; download the "
                                "file again"))
      << message;
}

/// What is between special tokens has the text's steps, not its own.
TEST(BytePair, StepsAreOfTheText) {
  nlohmann::json file = fileWith({"<c>"});
  file["pat_str"] = "(?:a?){14}b|a";
  auto tokenizer = BytePairTokenizer::fromJson(file, "file", 300);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  std::string text = "aaaaaaaaaaaaaa<c>";
  EXPECT_TRUE(tokenizer->encode(text).ok());
  for (int i = 0; i != 8; ++i)
    text += text;
  std::string message(tokenizer->encode(text).status().message());
  EXPECT_TRUE(message.ends_with("(match limit exceeded), expected a match or "
                                "none; download the file again"))
      << message;
}

} // namespace
} // namespace grok::test
