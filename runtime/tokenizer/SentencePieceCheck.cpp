#include "runtime/tokenizer/SentencePieceCheck.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

namespace grok {
namespace {

using Fault = std::optional<std::string>;

/// SentencePiece looks for pieces this far from every place of a text, and puts
/// each into a trie by a function that calls itself for every byte.
constexpr size_t kMostPieceBytes = 512;
/// Matches that it has room for, beginning at one place of a text.
constexpr size_t kMostRules = 32, kMostUserDefined = 64;
/// Of a normaliser's rules: bytes that one takes, and bytes that it puts in for
/// each. Of Unicode's NFKC it is 11 at most, 33 for U+FDFA.
constexpr size_t kMostRuleBytes = 64, kMostGrowth = 12;
/// Following the units of so many takes a second.
constexpr size_t kMostTrieBytes = size_t(16) << 20;

Fault fault(const std::string &found, const std::string &expected) {
  return "found " + found + ", expected " + expected;
}

/// A field of a message in protocol buffers' wire format.
struct Field {
  uint64_t number = 0, varint = 0;
  bool isBytes = false;
  std::string_view bytes;
  std::string_view whole; // with its number
};

/// Takes fields from the front of a message. Groups are none of its fields, and
/// no number has more than 32 bits: other readers cut it off.
class Fields {
public:
  explicit Fields(std::string_view message) : rest_(message) {}

  /// Nothing at the end, and where the format is wrong.
  std::optional<Field> next() {
    enum { kVarint, k64Bits, kBytes, k32Bits = 5 };
    if (rest_.empty())
      return std::nullopt;
    const std::string_view begin = rest_;
    uint64_t tag = 0, bytes = 0;
    Field field;
    ok_ = takeVarint(tag) && tag <= UINT32_MAX;
    field.number = tag >> 3;
    switch (tag & 7) {
    case kVarint:
      ok_ = ok_ && takeVarint(field.varint);
      break;
    case k64Bits:
      ok_ = ok_ && take(8, field.bytes);
      break;
    case k32Bits:
      ok_ = ok_ && take(4, field.bytes);
      break;
    case kBytes:
      field.isBytes = true;
      ok_ = ok_ && takeVarint(bytes) && take(bytes, field.bytes);
      break;
    default:
      ok_ = false;
    }
    field.whole = begin.substr(0, begin.size() - rest_.size());
    return ok_ ? std::optional(field) : std::nullopt;
  }
  bool ok() const { return ok_; }

private:
  bool takeVarint(uint64_t &value) {
    value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (rest_.empty())
        return false;
      auto byte = uint8_t(rest_[0]);
      rest_.remove_prefix(1);
      value |= uint64_t(byte & 0x7f) << shift;
      if (!(byte & 0x80))
        return true;
    }
    return false;
  }
  bool take(uint64_t bytes, std::string_view &taken) {
    if (bytes > rest_.size())
      return false;
    taken = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return true;
  }

  std::string_view rest_;
  bool ok_ = true;
};

/// Calls `visit` with each field of a message until one returns a fault.
template <typename F> Fault forEachField(std::string_view message, F visit) {
  Fields fields(message);
  while (std::optional<Field> field = fields.next())
    if (Fault wrong = visit(*field))
      return wrong;
  if (!fields.ok())
    return fault("a damaged message", "fields in the wire format");
  return std::nullopt;
}

/// A double-array trie. What may come after a node is at the node's base,
/// exclusive-or the byte.
struct Trie {
  explicit Trie(std::string_view bytes)
      : units(bytes.size() / sizeof(uint32_t)) {
    std::memcpy(units.data(), bytes.data(), units.size() * sizeof(uint32_t));
  }
  bool isNode(uint64_t index, uint64_t byte) const {
    return (units[index] & 0x800000ff) == byte;
  }
  uint64_t base(uint64_t index) const {
    const uint32_t unit = units[index];
    return index ^ uint64_t(unit >> 10) << (unit >> 6 & 8);
  }
  /// Whether a text ends at the node: the unit at its base is the leaf.
  bool hasLeaf(uint64_t index) const { return units[index] >> 8 & 1; }
  uint32_t leaf(uint64_t base) const { return units[base] & 0x7fffffff; }

  std::vector<uint32_t> units;
};

/// Follows a trie over every text that it has nodes for. Nodes may share what
/// comes after them.
class TrieCheck {
public:
  TrieCheck(std::string_view trie, std::string_view texts)
      : trie_(trie), texts_(texts), known_(trie_.units.size()) {}

  Fault run() {
    Fault wrong = enter(0);
    while (!wrong && !path_.empty()) {
      Step &at = path_.back();
      if (at.byte == kBytes)
        wrong = leave();
      else if (const uint64_t byte = at.byte++, index = at.base ^ byte;
               trie_.isNode(index, byte))
        wrong = follow(index);
    }
    return wrong;
  }

private:
  static constexpr uint64_t kBytes = 256;
  /// Of what comes after a base, the most on any way from it.
  struct Ways {
    uint8_t leaves = 0;
    uint8_t bytes = 0;
    /// Bytes that must come before, so that no rule puts in too many.
    uint8_t needed = 0;
  };
  struct Known {
    enum : uint8_t { kNew, kOpen, kDone } state = kNew;
    Ways ways;
  };
  struct Step {
    uint64_t index, base;
    uint64_t byte = 0; // the next one to look for
    Ways ways = {};
  };

  /// `index`: of a node.
  Fault enter(uint64_t index) {
    const uint64_t base = trie_.base(index);
    if ((base | (kBytes - 1)) >= known_.size())
      return fault("unit " + std::to_string(base) + " of a normaliser's trie",
                   "less than " + std::to_string(known_.size()));
    known_[base].state = Known::kOpen;
    path_.push_back({index, base});
    return std::nullopt;
  }

  Fault follow(uint64_t index) {
    const uint64_t base = trie_.base(index);
    if (base >= known_.size() || known_[base].state == Known::kNew)
      return path_.size() > kMostRuleBytes ? tooLong() : enter(index);
    if (known_[base].state == Known::kOpen)
      return fault("a circle in a normaliser's trie", "none");
    return add(index, known_[base].ways);
  }

  Fault leave() {
    const Step done = path_.back();
    path_.pop_back();
    known_[done.base] = {Known::kDone, done.ways};
    if (!path_.empty())
      return add(done.index, done.ways);
    if (done.ways.needed > 0)
      return fault("a rule of a normaliser that puts in more than " +
                       std::to_string(kMostGrowth) + " bytes for each",
                   "at most so many");
    return std::nullopt;
  }

  /// The node at `index`, and what comes after it, to the last step of the
  /// path.
  Fault add(uint64_t index, Ways ways) {
    if (trie_.hasLeaf(index)) {
      ++ways.leaves;
      if (Fault wrong = addLeaf(trie_.leaf(trie_.base(index)), ways))
        return wrong;
    }
    if (ways.leaves > kMostRules)
      return fault(std::to_string(ways.leaves) +
                       " rules of a normaliser that begin alike",
                   "at most " + std::to_string(kMostRules));
    if (++ways.bytes > kMostRuleBytes)
      return tooLong();
    Ways &most = path_.back().ways;
    most.leaves = std::max(most.leaves, ways.leaves);
    most.bytes = std::max(most.bytes, ways.bytes);
    if (ways.needed > 0)
      most.needed = std::max(most.needed, uint8_t(ways.needed - 1));
    return std::nullopt;
  }

  Fault addLeaf(size_t offset, Ways &ways) const {
    if (offset >= texts_.size())
      return fault("text " + std::to_string(offset) + " of a normaliser",
                   "less than " + std::to_string(texts_.size()));
    constexpr size_t kMost = kMostRuleBytes * kMostGrowth;
    const std::string_view text = texts_.substr(offset, kMost + 1);
    const size_t bytes = std::min(text.find('\0'), text.size());
    ways.needed =
        std::max(ways.needed, uint8_t((bytes + kMostGrowth - 1) / kMostGrowth));
    return std::nullopt;
  }

  static Fault tooLong() {
    return fault("a rule of a normaliser for more than " +
                     std::to_string(kMostRuleBytes) + " bytes",
                 "at most so many");
  }

  const Trie trie_;
  const std::string_view texts_; // the last ends with a NUL
  std::vector<Known> known_;     // by base
  std::vector<Step> path_;
};

Fault checkCharsMap(std::string_view map) {
  uint32_t bytes = 0;
  if (map.size() < sizeof bytes)
    return fault(std::to_string(map.size()) + " bytes of a normaliser",
                 "a trie's size");
  std::memcpy(&bytes, map.data(), sizeof bytes);
  map.remove_prefix(sizeof bytes);
  if (bytes == 0)
    return fault("no unit in a normaliser's trie", "its root");
  if (bytes > std::min(map.size(), kMostTrieBytes) || bytes % sizeof(uint32_t))
    return fault("a normaliser's trie of " + std::to_string(bytes) + " bytes",
                 "whole units, at most " +
                     std::to_string(std::min(map.size(), kMostTrieBytes)));
  std::string_view texts = map.substr(bytes);
  if (texts.empty() || texts.back() != '\0')
    return fault("a normaliser's texts without an end", "a NUL");
  return TrieCheck(map.substr(0, bytes), texts).run();
}

Fault checkNormalizer(std::string_view message, bool isOfDecodedText) {
  constexpr uint64_t kCharsMap = 2;
  return forEachField(message, [&](const Field &field) -> Fault {
    if (!field.isBytes || field.number != kCharsMap || field.bytes.empty())
      return std::nullopt;
    if (isOfDecodedText)
      return fault("rules that rewrite decoded text (denormalizer_spec)",
                   "none, as text is given id by id");
    return checkCharsMap(field.bytes);
  });
}

/// The text of an unknown id is in no piece.
Fault checkTrainer(std::string_view message) {
  constexpr uint64_t kUnknownSurface = 44;
  return forEachField(message, [](const Field &field) -> Fault {
    if (field.number != kUnknownSurface ||
        field.bytes.size() <= kMostPieceBytes)
      return std::nullopt;
    return fault("a text of unknown ids of " +
                     std::to_string(field.bytes.size()) + " bytes",
                 "at most " + std::to_string(kMostPieceBytes));
  });
}

struct Piece {
  std::string_view text;
  bool userDefined = false;
};

Fault readPiece(std::string_view message, Piece &piece) {
  constexpr uint64_t kText = 1, kType = 3, kUserDefined = 4, kLastType = 6;
  return forEachField(message, [&](const Field &field) -> Fault {
    if (field.isBytes && field.number == kText) {
      piece.text = field.bytes;
      if (piece.text.size() > kMostPieceBytes)
        return fault("a piece of " + std::to_string(piece.text.size()) +
                         " bytes",
                     "at most " + std::to_string(kMostPieceBytes));
    } else if (!field.isBytes && field.number == kType) {
      piece.userDefined = field.varint == kUserDefined;
      if (field.varint == 0 || field.varint > kLastType)
        return fault("a piece of type " + std::to_string(field.varint),
                     "1 to " + std::to_string(kLastType));
    }
    return std::nullopt;
  });
}

/// Sorted, what begins a text comes before it. To SentencePiece a text ends at
/// a NUL.
Fault checkUserDefined(std::vector<std::string_view> texts) {
  for (std::string_view &text : texts)
    text = text.substr(0, text.find('\0'));
  std::ranges::sort(texts);
  std::vector<std::string_view> open;
  for (std::string_view text : texts) {
    while (!open.empty() && !text.starts_with(open.back()))
      open.pop_back();
    open.push_back(text);
    if (open.size() > kMostUserDefined)
      return fault(std::to_string(open.size()) +
                       " user-defined pieces that begin alike",
                   "at most " + std::to_string(kMostUserDefined));
  }
  return std::nullopt;
}

} // namespace

SentencePieceCheck checkSentencePiece(std::string_view model) {
  constexpr uint64_t kPiece = 1, kTrainer = 2, kNormalizer = 3, kSelfTest = 4,
                     kDenormalizer = 5;
  SentencePieceCheck result;
  std::vector<std::string_view> userDefined;
  result.fault = forEachField(model, [&](const Field &field) -> Fault {
    if (field.number != kSelfTest)
      result.model += field.whole;
    if (!field.isBytes)
      return std::nullopt;
    if (field.number == kTrainer)
      return checkTrainer(field.bytes);
    if (field.number == kNormalizer || field.number == kDenormalizer)
      return checkNormalizer(field.bytes, field.number == kDenormalizer);
    if (field.number != kPiece)
      return std::nullopt;
    Piece piece;
    Fault fault = readPiece(field.bytes, piece);
    if (piece.userDefined)
      userDefined.push_back(piece.text);
    return fault;
  });
  if (!result.fault)
    result.fault = checkUserDefined(std::move(userDefined));
  return result;
}

} // namespace grok
