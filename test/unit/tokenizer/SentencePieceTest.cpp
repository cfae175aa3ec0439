// SentencePiece's ids one by one: the text is that of the whole, at a cost that
// does not grow with it.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "runtime/tokenizer/PieceDecoder.h"
#include "runtime/tokenizer/PluginTokenizer.h"
#include "gtest/gtest.h"

namespace grok::test {
namespace {

using Ids = std::vector<int32_t>;

constexpr int32_t kPieces = 2048; // of tiny-hash
constexpr int32_t kAdded = 8;     // by the test
constexpr int32_t kNoPiece = kPieces + kAdded;
constexpr uint32_t kVocabulary = kNoPiece + 1;
constexpr int32_t kFirstByte = 4;     // the id of <0x00>
constexpr int32_t kBlankPiece = 1994; // a blank alone

/// Kinds of pieces, by SentencePiece's numbers.
enum Kind : char { kNormal = 1, kControl = 3 };

std::string field(int number, const std::string &bytes) {
  return std::string{char(number << 3 | 2), char(bytes.size())} + bytes;
}
std::string piece(const std::string &text, Kind kind) {
  return field(1, field(1, text) + std::string{3 << 3, kind});
}

/// What a model does with blanks at the begin.
struct Blanks {
  bool addFirst, removeExtra;
};

/// tiny-hash's model with other blanks, and with pieces that look like bytes of
/// no character. Messages that follow each other are one: lists are appended,
/// later values count.
class SentencePieceTest : public testing::TestWithParam<Blanks> {
protected:
  void SetUp() override {
    std::ifstream in(std::getenv("GROK_TEST_TOKENIZER"), std::ios::binary);
    std::string model{std::istreambuf_iterator<char>(in), {}};
    ASSERT_FALSE(model.empty());
    const Blanks blanks = GetParam();
    model += field(
        3, {3 << 3, char(blanks.addFirst), 4 << 3, char(blanks.removeExtra)});
    const std::string none = "\xef\xbf\xbd", blank = "\xe2\x96\x81";
    for (const std::string &text : {none, none + none + none + none, "x" + none,
                                    none + "x", blank + none, blank + blank})
      model += piece(text, kNormal);
    model += piece("<one>", kControl) + piece("<two>", kControl);
    path = testing::TempDir() + "grok-pieces-" + std::to_string(getpid());
    std::ofstream(path, std::ios::binary) << model;
    auto opened = PluginTokenizer::open(path, kVocabulary);
    unlink(path.c_str());
    ASSERT_TRUE(opened.ok()) << opened.status();
    tokenizer = *std::move(opened);
  }

  std::string decode(const Ids &ids) {
    decoded += ids.size();
    absl::StatusOr<std::string> text = tokenizer->decode(ids);
    EXPECT_TRUE(text.ok()) << text.status();
    return text.value_or("");
  }
  PieceDecoder decoder() {
    return PieceDecoder([this](const Ids &ids) -> absl::StatusOr<std::string> {
      return decode(ids);
    });
  }
  /// After each id, what is given and what is held back are the whole's text.
  void expectWhole(const Ids &ids) {
    PieceDecoder decoder = this->decoder();
    std::string given;
    for (size_t count = 1; count <= ids.size(); ++count) {
      absl::StatusOr<std::string> more = decoder.add(ids[count - 1]);
      ASSERT_TRUE(more.ok()) << more.status();
      given += *more;
      ASSERT_EQ(given + decoder.finish(),
                decode(Ids(ids.begin(), ids.begin() + ptrdiff_t(count))))
          << testing::PrintToString(ids) << ", " << count << " of them";
    }
  }
  std::string path;
  std::unique_ptr<PluginTokenizer> tokenizer;
  size_t decoded = 0; // ids
};

Ids bytesOf(const std::string &text) {
  Ids ids;
  for (char c : text)
    ids.push_back(kFirstByte + uint8_t(c));
  return ids;
}

/// Ids of every kind; those that depend on each other are frequent.
Ids drawn(std::mt19937 &random) {
  static const char *const kTexts[] = {"\xc3\xa9",
                                       "\xe6\x97\xa5",
                                       "\xf0\x9f\x91\x8d",
                                       "\xef\xbf\xbd",
                                       "\xed\xa0\x80",
                                       "\xe6\x97",
                                       "\xf0\x9f\x91",
                                       "\xf0",
                                       "\x80\x80\x80\x80",
                                       "\xff",
                                       " ",
                                       "a"};
  Ids ids;
  const int32_t kinds = 1 + int32_t(random() % 8);
  while (ids.size() < 40)
    switch (random() % uint32_t(kinds)) {
    case 6:
      ids.push_back(kNoPiece);
      break;
    case 0:
      for (int32_t id : bytesOf(kTexts[random() % std::size(kTexts)]))
        ids.push_back(id);
      break;
    case 1:
      ids.push_back(int32_t(random() % 4)); // unknown, and no text
      break;
    case 2:
      ids.push_back(kBlankPiece);
      break;
    case 3:
      ids.push_back(kPieces + int32_t(random() % kAdded));
      break;
    case 4:
      ids.push_back(kFirstByte + int32_t(random() % 256));
      break;
    default:
      ids.push_back(int32_t(random() % kPieces));
    }
  std::shuffle(ids.begin(), ids.begin() + random() % 8, random);
  return ids;
}

TEST_P(SentencePieceTest, PiecesAreWhatTheTestTakesThemFor) {
  EXPECT_EQ(decode(bytesOf("\xe6\x97\xa5")), "\xe6\x97\xa5");
  EXPECT_EQ(decode({kBlankPiece, kBlankPiece, kPieces + 2}),
            GetParam().removeExtra ? "x\xef\xbf\xbd"
            : GetParam().addFirst  ? " x\xef\xbf\xbd"
                                   : "  x\xef\xbf\xbd");
  EXPECT_EQ(decode({kPieces + 6, kPieces + 7}), "");
  EXPECT_EQ(decode({100, kNoPiece, 101}), decode({100, 101}));
}

TEST_P(SentencePieceTest, AnyIdsHaveTheTextOfTheWhole) {
  std::mt19937 random(1);
  for (int i = 0; i < 2000 && !HasFatalFailure(); ++i)
    expectWhole(drawn(random));
}

/// Lists of two ids over and over: every pair of those that depend on others.
TEST_P(SentencePieceTest, AnIdsCostDoesNotGrow) {
  Ids special{0,  1, 2, 3, kNoPiece, kBlankPiece, kFirstByte, kFirstByte + 'a',
              100};
  for (int byte : {0x80, 0xe6, 0x97, 0xf0, 0xff})
    special.push_back(kFirstByte + byte);
  for (int32_t added = 0; added < kAdded; ++added)
    special.push_back(kPieces + added);
  for (int32_t one : special)
    for (int32_t other : special) {
      PieceDecoder decoder = this->decoder();
      for (int i = 0; i < 100; ++i) {
        decoded = 0;
        ASSERT_TRUE(decoder.add(i % 2 ? other : one).ok());
        ASSERT_LE(decoded, 50u) << one << ", " << other << ", " << i;
      }
    }
}

/// What no later byte completes is not waited for.
TEST_P(SentencePieceTest, BytesOfNoCharacterAreGiven) {
  PieceDecoder decoder = this->decoder();
  size_t given = 0;
  for (int i = 0; i < 100; ++i)
    given += decoder.add(kFirstByte + 0xff)->size();
  EXPECT_EQ(given, 97 * 3u);
  EXPECT_EQ(decoder.finish().size(), 3 * 3u);
}

TEST_P(SentencePieceTest, AnIdBeyondTheVocabularyIsAnError) {
  PieceDecoder decoder(
      [this](const Ids &ids) { return tokenizer->decode(ids); });
  EXPECT_EQ(decoder.add(int32_t(kVocabulary)).status().message(),
            path + ": found id 2057, expected less than 2057");
}

INSTANTIATE_TEST_SUITE_P(Blanks, SentencePieceTest,
                         testing::Values(Blanks{true, true},
                                         Blanks{true, false},
                                         Blanks{false, true},
                                         Blanks{false, false}));

} // namespace
} // namespace grok::test
