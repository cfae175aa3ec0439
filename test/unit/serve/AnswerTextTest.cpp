// A text in pieces: whole characters, and together what the bytes are together.
#include <iterator>
#include <random>

#include "runtime/tokenizer/Utf8.h"
#include "tools/grokrun/AnswerText.h"
#include "gtest/gtest.h"

namespace grok::grokrun {
namespace {

/// Ids are bytes; two more come when no id follows.
class Bytes : public Tokenizer {
  class Decoder : public TextDecoder {
  public:
    absl::StatusOr<std::string> add(int32_t id) override {
      if (id > 255)
        return absl::InvalidArgumentError("no id");
      return std::string(1, char(id));
    }
    std::string finish() override { return "\xe6\x97"; }
  };

public:
  std::unique_ptr<TextDecoder> decoder() const override {
    return std::make_unique<Decoder>();
  }
  absl::StatusOr<std::vector<int32_t>>
  encode(const std::string &) const override {
    return absl::UnimplementedError("");
  }
  absl::StatusOr<std::vector<int32_t>> encodeChat(const Chat &) const override {
    return absl::UnimplementedError("");
  }
  std::optional<size_t> longestToken() const override { return std::nullopt; }
  absl::StatusOr<std::vector<int32_t>> stopIds() const override {
    return absl::UnimplementedError("");
  }
};

TEST(AnswerText, AnyPiecesAreTheTextOfTheWhole) {
  static const std::string kTexts[] = {
      "a", "\xc3\xa9", "\xf0\x9f\x91\x8d", "\xe6\x97", "\xff", "\x80"};
  std::mt19937 random(1);
  const Bytes tokenizer;
  for (int i = 0; i < 1000; ++i) {
    AnswerText answer(tokenizer);
    std::string bytes, text;
    for (int piece = 0; piece < 20; ++piece) {
      std::string more = kTexts[random() % std::size(kTexts)];
      more = more.substr(0, 1 + random() % more.size());
      const bool last = piece == 19;
      std::vector<int32_t> ids;
      for (char c : more)
        ids.push_back(uint8_t(c));
      absl::StatusOr<std::string> added = answer.add(ids, last);
      ASSERT_TRUE(added.ok());
      EXPECT_EQ(validBytes(*added), added->size());
      text += *added;
      bytes += more;
    }
    EXPECT_EQ(text, replaceInvalid(bytes + "\xe6\x97"));
  }
}

TEST(AnswerText, AnErrorStays) {
  const Bytes tokenizer;
  AnswerText answer(tokenizer);
  EXPECT_EQ(*answer.add(std::vector<int32_t>{'a'}, false), "a");
  EXPECT_FALSE(answer.add(std::vector<int32_t>{'b', 256, 'c'}, false).ok());
  EXPECT_EQ(answer.add(std::vector<int32_t>{'d'}, true).status().message(),
            "no id");
}

} // namespace
} // namespace grok::grokrun
