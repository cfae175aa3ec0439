#include "runtime/tokenizer/SentencePieceCheck.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

namespace grok {
namespace {

using Fault = std::optional<std::string>;

/// SentencePiece puts every piece into a trie by a function that calls itself
/// for each byte, and takes apart unused ones likewise.
constexpr size_t kMostPieceBytes = 4096;
/// Matches that it has room for, beginning at one place of a text.
constexpr size_t kMostRules = 32, kMostUserDefined = 64;
/// Of a text that takes the place of another: the longest in Unicode's NFKC has
/// 33 bytes.
constexpr size_t kMostReplacement = 256;
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
};

/// Takes fields from the front of a message. Groups are none of its fields.
class Fields {
public:
  explicit Fields(std::string_view message) : rest_(message) {}

  /// Nothing at the end, and where the format is wrong.
  std::optional<Field> next() {
    enum { kVarint, k64Bits, kBytes, k32Bits = 5 };
    if (rest_.empty())
      return std::nullopt;
    uint64_t tag = 0, bytes = 0;
    Field field;
    ok_ = takeVarint(tag);
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
      : trie_(trie), texts_(texts), states_(trie_.units.size()) {}

  Fault run() {
    Fault wrong = enter(0, false);
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
  /// Of a base: kNew, kOpen, or kDone and the leaves on a way from it.
  enum : uint8_t { kNew, kOpen, kDone };
  struct Step {
    uint64_t base;
    bool leaf;         // the node's own
    uint64_t byte = 0; // the next one to look for
    size_t leaves = 0; // at most, on a way from here
  };

  /// `index`: of a node.
  Fault enter(uint64_t index, bool leaf) {
    const uint64_t base = trie_.base(index);
    if ((base | (kBytes - 1)) >= states_.size())
      return fault("unit " + std::to_string(base) + " of a normaliser's trie",
                   "less than " + std::to_string(states_.size()));
    states_[base] = kOpen;
    path_.push_back({base, leaf});
    return std::nullopt;
  }

  Fault follow(uint64_t index) {
    const uint64_t base = trie_.base(index);
    const bool leaf = trie_.hasLeaf(index);
    if (base >= states_.size() || states_[base] == kNew) {
      if (Fault wrong = enter(index, leaf))
        return wrong;
    } else if (states_[base] == kOpen) {
      return fault("a circle in a normaliser's trie", "none");
    } else if (Fault wrong = count(states_[base] - kDone + leaf)) {
      return wrong;
    }
    return leaf ? checkLeaf(trie_.leaf(base)) : std::nullopt;
  }

  Fault leave() {
    const Step done = path_.back();
    path_.pop_back();
    states_[done.base] = uint8_t(kDone + done.leaves);
    return path_.empty() ? std::nullopt : count(done.leaves + done.leaf);
  }

  /// Leaves on a way from the last step of the path.
  Fault count(size_t leaves) {
    if (leaves > kMostRules)
      return fault(std::to_string(leaves) +
                       " rules of a normaliser that begin alike",
                   "at most " + std::to_string(kMostRules));
    path_.back().leaves = std::max(path_.back().leaves, leaves);
    return std::nullopt;
  }

  Fault checkLeaf(size_t offset) const {
    if (offset >= texts_.size())
      return fault("text " + std::to_string(offset) + " of a normaliser",
                   "less than " + std::to_string(texts_.size()));
    std::string_view text = texts_.substr(offset, kMostReplacement + 1);
    if (text.find('\0') == text.npos)
      return fault("a rule of a normaliser that puts in more than " +
                       std::to_string(kMostReplacement) + " bytes",
                   "at most that many");
    return std::nullopt;
  }

  const Trie trie_;
  const std::string_view texts_;
  std::vector<uint8_t> states_;
  std::vector<Step> path_;
};

Fault checkCharsMap(std::string_view map) {
  if (map.empty())
    return std::nullopt; // no rules
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

Fault checkNormalizer(std::string_view message) {
  constexpr uint64_t kCharsMap = 2;
  return forEachField(message, [](const Field &field) -> Fault {
    return field.isBytes && field.number == kCharsMap
               ? checkCharsMap(field.bytes)
               : std::nullopt;
  });
}

struct Piece {
  std::string_view text;
  bool userDefined = false;
};

Fault readPiece(std::string_view message, Piece &piece) {
  constexpr uint64_t kText = 1, kType = 3, kUserDefined = 4;
  return forEachField(message, [&](const Field &field) -> Fault {
    if (field.isBytes && field.number == kText)
      piece.text = field.bytes;
    else if (!field.isBytes && field.number == kType)
      piece.userDefined = field.varint == kUserDefined;
    if (piece.text.size() > kMostPieceBytes)
      return fault("a piece of " + std::to_string(piece.text.size()) + " bytes",
                   "at most " + std::to_string(kMostPieceBytes));
    return std::nullopt;
  });
}

/// Sorted, what begins a text comes before it.
Fault checkUserDefined(std::vector<std::string_view> texts) {
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

std::optional<std::string> findSentencePieceFault(std::string_view model) {
  constexpr uint64_t kPiece = 1, kNormalizer = 3, kDenormalizer = 5;
  std::vector<std::string_view> userDefined;
  Fault wrong = forEachField(model, [&](const Field &field) -> Fault {
    if (!field.isBytes)
      return std::nullopt;
    if (field.number == kNormalizer || field.number == kDenormalizer)
      return checkNormalizer(field.bytes);
    if (field.number != kPiece)
      return std::nullopt;
    Piece piece;
    Fault fault = readPiece(field.bytes, piece);
    if (piece.userDefined)
      userDefined.push_back(piece.text);
    return fault;
  });
  return wrong ? wrong : checkUserDefined(std::move(userDefined));
}

} // namespace grok
