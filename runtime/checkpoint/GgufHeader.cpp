#include "runtime/checkpoint/GgufHeader.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/checkpoint/Messages.h"

namespace grok {
namespace {

constexpr uint32_t kVersion = 3, kSameLayout = 2;
constexpr uint64_t kMaxKey = 65535, kMaxName = 64, kMaxRank = 4;
constexpr uint64_t kMaxText = uint64_t(16) << 20;
// A vocabulary takes some megabytes. A file with holes can have any size.
constexpr uint64_t kMaxPairBytes = uint64_t(256) << 20; // of all keys together
constexpr uint64_t kMaxElements = uint64_t(1) << 26;    // of an array
constexpr uint64_t kMaxKeys = 65536, kMaxTensors = uint64_t(1) << 18;
constexpr uint64_t kDefaultAlignment = 32;

enum ValueType : uint32_t {
  kU8,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kF32,
  kBool,
  kString,
  kArray,
  kU64,
  kI64,
  kF64,
};

/// Bytes of a number of this type; 0 for what is none.
unsigned numberBytes(uint32_t type) {
  switch (type) {
  case kU8:
  case kI8:
  case kBool:
    return 1;
  case kU16:
  case kI16:
    return 2;
  case kU32:
  case kI32:
  case kF32:
    return 4;
  case kU64:
  case kI64:
  case kF64:
    return 8;
  default:
    return 0;
  }
}

struct TensorType {
  uint32_t id;
  ElementType type;
  StoredTensor::Coding coding;
};
constexpr TensorType kTypes[] = {
    {0, ElementType::kF32, StoredTensor::Coding::kPlain},
    {1, ElementType::kF16, StoredTensor::Coding::kPlain},
    {8, ElementType::kI8, StoredTensor::Coding::kBlocks},
    {30, ElementType::kBF16, StoredTensor::Coding::kPlain},
};

/// Before March 2024 each expert had tensors of its own: "blk.N.ffn_gate.E".
bool isPerExpert(std::string_view name) {
  for (std::string_view part : {".ffn_gate.", ".ffn_up.", ".ffn_down."})
    if (size_t at = name.find(part); at != name.npos)
      return at + part.size() < name.size() && name[at + part.size()] >= '0' &&
             name[at + part.size()] <= '9';
  return false;
}

template <typename T> double as(std::span<const uint8_t> bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return double(value);
}
double toNumber(uint32_t type, std::span<const uint8_t> bytes) {
  switch (type) {
  case kI8:
    return as<int8_t>(bytes);
  case kU16:
    return as<uint16_t>(bytes);
  case kI16:
    return as<int16_t>(bytes);
  case kU32:
    return as<uint32_t>(bytes);
  case kI32:
    return as<int32_t>(bytes);
  case kF32:
    return as<float>(bytes);
  case kU64:
    return as<uint64_t>(bytes);
  case kI64:
    return as<int64_t>(bytes);
  case kF64:
    return as<double>(bytes);
  default:
    return as<uint8_t>(bytes);
  }
}

class GgufReader {
public:
  GgufReader(std::span<const uint8_t> file, const std::string &path)
      : file_(file), path_(path) {}

  absl::StatusOr<GgufHeader> read() {
    readStart();
    limit_ = at_ + kMaxPairBytes;
    for (uint64_t i = 0; i < keys_ && ok(); ++i)
      readPair();
    limit_ = kNoLimit;
    if (ok())
      readAlignment();
    for (uint64_t i = 0; i < tensors_ && ok(); ++i)
      readTensor();
    if (ok())
      placeTensors();
    if (!ok())
      return status_;
    header_.architecture = header_.texts["general.architecture"];
    return std::move(header_);
  }

private:
  bool ok() const { return status_.ok(); }
  void fail(const std::string &where, const std::string &what) {
    if (ok())
      status_ = absl::InvalidArgumentError(
          absl::StrCat(path_, ": ", where, where.empty() ? "" : ": ", what));
  }
  void damaged(const std::string &where, const std::string &what) {
    fail(where, absl::StrCat(what, "; the file is damaged: download or convert "
                                   "it again"));
  }

  std::span<const uint8_t> take(const std::string &where, uint64_t bytes) {
    if (bytes > file_.size() - at_) {
      damaged(where, absl::StrCat("found ", file_.size() - at_,
                                  " bytes to the end, expected ", bytes,
                                  " (truncated)"));
      return {};
    }
    if (bytes > limit_ - at_) {
      damaged(where, absl::StrCat("found more than ", kMaxPairBytes,
                                  " bytes of keys and values up to it, "
                                  "expected no more"));
      return {};
    }
    auto out = file_.subspan(at_, bytes);
    at_ += bytes;
    return out;
  }
  template <typename T> T number(const std::string &where) {
    T value = 0;
    auto from = take(where, sizeof value);
    if (ok())
      std::memcpy(&value, from.data(), sizeof value);
    return value;
  }
  /// The bytes of a text, not copied.
  std::span<const uint8_t> textBytes(const std::string &where, uint64_t most) {
    uint64_t bytes = number<uint64_t>(where);
    if (ok() && bytes > most)
      damaged(where, absl::StrCat("found a text of ", bytes,
                                  " bytes, expected at most ", most));
    return ok() ? take(where, bytes) : std::span<const uint8_t>();
  }
  std::string text(const std::string &where, uint64_t most) {
    auto from = textBytes(where, most);
    return {from.begin(), from.end()};
  }

  void readStart() {
    auto magic = take("", 4);
    if (!ok() || std::memcmp(magic.data(), "GGUF", 4) != 0) {
      status_ = absl::OkStatus();
      return fail("", "found other first bytes than 'GGUF', expected a GGUF "
                      "file; download it again");
    }
    uint32_t version = number<uint32_t>("version");
    if (ok() && version != kVersion && version != kSameLayout)
      return fail("version", absl::StrCat("found ", version, ", expected ",
                                          kSameLayout, " or ", kVersion,
                                          "; convert the checkpoint again"));
    tensors_ = number<uint64_t>("tensor count");
    keys_ = number<uint64_t>("key count");
    if (ok() && (tensors_ > kMaxTensors || keys_ > kMaxKeys))
      damaged("counts", absl::StrCat("found ", tensors_, " tensors and ", keys_,
                                     " keys, expected at most ", kMaxTensors,
                                     " and ", kMaxKeys));
  }

  void readPair() {
    std::string key = text("metadata", kMaxKey);
    std::string where = absl::StrCat("key ", inQuotes(key));
    uint32_t type = number<uint32_t>(where);
    if (!ok())
      return;
    if (header_.numbers.count(key) || header_.texts.count(key) ||
        header_.arrays.count(key))
      return damaged(where, "found a second time, expected it once");
    if (key == "general.alignment" && type != kU32)
      return damaged(where, absl::StrCat("found type ", type, ", expected ",
                                         uint32_t(kU32), " (uint32)"));
    if (type == kString) {
      header_.texts[key] = text(where, kMaxText);
    } else if (type == kArray) {
      header_.arrays.insert(key);
      skipArray(where);
    } else if (unsigned bytes = numberBytes(type)) {
      auto from = take(where, bytes);
      if (ok() && type == kBool && from[0] > 1)
        return damaged(where, absl::StrCat("found the flag ", from[0],
                                           ", expected 0 or 1"));
      if (ok())
        header_.numbers[key] = toNumber(type, from);
    } else {
      damaged(where, absl::StrCat("found type ", type, ", expected 0 to 12"));
    }
  }

  /// Vocabularies and the like: nothing of the weights.
  void skipArray(const std::string &where) {
    uint32_t type = number<uint32_t>(where);
    uint64_t count = number<uint64_t>(where);
    if (!ok())
      return;
    bool texts = type == kString;
    unsigned bytes = texts ? sizeof(uint64_t) : numberBytes(type);
    if (bytes == 0)
      return damaged(where, absl::StrCat("found an array of type ", type,
                                         ", expected numbers or texts"));
    std::string found =
        absl::StrCat("found ", count, texts ? " texts" : " elements");
    if (count > (file_.size() - at_) / bytes)
      return damaged(where, absl::StrCat(found, ", expected at most what the "
                                                "file holds"));
    if (count > kMaxElements)
      return damaged(where,
                     absl::StrCat(found, ", expected at most ", kMaxElements));
    if (!texts)
      take(where, count * bytes);
    for (uint64_t i = 0; texts && i < count && ok(); ++i)
      textBytes(where, kMaxText);
  }

  void readAlignment() {
    auto it = header_.numbers.find("general.alignment");
    if (it == header_.numbers.end())
      return;
    alignment_ = uint64_t(it->second);
    if (alignment_ == 0 || alignment_ % 8 != 0)
      damaged("key 'general.alignment'",
              absl::StrCat("found ", alignment_,
                           ", expected a multiple of 8 that is not 0"));
  }

  /// Bytes of a tensor; nullopt if they don't fit 64 bits or blocks don't fit
  /// a row.
  static std::optional<uint64_t> bytesOf(const GgufTensor &tensor) {
    uint64_t elements = 1;
    for (uint64_t size : tensor.shape)
      if (__builtin_mul_overflow(elements, size, &elements))
        return std::nullopt;
    bool blocks = tensor.coding == StoredTensor::Coding::kBlocks;
    if (blocks &&
        (tensor.shape.empty() || tensor.shape.back() % kBlockElements != 0))
      return std::nullopt;
    uint64_t bytes = 0;
    if (__builtin_mul_overflow(
            blocks ? elements / kBlockElements : elements,
            blocks ? kBlockBytes : elementBits(tensor.type) / 8, &bytes))
      return std::nullopt;
    return bytes;
  }

  void readTensor() {
    GgufTensor tensor;
    tensor.name = text("tensor infos", kMaxName);
    std::string where = absl::StrCat("tensor ", inQuotes(tensor.name));
    uint32_t rank = number<uint32_t>(where);
    if (ok() && rank > kMaxRank)
      return damaged(where,
                     absl::StrCat("found ", rank,
                                  " dimensions, expected at most ", kMaxRank));
    for (uint32_t i = 0; i < rank && ok(); ++i)
      tensor.shape.insert(tensor.shape.begin(), number<uint64_t>(where));
    uint32_t type = number<uint32_t>(where);
    tensor.begin = number<uint64_t>(where);
    if (!ok())
      return;
    if (isPerExpert(tensor.name))
      return fail(where,
                  "found a tensor of one expert, as files of before April 2024 "
                  "have them, expected those of all experts in one "
                  "('blk.N.ffn_gate_exps.weight'); convert the checkpoint "
                  "again");
    auto known = std::ranges::find(kTypes, type, &TensorType::id);
    if (known == std::end(kTypes))
      return fail(where, absl::StrCat("found GGUF type ", type,
                                      ", expected 0 (F32), 1 (F16), 8 (Q8_0) "
                                      "or 30 (BF16); convert the checkpoint "
                                      "to one of them"));
    tensor.type = known->type;
    tensor.coding = known->coding;
    std::optional<uint64_t> bytes = bytesOf(tensor);
    if (!bytes)
      return damaged(where,
                     absl::StrCat("found shape ", shapeText(tensor.shape),
                                  ", expected a size that fits 64 bits "
                                  "and, for Q8_0, rows of a multiple "
                                  "of ",
                                  kBlockElements));
    if (tensor.begin % alignment_ != 0 ||
        __builtin_add_overflow(tensor.begin, *bytes, &tensor.end))
      return damaged(where, absl::StrCat("found offset ", tensor.begin,
                                         ", expected a multiple of ",
                                         alignment_, " inside the file"));
    header_.tensors.push_back(std::move(tensor));
  }

  /// Offsets count from the first aligned byte after the infos.
  void placeTensors() {
    uint64_t data = 0;
    if (__builtin_add_overflow(at_, alignment_ - 1, &data))
      return damaged("key 'general.alignment'", "found too large a number");
    data -= data % alignment_;
    if (data > file_.size() && !header_.tensors.empty())
      return damaged("tensor infos",
                     absl::StrCat("found ", file_.size(),
                                  " bytes in all, expected tensors from byte ",
                                  data, " on (truncated)"));
    uint64_t room = file_.size() - std::min<uint64_t>(data, file_.size());
    // A tensor without elements lies before the one that begins there.
    std::ranges::sort(header_.tensors, {}, [](const GgufTensor &tensor) {
      return std::pair(tensor.begin, tensor.end);
    });
    const GgufTensor *before = nullptr;
    for (GgufTensor &tensor : header_.tensors) {
      std::string where = absl::StrCat("tensor ", inQuotes(tensor.name));
      if (tensor.end > room)
        return damaged(where, absl::StrCat("found ", room,
                                           " bytes after the header, expected ",
                                           tensor.end, " (truncated)"));
      if (before && tensor.begin + data < before->end)
        return damaged(where,
                       absl::StrCat("found it inside ", inQuotes(before->name),
                                    ", expected tensors that lie "
                                    "apart"));
      tensor.begin += data;
      tensor.end += data;
      before = &tensor;
    }
  }

  std::span<const uint8_t> file_;
  const std::string &path_;
  static constexpr uint64_t kNoLimit = ~uint64_t(0);
  uint64_t limit_ = kNoLimit; // where keys and values must end
  uint64_t at_ = 0, tensors_ = 0, keys_ = 0, alignment_ = kDefaultAlignment;
  GgufHeader header_;
  absl::Status status_;
};

} // namespace

absl::StatusOr<GgufHeader> parseGguf(std::span<const uint8_t> file,
                                     const std::string &path) {
  return GgufReader(file, path).read();
}

} // namespace grok
