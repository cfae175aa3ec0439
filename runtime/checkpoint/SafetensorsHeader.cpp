#include "runtime/checkpoint/SafetensorsHeader.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <set>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "nlohmann/json.hpp"
#include "runtime/checkpoint/Messages.h"

static_assert(std::endian::native == std::endian::little,
              "safetensors is little-endian and is read without swapping");

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

/// What the bytes look like, for files that are no safetensors at all.
std::string_view lookalike(std::span<const uint8_t> file) {
  std::string_view start(reinterpret_cast<const char *>(file.data()),
                         std::min<size_t>(file.size(), 64));
  if (start.starts_with("version https://git-lfs"))
    return "; this is a Git LFS pointer, fetch the file itself (git lfs pull)";
  if (start.find_first_not_of(" \t\r\n") != start.npos &&
      start[start.find_first_not_of(" \t\r\n")] == '<')
    return "; this looks like a web page, most likely an error message saved "
           "in the file's place: download it again";
  if (start.starts_with("PK\x03\x04"))
    return "; this is a ZIP archive, as PyTorch writes: convert it to "
           "safetensors";
  if (start.starts_with("GGUF"))
    return "; this is a GGUF file: convert it to safetensors";
  return "; the file is damaged or no safetensors file: download it again";
}

/// Offset of the first byte that is no valid UTF-8 or is NUL, which no JSON
/// text holds.
std::optional<size_t> findBadText(std::span<const uint8_t> text) {
  size_t i = 0;
  while (i < text.size()) {
    uint8_t lead = text[i];
    if (lead == 0)
      return i;
    if (lead < 0x80) {
      ++i;
      continue;
    }
    size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    if (lead < 0xc2 || lead > 0xf4 || text.size() - i < length)
      return i;
    // The second byte's range excludes overlong forms, surrogates and what is
    // above U+10FFFF.
    uint8_t low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
    uint8_t high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
    if (text[i + 1] < low || text[i + 1] > high)
      return i;
    for (size_t j = 2; j < length; ++j)
      if ((text[i + j] & 0xc0) != 0x80)
        return i;
    i += length;
  }
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
        absl::StrCat("found malformed JSON (", text.substr(0, 240),
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

bool multiply(uint64_t a, uint64_t b, uint64_t &out) {
  return !__builtin_mul_overflow(a, b, &out);
}

/// Bits of a tensor; none if they don't fit 64 bits. A zero dimension makes a
/// tensor empty wherever it stands among the dimensions.
std::optional<uint64_t> tensorBits(const TensorEntry &entry) {
  if (std::ranges::find(entry.shape, 0u) != entry.shape.end())
    return 0;
  uint64_t product = 1;
  for (uint64_t dimension : entry.shape)
    if (!multiply(product, dimension, product))
      return std::nullopt;
  if (!multiply(product, elementBits(entry.type), product))
    return std::nullopt;
  return product;
}

/// Why an entry is wrong, given where the one before it ended; empty if it
/// isn't. Offsets are still relative to the buffer.
std::string checkEntry(const TensorEntry &entry, uint64_t previousEnd) {
  if (entry.begin != previousEnd)
    return absl::StrCat("found data_offsets that begin at ", entry.begin,
                        ", expected ", previousEnd,
                        ", where the tensor before it ends");
  if (entry.end < entry.begin)
    return absl::StrCat("found data_offsets [", entry.begin, ", ", entry.end,
                        "], expected an end that is not before the begin");
  std::string type(elementName(entry.type));
  std::optional<uint64_t> bits = tensorBits(entry);
  if (!bits)
    return absl::StrCat("found shape ", shapeText(entry.shape), " of ", type,
                        ", expected a size that fits 64 bits");
  if (*bits % 8 != 0)
    return absl::StrCat("found shape ", shapeText(entry.shape), " of ", type,
                        ", which is ", *bits, " bits, expected whole bytes");
  if (*bits / 8 != entry.end - entry.begin)
    return absl::StrCat("found ", entry.end - entry.begin,
                        " bytes in data_offsets, expected ", *bits / 8,
                        " for shape ", shapeText(entry.shape), " of ", type);
  return "";
}

absl::Status damaged(const std::string &path, const std::string &what) {
  return absl::InvalidArgumentError(absl::StrCat(
      path, ": ", what, "; the file is damaged: download or export it again"));
}

/// The buffer must be what the header promises, no less and no more.
absl::Status checkCoverage(const std::vector<TensorEntry> &entries,
                           uint64_t buffer, const std::string &path) {
  uint64_t promised = entries.empty() ? 0 : entries.back().end;
  if (promised < buffer)
    return damaged(path,
                   absl::StrCat("found ", buffer,
                                " bytes after the header, expected ", promised,
                                " (", buffer - promised, " trailing bytes)"));
  if (promised == buffer)
    return absl::OkStatus();
  auto cut = std::ranges::find_if(
      entries, [&](const TensorEntry &e) { return e.end > buffer; });
  return damaged(path,
                 absl::StrCat("tensor ", inQuotes(cut->name), ": found ",
                              buffer, " bytes after the header, expected ",
                              promised, " (truncated)"));
}

/// Checks 1 to 3: the header's length.
absl::StatusOr<uint64_t> headerLength(std::span<const uint8_t> file,
                                      const std::string &path) {
  auto error = [&](const std::string &what) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": ", what, std::string(lookalike(file))));
  };
  if (file.empty())
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": found an empty file, expected a safetensors file; download "
              "it again"));
  if (file.size() < 8)
    return error(absl::StrCat("found ", file.size(),
                              " bytes, expected at least the 8 of the header's "
                              "length"));
  uint64_t length;
  std::memcpy(&length, file.data(), 8);
  if (length > kMaxHeaderBytes)
    return error(absl::StrCat("found a header length of ", length,
                              ", expected at most ", kMaxHeaderBytes));
  if (length > file.size() - 8)
    return error(absl::StrCat("found a header length of ", length,
                              ", expected at most the ", file.size() - 8,
                              " bytes that follow it"));
  return length;
}

} // namespace

std::string_view elementName(ElementType type) {
  return kElements[size_t(type)].name;
}
unsigned elementBits(ElementType type) { return kElements[size_t(type)].bits; }

absl::StatusOr<std::vector<TensorEntry>>
parseSafetensors(std::span<const uint8_t> file, const std::string &path) {
  absl::StatusOr<uint64_t> length = headerLength(file, path);
  if (!length.ok())
    return length.status();
  std::span<const uint8_t> text = file.subspan(8, *length);
  if (std::optional<size_t> bad = findBadText(text))
    return damaged(path, absl::StrCat("header, byte ", 8 + *bad, ": found 0x",
                                      absl::Hex(text[*bad], absl::kZeroPad2),
                                      ", expected UTF-8 text"));
  // nlohmann skips a byte order mark; the format does not have one.
  if (text.size() >= 3 && text[0] == 0xef && text[1] == 0xbb && text[2] == 0xbf)
    return damaged(path, "header, byte 8: found a byte order mark, expected "
                         "one JSON object");

  HeaderReader reader;
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &reader))
    return damaged(path, reader.error);
  std::vector<TensorEntry> entries = std::move(reader.entries);

  // An empty tensor comes before the one that begins where it lies.
  std::ranges::sort(entries, [](const TensorEntry &a, const TensorEntry &b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  uint64_t end = 0;
  for (const TensorEntry &entry : entries) {
    if (std::string what = checkEntry(entry, end); !what.empty())
      return damaged(path,
                     absl::StrCat("tensor ", inQuotes(entry.name), ": ", what));
    end = entry.end;
  }
  if (absl::Status status =
          checkCoverage(entries, file.size() - 8 - *length, path);
      !status.ok())
    return status;
  for (TensorEntry &entry : entries) {
    entry.begin += 8 + *length;
    entry.end += 8 + *length;
  }
  return entries;
}

} // namespace grok
