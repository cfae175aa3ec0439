// What SentencePiece must not get to see, each fault put into a sound model.
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "runtime/tokenizer/SentencePieceCheck.h"
#include "gtest/gtest.h"

namespace grok::test {
namespace {

using Rules = std::vector<std::pair<std::string, uint32_t>>;

std::string varint(uint64_t value) {
  std::string bytes;
  for (; value > 0x7f; value >>= 7)
    bytes += char(value | 0x80);
  return bytes + char(value);
}
std::string field(uint64_t number, const std::string &bytes) {
  return varint(number << 3 | 2) + varint(bytes.size()) + bytes;
}
std::string piece(const std::string &text, int type = 1) {
  return field(1, field(1, text) + varint(3 << 3) + varint(type));
}
std::string fixed32(uint32_t value) {
  return {reinterpret_cast<const char *>(&value), sizeof value};
}

/// A double-array trie: each node's children in 256 units of their own. Unused
/// ones have the label of no byte.
class TrieBuilder {
public:
  TrieBuilder() {
    units[0] = 0;
    link(0, addBlock());
  }

  /// `offset`: of the text that takes the place of `text`.
  void add(const std::string &text, uint32_t offset) {
    uint32_t base = kBlock;
    for (size_t i = 0; i < text.size(); ++i) {
      const uint32_t index = base ^ uint8_t(text[i]);
      if (units[index] == kUnused) {
        const uint32_t child = addBlock();
        units[index] = uint8_t(text[i]);
        link(index, child);
      }
      base = index ^ units[index] >> 10;
      if (i + 1 == text.size())
        units[index] |= 1 << 8;
    }
    units[base] = 0x80000000 | offset;
  }
  void link(uint32_t index, uint32_t base) {
    units[index] |= (index ^ base) << 10;
  }
  std::string bytes() const {
    std::string all;
    for (uint32_t unit : units)
      all += fixed32(unit);
    return all;
  }
  static constexpr uint32_t kBlock = 256, kUnused = 0x80000000;
  std::vector<uint32_t> units = std::vector<uint32_t>(kBlock, kUnused);

private:
  uint32_t addBlock() {
    units.resize(units.size() + kBlock, kUnused);
    return uint32_t(units.size()) - kBlock;
  }
};

std::string normalizer(const std::string &trie, const std::string &texts,
                       int where = 3) {
  return field(where, field(2, fixed32(uint32_t(trie.size())) + trie + texts));
}
std::string normalizer(const Rules &rules, const std::string &texts) {
  TrieBuilder trie;
  for (const auto &[text, offset] : rules)
    trie.add(text, offset);
  return normalizer(trie.bytes(), texts);
}

void expectFault(const std::string &model, const std::string &fault) {
  EXPECT_EQ(checkSentencePiece(model).fault.value_or("none"), fault);
}

const std::string kTexts("\0x\0yz\0", 6);

TEST(SentencePieceCheck, SoundModelsPass) {
  std::ifstream in(std::getenv("GROK_TEST_TOKENIZER"), std::ios::binary);
  const std::string model{std::istreambuf_iterator<char>(in), {}};
  ASSERT_FALSE(model.empty());
  expectFault(model, "none");
  expectFault(model + normalizer({{"a", 0}, {"ab", 1}, {"b", 3}}, kTexts),
              "none");
  expectFault(field(3, field(2, "")), "none"); // no rules
  expectFault("", "none");                     // SentencePiece tells
}

TEST(SentencePieceCheck, MessagesThatAreDamaged) {
  const char *const kDamaged =
      "found a damaged message, expected fields in the wire format";
  expectFault("\x0a\x05"
              "ab",
              kDamaged);                          // cut off
  expectFault("\x0a", kDamaged);                  // before its size
  expectFault(std::string(11, '\xff'), kDamaged); // a number without end
  expectFault("\x0b\x0c", kDamaged);              // a group
  expectFault("\x0d\x01\x01", kDamaged);          // 4 bytes
  expectFault(field(1, "\x0a\x02"
                       "a"),
              kDamaged); // in a piece
  expectFault(field(3, "\x12\x02"
                       "a"),
              kDamaged); // in a normaliser
}

TEST(SentencePieceCheck, PiecesTooLongToRecurseOver) {
  expectFault(piece(std::string(512, 'a')), "none");
  expectFault(piece(std::string(513, 'a')),
              "found a piece of 513 bytes, expected at most 512");
}

TEST(SentencePieceCheck, TextsOfUnknownIds) {
  expectFault(field(2, field(44, std::string(512, 'a'))), "none");
  expectFault(field(2, field(44, std::string(513, 'a'))),
              "found a text of unknown ids of 513 bytes, expected at most 512");
}

TEST(SentencePieceCheck, UserDefinedPiecesThatBeginAlike) {
  std::string model;
  for (int length = 1; length <= 64; ++length)
    model = piece(std::string(size_t(length), 'a'), 4) + model;
  expectFault(model + piece("b", 4), "none");
  // To SentencePiece a text ends at a NUL.
  expectFault(model + piece(std::string(65, 'a') + '\0', 4),
              "found 65 user-defined pieces that begin alike, expected at most "
              "64");
  expectFault(model + piece(std::string(65, 'a'), 1), "none");
  expectFault(
      model + piece(std::string(65, 'a'), 4),
      "found 65 user-defined pieces that begin alike, expected at most 64");
}

TEST(SentencePieceCheck, TriesOfTheWrongSize) {
  const std::string map = fixed32(2048) + std::string(2048, '\0');
  expectFault(field(3, field(2, "abc")),
              "found 3 bytes of a normaliser, expected a trie's size");
  expectFault(field(3, field(2, map)),
              "found a normaliser's texts without an end, expected a NUL");
  expectFault(field(3, field(2, map + "a")),
              "found a normaliser's texts without an end, expected a NUL");
  expectFault(field(3, field(2, map.substr(0, 100))),
              "found a normaliser's trie of 2048 bytes, expected whole units, "
              "at most 96");
  expectFault(normalizer("abc", kTexts),
              "found a normaliser's trie of 3 bytes, "
              "expected whole units, at most 9");
  expectFault(normalizer("", kTexts),
              "found no unit in a normaliser's trie, expected its root");
}

/// Also in an earlier message.
TEST(SentencePieceCheck, NodesOutsideOfTheTrie) {
  const std::string fault =
      "found unit 512 of a normaliser's trie, expected less than 512";
  TrieBuilder root;
  root.units[0] = 512 << 10;
  expectFault(normalizer(root.bytes(), kTexts), fault);
  TrieBuilder child;
  child.units[256 ^ 'a'] = 'a';
  child.link(256 ^ 'a', 512);
  expectFault(normalizer(child.bytes(), kTexts), fault);
  expectFault(normalizer(child.bytes(), kTexts) + normalizer(Rules(), kTexts),
              fault);
  TrieBuilder far; // bit 9: in units of 256
  far.units[0] = 0xfffffe00;
  expectFault(
      normalizer(far.bytes(), kTexts),
      "found unit 1073741568 of a normaliser's trie, expected less than 512");
}

TEST(SentencePieceCheck, ACircleInATrie) {
  TrieBuilder trie;
  trie.add("ab", 0);
  trie.units[768 ^ 'c'] = 'c';
  trie.link(768 ^ 'c', 512);
  expectFault(normalizer(trie.bytes(), kTexts),
              "found a circle in a normaliser's trie, expected none");
}

TEST(SentencePieceCheck, RulesThatBeginAlike) {
  Rules rules;
  for (size_t length = 1; length <= 32; ++length)
    rules.push_back({std::string(length, 'a'), 1});
  rules.push_back({"b", 1});
  expectFault(normalizer(rules, kTexts), "none");
  rules.push_back({std::string(33, 'a'), 1});
  expectFault(
      normalizer(rules, kTexts),
      "found 33 rules of a normaliser that begin alike, expected at most 32");
}

/// A way that shares its end with another counts with its own beginning.
TEST(SentencePieceCheck, RulesThatBeginAlikeInSharedNodes) {
  TrieBuilder trie;
  for (size_t length = 1; length <= 32; ++length)
    trie.add(std::string(length, 'a'), 1);
  trie.add("b", 1);
  const uint32_t b = 256 ^ 'b';
  trie.units[b] = 1 << 8 | 'b';
  trie.link(b, 256 ^ 'a' ^ trie.units[256 ^ 'a'] >> 10);
  expectFault(normalizer(trie.bytes(), kTexts), "none");
  const uint32_t c = 256 ^ 'c', cb = 512 + 33 * 256;
  trie.add("c", 1);
  trie.units[cb ^ 'd'] = 1 << 8 | 'd';
  trie.link(cb ^ 'd', 256 ^ 'a' ^ trie.units[256 ^ 'a'] >> 10);
  ASSERT_EQ(c ^ trie.units[c] >> 10, cb);
  expectFault(
      normalizer(trie.bytes(), kTexts),
      "found 33 rules of a normaliser that begin alike, expected at most 32");
}

TEST(SentencePieceCheck, TextsOfRules) {
  expectFault(normalizer({{"a", 5}}, kTexts), "none");
  expectFault(normalizer({{"a", 6}}, kTexts),
              "found text 6 of a normaliser, expected less than 6");
}

TEST(SentencePieceCheck, TextsThatGrow) {
  const char *const kGrows = "found a rule of a normaliser that puts in more "
                             "than 12 bytes for each, expected at most so many";
  const auto text = [](size_t bytes) { return std::string(bytes, 'x') + '\0'; };
  expectFault(normalizer({{"a", 0}}, text(12)), "none");
  expectFault(normalizer({{"a", 0}}, text(13)), kGrows);
  expectFault(normalizer({{"abc", 0}}, text(36)), "none");
  expectFault(normalizer({{"abc", 0}}, text(37)), kGrows);
  expectFault(normalizer({{"abc", 0}, {"abd", 30}}, text(37)), kGrows);
  expectFault(normalizer({{std::string(64, 'a'), 0}}, text(768)), "none");
  expectFault(normalizer({{std::string(64, 'a'), 0}}, text(9999)), kGrows);
}

TEST(SentencePieceCheck, RulesThatAreLong) {
  const char *const kLong = "found a rule of a normaliser for more than 64 "
                            "bytes, expected at most so many";
  expectFault(normalizer({{std::string(64, 'a'), 1}}, kTexts), "none");
  expectFault(normalizer({{std::string(65, 'a'), 1}}, kTexts), kLong);
  TrieBuilder trie; // by way of the end of another rule
  trie.add(std::string(60, 'a'), 1);
  trie.add(std::string(5, 'b'), 1);
  const auto after = [&](uint32_t index) {
    return index ^ trie.units[index] >> 10;
  };
  uint32_t base = TrieBuilder::kBlock;
  for (int i = 0; i < 4; ++i)
    base = after(base ^ 'b');
  const uint32_t first = TrieBuilder::kBlock ^ 'a', bbbbb = after(base ^ 'b');
  trie.units[base ^ 'c'] = 'c';
  trie.link(base ^ 'c', after(first));
  expectFault(normalizer(trie.bytes(), kTexts), "none"); // "bbbb", 'c', 59 more
  trie.units[bbbbb ^ 'c'] = 'c';
  trie.link(bbbbb ^ 'c', after(first));
  expectFault(normalizer(trie.bytes(), kTexts), kLong);
}

/// Text is given id by id, which no rule may change.
TEST(SentencePieceCheck, RulesOfDecodedText) {
  TrieBuilder trie;
  trie.add("a", 1);
  expectFault(field(5, field(2, "")), "none");
  expectFault(normalizer(trie.bytes(), kTexts, 5),
              "found rules that rewrite decoded text (denormalizer_spec), "
              "expected none, as text is given id by id");
}

/// Protocol buffers cut numbers of fields to 32 bits.
TEST(SentencePieceCheck, NumbersOfFieldsThatAreCutOff) {
  const char *const kDamaged =
      "found a damaged message, expected fields in the wire format";
  expectFault("\x9a\x80\x80\x80\x10\x01x", kDamaged);
  expectFault(field(3, "\x92\x80\x80\x80\x10\x01x"), kDamaged);
  expectFault("\x8a\x80\x80\x80\x10\x01x", kDamaged);
}

TEST(SentencePieceCheck, TypesOfPieces) {
  const auto typed = [](uint64_t type) {
    return field(1, field(1, "a") + varint(3 << 3) + varint(type));
  };
  expectFault(typed(1) + typed(6), "none");
  for (uint64_t type : {uint64_t(0), uint64_t(7), (uint64_t(1) << 32) + 4})
    expectFault(typed(type), "found a piece of type " + std::to_string(type) +
                                 ", expected 1 to 6");
  expectFault(
      field(1, field(1, "a") + varint(3 << 3) + "\x04" + varint(3 << 3) + "c"),
      "found a piece of type 99, expected 1 to 6");
}

/// SentencePiece encodes them as it opens a model.
TEST(SentencePieceCheck, TextsOfSelfTestsAreLeftOut) {
  const std::string before = piece("a"), after = normalizer(Rules(), kTexts);
  EXPECT_EQ(
      checkSentencePiece(before + field(4, field(1, "text")) + after).model,
      before + after);
}

} // namespace
} // namespace grok::test
