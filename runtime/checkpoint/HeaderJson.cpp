#include "runtime/checkpoint/HeaderJson.h"

#include <array>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "nlohmann/json.hpp"
#include "runtime/bundle/Json.h"
#include "runtime/checkpoint/Messages.h"

namespace grok {
namespace {

struct ElementInfo {
  std::string_view name;
  unsigned bits;
};
constexpr std::array<ElementInfo, 22> kElements = {{
    {"BOOL", 8},    {"U8", 8},      {"I8", 8},          {"F8_E5M2", 8},
    {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8},
    {"I16", 16},    {"U16", 16},    {"F16", 16},        {"BF16", 16},
    {"I32", 32},    {"U32", 32},    {"F32", 32},        {"C64", 64},
    {"F64", 64},    {"I64", 64},    {"U64", 64},        {"F4", 4},
    {"F6_E2M3", 6}, {"F6_E3M2", 6},
}};
static_assert(size_t(ElementType::kF6E3M2) + 1 == kElements.size());

std::optional<ElementType> elementNamed(std::string_view name) {
  for (size_t i = 0; i < kElements.size(); ++i)
    if (kElements[i].name == name)
      return ElementType(i);
  return std::nullopt;
}

/// Builds the entries from the parser's events without a document in between:
/// a header may be as large as 100 MB. Every handler returns false to stop.
class HeaderReader {
public:
  std::vector<TensorEntry> entries;
  std::string error;

  bool null() {
    return (top() == Context::kRoot && key_ == "__metadata__") ||
           scalar("null");
  }
  bool boolean(bool) { return scalar("a boolean"); }
  bool number_integer(int64_t) { return scalar("a negative number"); }
  bool number_float(double, const std::string &text) {
    return scalar(inQuotes(text));
  }
  bool number_unsigned(uint64_t v) {
    if (top() == Context::kShape) {
      entries.back().shape.push_back(v);
      return entries.back().shape.size() <= kMaxRank ||
             fail(absl::StrCat("found more than ", kMaxRank,
                               " dimensions, expected no more"));
    }
    if (top() == Context::kOffsets) {
      offsets_.push_back(v);
      return offsets_.size() <= 2 || fail("found more than two numbers, "
                                          "expected [begin, end]");
    }
    return scalar(absl::StrCat("the number ", v));
  }
  bool string(std::string &v) {
    if (top() == Context::kMetadata)
      return true;
    if (top() != Context::kEntry || field_ != Field::kType)
      return scalar(absl::StrCat("the string ", inQuotes(v)));
    std::optional<ElementType> type = elementNamed(v);
    if (!type)
      return fail(absl::StrCat("found ", inQuotes(v), ", expected one of ",
                               typeList()));
    entries.back().type = *type;
    return true;
  }
  bool binary(nlohmann::json::binary_t &) { return false; } // none in JSON text

  bool start_object(size_t) {
    switch (top()) {
    case Context::kNone:
      return push(Context::kRoot);
    case Context::kRoot:
      if (key_ == "__metadata__")
        return push(Context::kMetadata);
      entries.push_back({});
      entries.back().name = key_;
      seen_ = 0;
      return push(Context::kEntry);
    case Context::kEntry:
      if (field_ == Field::kExtra)
        return push(Context::kExtra);
      break;
    case Context::kExtra:
      return push(Context::kExtra);
    default:
      break;
    }
    return scalar("an object");
  }
  bool end_object() {
    if (top() == Context::kEntry && seen_ != 7)
      return failAt(tensorPlace(),
                    absl::StrCat("key '",
                                 !(seen_ & 1)   ? "dtype"
                                 : !(seen_ & 2) ? "shape"
                                                : "data_offsets",
                                 "' is missing, expected dtype, shape and "
                                 "data_offsets"));
    return pop();
  }
  bool start_array(size_t) {
    if (top() == Context::kEntry && field_ == Field::kShape)
      return push(Context::kShape);
    if (top() == Context::kEntry && field_ == Field::kOffsets) {
      offsets_.clear();
      return push(Context::kOffsets);
    }
    if (top() == Context::kExtra ||
        (top() == Context::kEntry && field_ == Field::kExtra))
      return push(Context::kExtra);
    return scalar("an array");
  }
  bool end_array() {
    if (top() == Context::kOffsets) {
      if (offsets_.size() != 2)
        return fail(absl::StrCat("found ", offsets_.size(),
                                 " numbers, expected [begin, end]"));
      entries.back().begin = offsets_[0];
      entries.back().end = offsets_[1];
    }
    return pop();
  }

  bool key(std::string &key) {
    if (++keyCount_ > kMaxKeys)
      return failAt("header", absl::StrCat("found more than ", kMaxKeys,
                                           " JSON keys, expected no more"));
    if (!keys_.back().insert(key).second)
      return duplicate(key);
    if (top() == Context::kRoot)
      return rootKey(key);
    if (top() != Context::kEntry)
      return true;
    fieldName_ = key;
    field_ = key == "dtype"          ? Field::kType
             : key == "shape"        ? Field::kShape
             : key == "data_offsets" ? Field::kOffsets
                                     : Field::kExtra;
    seen_ |= field_ == Field::kExtra ? 0u : 1u << unsigned(field_);
    return true;
  }

  template <typename Exception>
  bool parse_error(size_t position, const std::string &, const Exception &e) {
    std::string text = e.what();
    size_t column = text.find(", column ");
    size_t colon = column == text.npos ? text.npos : text.find(": ", column);
    if (colon != text.npos) // its own numbering and place come first
      text = text.substr(colon + 2);
    return failAt(
        absl::StrCat("header, byte ", 8 + (position ? position - 1 : 0)),
        absl::StrCat("found malformed JSON (", json::printable(text),
                     "), expected one JSON object"));
  }

private:
  enum class Context {
    kNone,
    kRoot,
    kMetadata,
    kEntry,
    kShape,
    kOffsets,
    kExtra
  };
  enum class Field { kType, kShape, kOffsets, kExtra };
  static constexpr size_t kMaxDepth = 64;
  static constexpr size_t kMaxRank = 64;
  static constexpr size_t kMaxKeys = 8 * kMaxTensors;

  Context top() const {
    return contexts_.empty() ? Context::kNone : contexts_.back();
  }
  bool push(Context context) {
    if (contexts_.size() >= kMaxDepth)
      return fail(absl::StrCat("found nesting deeper than ", kMaxDepth,
                               " levels, expected no more"));
    contexts_.push_back(context);
    keys_.emplace_back();
    return true;
  }
  bool pop() {
    contexts_.pop_back();
    keys_.pop_back();
    return true;
  }

  bool rootKey(const std::string &key) {
    key_ = key;
    if (key.size() > kMaxTensorName)
      return failAt(tensorPlace(),
                    absl::StrCat("found a name of ", key.size(),
                                 " bytes, expected at most ", kMaxTensorName));
    if (keys_.back().size() > kMaxTensors + 1) // one for __metadata__
      return failAt("header", absl::StrCat("found more than ", kMaxTensors,
                                           " tensors, expected no more"));
    return true;
  }
  bool duplicate(const std::string &key) {
    if (top() == Context::kRoot)
      return failAt(absl::StrCat("tensor ", inQuotes(key)),
                    "found a second entry of this name, expected one");
    return failAt(tensorPlace(),
                  absl::StrCat("found key ", inQuotes(key),
                               " a second time, expected it once"));
  }

  std::string tensorPlace() const {
    if (key_ == "__metadata__")
      return "header, key '__metadata__'";
    return absl::StrCat("tensor ", inQuotes(key_));
  }
  std::string place() const {
    if (top() == Context::kNone)
      return "header";
    bool inField = top() == Context::kShape || top() == Context::kOffsets ||
                   top() == Context::kExtra || top() == Context::kEntry;
    return inField ? absl::StrCat(tensorPlace(), ", key ", inQuotes(fieldName_))
                   : tensorPlace();
  }
  std::string_view expected() const {
    switch (top()) {
    case Context::kNone:
      return "an object";
    case Context::kRoot:
      return key_ == "__metadata__" ? "an object of strings"
                                    : "an object with dtype, shape and "
                                      "data_offsets";
    case Context::kMetadata:
      return "a string";
    case Context::kEntry:
      return field_ == Field::kType    ? "a string"
             : field_ == Field::kShape ? "an array of unsigned integers"
                                       : "an array of two unsigned integers";
    default:
      return "an unsigned 64-bit integer";
    }
  }
  static std::string typeList() {
    return absl::StrJoin(kElements, ", ", [](std::string *out, const auto &e) {
      absl::StrAppend(out, std::string(e.name));
    });
  }

  /// A value where only some kinds may be.
  bool scalar(std::string_view found) {
    if (top() == Context::kExtra ||
        (top() == Context::kEntry && field_ == Field::kExtra))
      return true;
    return fail(absl::StrCat("found ", std::string(found), ", expected ",
                             std::string(expected())));
  }
  bool fail(const std::string &what) { return failAt(place(), what); }
  bool failAt(const std::string &where, const std::string &what) {
    if (error.empty())
      error = absl::StrCat(where, ": ", what);
    return false;
  }

  std::vector<Context> contexts_;
  std::vector<std::set<std::string>> keys_; // of each open object
  size_t keyCount_ = 0;
  std::string key_, fieldName_; // of the root; of the entry
  Field field_ = Field::kExtra;
  unsigned seen_ = 0; // bit per Field that the entry has
  std::vector<uint64_t> offsets_;
};

} // namespace

std::string_view elementName(ElementType type) {
  return kElements[size_t(type)].name;
}
unsigned elementBits(ElementType type) { return kElements[size_t(type)].bits; }

std::string readHeaderJson(std::span<const uint8_t> text,
                           std::vector<TensorEntry> &entries) {
  HeaderReader reader;
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &reader))
    return reader.error;
  entries = std::move(reader.entries);
  return "";
}

} // namespace grok
