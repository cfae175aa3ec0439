// PyTorch's files: a ZIP archive with a pickle that describes the tensors, and
// their storages.
#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/checkpoint/FileSet.h"
#include "runtime/checkpoint/Messages.h"
#include "runtime/checkpoint/Pickle.h"
#include "runtime/checkpoint/Zip.h"

namespace grok {
namespace {

using Kind = PickleValue::Kind;

constexpr uint64_t kMaxPickleBytes = uint64_t(256) << 20;

struct StorageClass {
  std::string_view global;
  ElementType type;
};
constexpr std::array<StorageClass, 11> kStorages = {{
    {"torch FloatStorage", ElementType::kF32},
    {"torch HalfStorage", ElementType::kF16},
    {"torch BFloat16Storage", ElementType::kBF16},
    {"torch DoubleStorage", ElementType::kF64},
    {"torch LongStorage", ElementType::kI64},
    {"torch IntStorage", ElementType::kI32},
    {"torch ShortStorage", ElementType::kI16},
    {"torch CharStorage", ElementType::kI8},
    {"torch ByteStorage", ElementType::kU8},
    {"torch BoolStorage", ElementType::kBool},
    {"torch ComplexFloatStorage", ElementType::kC64},
}};
constexpr std::string_view kDict = "collections OrderedDict";
constexpr std::string_view kTensor = "torch._utils _rebuild_tensor_v2";
constexpr std::string_view kParameter = "torch._utils _rebuild_parameter";
constexpr std::string_view kSize = "torch Size";

std::vector<std::string_view> allowedGlobals() {
  std::vector<std::string_view> names = {kDict, kTensor, kParameter, kSize};
  for (const StorageClass &storage : kStorages)
    names.push_back(storage.global);
  return names;
}

/// What a file that is no such archive is.
std::string_view lookalike(std::string_view start) {
  if (start.starts_with("version https://git-lfs"))
    return "; this is a Git LFS pointer, fetch the file itself (git lfs pull)";
  if (start.starts_with("\x80\x02"))
    return "; this is PyTorch's format from before 1.6: load and save it with "
           "a newer PyTorch, or convert it to safetensors";
  return "; the file is damaged or none of PyTorch's: download it again";
}

class TorchFile {
public:
  TorchFile(std::span<const uint8_t> file, const std::string &path,
            uint32_t index)
      : bytes_(file), path_(path), index_(index) {}

  absl::StatusOr<std::vector<NamedTensor>> read() {
    std::string_view start(reinterpret_cast<const char *>(bytes_.data()),
                           std::min<size_t>(bytes_.size(), 64));
    if (!start.starts_with("PK\x03\x04"))
      return absl::InvalidArgumentError(absl::StrCat(
          path_, ": found ", start.empty() ? "an empty file" : "no ZIP archive",
          ", expected one, as PyTorch writes", std::string(lookalike(start))));
    absl::StatusOr<std::map<std::string, ZipEntry>> entries =
        readZip(bytes_, path_);
    if (!entries.ok())
      return entries.status();
    entries_ = *std::move(entries);
    if (absl::Status status = findFolder(); !status.ok())
      return status;
    const ZipEntry &data = entries_.at(folder_ + "data.pkl");
    if (data.size > kMaxPickleBytes)
      return error("data.pkl",
                   absl::StrCat("found ", data.size,
                                " bytes, expected at most ", kMaxPickleBytes));
    absl::StatusOr<Pickle> pickle = readPickle(
        bytes_.subspan(data.offset, data.size),
        absl::StrCat(path_, ": ", folder_, "data.pkl"), allowedGlobals());
    if (!pickle.ok())
      return pickle.status();
    pickle_ = *std::move(pickle);
    return readTensors();
  }

private:
  absl::Status error(const std::string &where, const std::string &what) const {
    return absl::InvalidArgumentError(
        absl::StrCat(path_, ": ", where, ": ", what));
  }

  /// Everything lies in one folder, whatever its name.
  absl::Status findFolder() {
    constexpr std::string_view kData = "data.pkl";
    for (const auto &[name, entry] : entries_)
      if (name.ends_with("/data.pkl") &&
          name.find('/') + 1 == name.size() - kData.size())
        folder_ = name.substr(0, name.size() - kData.size());
    if (folder_.empty())
      return absl::InvalidArgumentError(absl::StrCat(
          path_, ": found no entry 'FOLDER/data.pkl', expected PyTorch's "
                 "archive; convert the checkpoint to safetensors"));
    for (const auto &[name, entry] : entries_) {
      if (!name.starts_with(folder_))
        return error(inQuotes(name),
                     absl::StrCat("found outside of ", inQuotes(folder_),
                                  ", expected one folder; "
                                  "don't use this file"));
      std::string_view in = std::string_view(name).substr(folder_.size());
      if (in == "constants.pkl" || in.starts_with("code/"))
        return error(inQuotes(name),
                     "found a TorchScript program, expected tensors alone; "
                     "save the model's state_dict");
    }
    auto order = entries_.find(folder_ + "byteorder");
    if (order == entries_.end())
      return absl::OkStatus();
    std::string_view word(
        reinterpret_cast<const char *>(bytes_.data() + order->second.offset),
        order->second.size);
    if (word != "little")
      return error(
          inQuotes(order->first),
          absl::StrCat("found ", inQuotes(word), ", expected 'little'; ",
                       word == "big" ? "save the checkpoint on a little-endian "
                                       "machine"
                                     : "the file is damaged: download or "
                                       "export it again"));
    return absl::OkStatus();
  }

  bool isCall(const PickleValue &value, std::string_view callee) const {
    return value.kind == Kind::kCall && pickle_[value.items[0]].text == callee;
  }

  absl::StatusOr<std::vector<NamedTensor>> readTensors() {
    const PickleValue &root = pickle_.top();
    if (root.kind != Kind::kDict && !isCall(root, kDict))
      return error("data.pkl", absl::StrCat("found ", describe(root),
                                            ", expected a dict of tensors (a "
                                            "state_dict); save that"));
    std::vector<NamedTensor> tensors;
    std::set<std::string_view> names;
    for (size_t i = 0; i < root.pairs.size(); i += 2) {
      const PickleValue &key = pickle_[root.pairs[i]];
      if (key.kind != Kind::kText)
        return error("data.pkl", absl::StrCat("found ", describe(key),
                                              " as a tensor's name, expected "
                                              "a text; save the state_dict"));
      // Before it is copied: a long name can be said once and be referred to.
      if (!names.insert(key.text).second)
        return tensorError(key.text, "a second one of this name",
                           "one; the file is damaged");
      absl::StatusOr<StoredTensor> tensor =
          readTensor(key.text, pickle_[root.pairs[i + 1]]);
      if (!tensor.ok())
        return tensor.status();
      tensors.push_back({key.text, *std::move(tensor)});
    }
    return tensors;
  }

  const PickleValue *argument(const PickleValue &call, size_t index) const {
    const PickleValue &arguments = pickle_[call.items[1]];
    return index < arguments.items.size() ? &pickle_[arguments.items[index]]
                                          : nullptr;
  }

  /// A tuple, or the one of torch.Size; null: it is neither.
  const PickleValue *asTuple(const PickleValue *value) const {
    if (value && isCall(*value, kSize))
      value = argument(*value, 0);
    return value && value->kind == Kind::kTuple ? value : nullptr;
  }

  /// A tuple of as many numbers as there may be dimensions, none negative.
  std::optional<std::vector<uint64_t>> numbers(const PickleValue *value) const {
    value = asTuple(value);
    if (!value || value->items.size() > kMaxPickledRank)
      return std::nullopt;
    std::vector<uint64_t> out;
    for (uint32_t item : value->items) {
      const PickleValue &number = pickle_[item];
      if (number.kind != Kind::kInteger || number.integer < 0)
        return std::nullopt;
      out.push_back(uint64_t(number.integer));
    }
    return out;
  }

  absl::Status tensorError(const std::string &name, const std::string &found,
                           const std::string &expected) const {
    return error(absl::StrCat("tensor ", inQuotes(name)),
                 absl::StrCat("found ", found, ", expected ", expected));
  }

  bool isEmptyDict(const PickleValue &value) const {
    bool isDict = value.kind == Kind::kDict ||
                  (isCall(value, kDict) && !argument(value, 0));
    return isDict && value.pairs.empty();
  }

  /// PyTorch's metadata says that the values are others than the storage's:
  /// negated, or conjugate.
  absl::Status checkMetadata(const std::string &name,
                             const PickleValue *metadata) const {
    if (!metadata || metadata->kind == Kind::kNone || isEmptyDict(*metadata))
      return absl::OkStatus();
    std::string found = describe(*metadata);
    if (!metadata->pairs.empty())
      absl::StrAppend(&found, " with ", describe(pickle_[metadata->pairs[0]]));
    return tensorError(name, absl::StrCat(found, " as metadata"),
                       "none, as such values are not the storage's; save the "
                       "tensor's clone(), or what resolve_neg() and "
                       "resolve_conj() make of it");
  }

  /// What would change the values of what a call makes, afterwards.
  absl::Status checkUntouched(const std::string &name,
                              const PickleValue &call) const {
    if (call.state == 0 && call.pairs.empty())
      return absl::OkStatus();
    return tensorError(
        name, call.state ? "attributes that are set" : "items that are set",
        "a tensor as its storage has it; save its clone()");
  }

  /// The call that makes the tensor, alone or inside of a parameter.
  absl::StatusOr<const PickleValue *>
  tensorCall(const std::string &name, const PickleValue &value) const {
    const PickleValue *call = &value;
    if (isCall(*call, kParameter)) {
      if (absl::Status status = checkUntouched(name, *call); !status.ok())
        return status;
      call = argument(*call, 0);
    }
    if (!call || !isCall(*call, kTensor))
      return tensorError(name, call ? describe(*call) : "nothing",
                         "a tensor; save the model's state_dict alone");
    // Storage, offset, size, stride, requires_grad, hooks, and metadata.
    size_t arguments = pickle_[call->items[1]].items.size();
    if (arguments != 6 && arguments != 7)
      return tensorError(name,
                         absl::StrCat("a call with ", arguments, " arguments"),
                         "6 or 7; the file is damaged: download or export it "
                         "again");
    if (absl::Status status = checkUntouched(name, *call); !status.ok())
      return status;
    if (absl::Status status = checkMetadata(name, argument(*call, 6));
        !status.ok())
      return status;
    return call;
  }

  absl::StatusOr<StoredTensor> readTensor(const std::string &name,
                                          const PickleValue &value) {
    auto bad = [&](const std::string &found, const std::string &expected) {
      return tensorError(name, found, expected);
    };
    absl::StatusOr<const PickleValue *> made = tensorCall(name, value);
    if (!made.ok())
      return made.status();
    const PickleValue *call = *made, *storage = argument(*call, 0),
                      *offset = argument(*call, 1);
    if (const PickleValue *sizes = asTuple(argument(*call, 2));
        sizes && sizes->items.size() > kMaxPickledRank)
      return bad(absl::StrCat(sizes->items.size(), " dimensions"),
                 absl::StrCat("at most ", kMaxPickledRank,
                              "; the file is damaged: download or export it "
                              "again"));
    auto shape = numbers(argument(*call, 2)),
         strides = numbers(argument(*call, 3));
    if (!storage || storage->kind != Kind::kPersistent || !offset ||
        offset->kind != Kind::kInteger || offset->integer < 0 || !shape ||
        !strides || shape->size() != strides->size())
      return bad("arguments that make no tensor",
                 "a storage, an offset, and a size and a stride of the same "
                 "length, none negative; the file is damaged: download or "
                 "export it again");
    absl::StatusOr<Storage> place = readStorage(name, *storage);
    if (!place.ok())
      return place.status();

    StoredTensor tensor;
    tensor.type = place->type;
    tensor.shape = *shape;
    uint64_t bytes = elementBits(tensor.type) / 8;
    bool empty = std::ranges::find(*shape, 0u) != shape->end();
    uint64_t last = uint64_t(offset->integer); // the last element's index
    bool overflow = false;
    for (size_t i = 0; i < shape->size() && !empty; ++i) {
      uint64_t step = 0;
      overflow |= __builtin_mul_overflow((*shape)[i] - 1, (*strides)[i], &step);
      overflow |= __builtin_add_overflow(last, step, &last);
    }
    if (overflow || (!empty && last >= place->elements))
      return bad(
          absl::StrCat("shape ", shapeText(*shape), " with strides ",
                       shapeText(*strides), " from element ", offset->integer),
          absl::StrCat(
              "it inside its storage of ", place->elements,
              " elements; the file is damaged: download or export it again"));
    tensor.parts = {
        {index_,
         place->offset + (empty ? 0 : uint64_t(offset->integer)) * bytes}};
    if (!isContiguous(*shape, *strides))
      tensor.strides = *strides;
    return tensor;
  }

  static bool isContiguous(const std::vector<uint64_t> &shape,
                           const std::vector<uint64_t> &strides) {
    uint64_t expected = 1;
    for (size_t i = shape.size(); i-- > 0;) {
      if (shape[i] != 1 && strides[i] != expected)
        return false;
      if (__builtin_mul_overflow(expected, shape[i], &expected))
        return false;
    }
    return true;
  }

  struct Storage {
    ElementType type;
    uint64_t offset, elements;
  };
  /// ('storage', class, key, device, elements).
  absl::StatusOr<Storage> readStorage(const std::string &name,
                                      const PickleValue &value) const {
    std::string where = absl::StrCat("tensor ", inQuotes(name));
    const PickleValue &key = pickle_[value.items[0]];
    auto item = [&](size_t i) -> const PickleValue & {
      return pickle_[key.items[i]];
    };
    if (key.kind != Kind::kTuple || key.items.size() != 5 ||
        item(0).text != "storage" || item(1).kind != Kind::kGlobal ||
        item(2).kind != Kind::kText || item(4).kind != Kind::kInteger ||
        item(4).integer < 0)
      return error(where, "found a reference to no storage, expected "
                          "('storage', class, key, device, elements); the "
                          "file is damaged: download or export it again");
    auto known =
        std::ranges::find(kStorages, item(1).text, &StorageClass::global);
    if (known == kStorages.end())
      return error(where,
                   absl::StrCat("found storage class ", inQuotes(item(1).text),
                                ", expected one of torch's; the file "
                                "is damaged: download or export it again"));
    std::string entryName = absl::StrCat(folder_, "data/", item(2).text);
    auto entry = entries_.find(entryName);
    if (entry == entries_.end())
      return error(
          where, absl::StrCat("found no entry ", inQuotes(entryName),
                              ", expected the tensor's storage; the "
                              "file is damaged: download or export it again"));
    uint64_t elements = uint64_t(item(4).integer), bytes = 0;
    if (__builtin_mul_overflow(elements, elementBits(known->type) / 8,
                               &bytes) ||
        bytes != entry->second.size)
      return error(
          where,
          absl::StrCat("found ", entry->second.size, " bytes in ",
                       inQuotes(entryName), ", expected ", elements,
                       " elements of ", std::string(elementName(known->type)),
                       "; the file is damaged: download or export it again"));
    return Storage{known->type, entry->second.offset, elements};
  }

  std::span<const uint8_t> bytes_;
  std::string path_;
  uint32_t index_;
  std::map<std::string, ZipEntry> entries_;
  std::string folder_; // with a slash
  Pickle pickle_;
};

} // namespace

absl::StatusOr<std::vector<NamedTensor>>
readTorch(std::span<const uint8_t> file, const std::string &path,
          uint32_t index) {
  return TorchFile(file, path, index).read();
}

absl::StatusOr<std::vector<NamedTensor>> addTorch(FileSet &set,
                                                  const std::string &name) {
  if (absl::Status status = set.map(name); !status.ok())
    return status;
  const MappedFile &file = set.files.back();
  absl::StatusOr<std::vector<NamedTensor>> tensors =
      readTorch(file.bytes(), file.path(), uint32_t(set.files.size() - 1));
  file.evict();
  return tensors;
}

} // namespace grok
