// xAI's ckpt-0: a pickle for each tensor, tensorIIIII_SSS, without its name.
// The index says which tensor it is: the position among the keys of the model's
// parameters in the order of their text.
#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/checkpoint/FileSet.h"
#include "runtime/checkpoint/Messages.h"
#include "runtime/checkpoint/Pickle.h"

namespace grok {
namespace {

using Kind = PickleValue::Kind;

constexpr std::string_view kStart = "tensor";
constexpr size_t kIndexDigits = 5, kShardDigits = 3;
constexpr size_t kNameBytes = kStart.size() + kIndexDigits + 1 + kShardDigits;

constexpr std::array<std::string_view, 2> kFirst = {
    "language_model/in_out_embed/embeddings", "language_model/rms_norm/scale"};
/// In the order of the files of a layer.
constexpr std::array<std::string_view, 12> kOfLayer = {
    "moe/linear/w",
    "moe/linear_1/w",
    "moe/linear_v/w",
    "multi_head_attention/key/w",
    "multi_head_attention/linear/w",
    "multi_head_attention/query/w",
    "multi_head_attention/value/w",
    "rms_norm/scale",
    "rms_norm_1/scale",
    "rms_norm_2/scale",
    "rms_norm_3/scale",
    "router/w",
};

// What the files' objects are made by. NumPy moved its module, and the bf16
// type had several homes.
constexpr std::array<std::string_view, 2> kArray = {
    "numpy.core.multiarray _reconstruct",
    "numpy._core.multiarray _reconstruct"};
/// Before protocol 3 bytes are a call, and from 5 on an array is another one.
constexpr std::array<std::string_view, 3> kOfOtherProtocols = {
    "_codecs encode", "numpy.core.numeric _frombuffer",
    "numpy._core.numeric _frombuffer"};
constexpr std::string_view kArrayClass = "numpy ndarray";
constexpr std::string_view kType = "numpy dtype";
constexpr std::string_view kQuantized = "__main__ QuantizedWeight8bit";
constexpr std::string_view kBf16 = "* bfloat16", kBf16End = " bfloat16";

std::vector<std::string_view> allowedGlobals() {
  std::vector<std::string_view> names = {kArrayClass, kType, kQuantized, kBf16};
  names.insert(names.end(), kArray.begin(), kArray.end());
  return names;
}

bool contains(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

/// The parameters' names in the order of the files.
std::vector<std::string> namesOf(uint32_t layers) {
  std::vector<std::string> order;
  for (uint32_t layer = 0; layer < layers; ++layer)
    order.push_back(absl::StrCat(layer));
  std::ranges::sort(order); // as text: 0, 1, 10, 11, 2, ...
  std::vector<std::string> names(kFirst.begin(), kFirst.end());
  for (const std::string &layer : order)
    for (std::string_view tail : kOfLayer)
      names.push_back(absl::StrCat("transformer/decoder_layer_", layer, "/",
                                   std::string(tail)));
  return names;
}

std::string fileName(size_t index) {
  return absl::StrFormat("tensor%05u_000", index);
}

/// A NumPy array as its file describes it.
struct Array {
  ElementType type;
  std::vector<uint64_t> shape;
  uint64_t offset; // of its elements in the file
};

class JaxFile {
public:
  JaxFile(std::span<const uint8_t> file, const std::string &path,
          uint32_t index, const std::string &tensor)
      : bytes_(file), path_(path), index_(index), tensor_(tensor) {}

  absl::StatusOr<StoredTensor> read() {
    absl::StatusOr<Pickle> pickle =
        readPickle(bytes_, absl::StrCat(path_, ": tensor '", tensor_, "'"),
                   allowedGlobals(), kOfOtherProtocols);
    if (!pickle.ok())
      return pickle.status();
    pickle_ = *std::move(pickle);
    if (isCall(pickle_.top(), kQuantized))
      return isTable() ? error("a quantised weight",
                               "F32 or BF16: scales are of a matrix's inputs, "
                               "and this is a table; export it unquantised")
                       : readQuantized();
    absl::StatusOr<Array> array = readArray(pickle_.top(), "the file");
    if (!array.ok())
      return array.status();
    return turned(*array);
  }

private:
  absl::Status error(const std::string &found,
                     const std::string &expected) const {
    return absl::InvalidArgumentError(absl::StrCat(path_, ": tensor '", tensor_,
                                                   "': found ", found,
                                                   ", expected ", expected));
  }
  bool isCall(const PickleValue &value, std::string_view callee) const {
    return value.kind == Kind::kCall && pickle_[value.items[0]].text == callee;
  }

  /// The embedding's rows are looked up: they have no inputs.
  bool isTable() const { return tensor_ == kFirst[0]; }

  /// JAX multiplies from the right: its matrices are [in, out]. All but the
  /// table.
  StoredTensor turned(const Array &array) const {
    StoredTensor tensor;
    tensor.type = array.type;
    tensor.shape = array.shape;
    tensor.parts = {{index_, array.offset}};
    size_t rank = tensor.shape.size();
    if (rank < 2 || isTable())
      return tensor;
    uint64_t in = tensor.shape[rank - 2], out = tensor.shape[rank - 1];
    tensor.strides.assign(rank, in * out);
    tensor.strides[rank - 2] = 1;
    tensor.strides[rank - 1] = out;
    std::swap(tensor.shape[rank - 2], tensor.shape[rank - 1]);
    return tensor;
  }

  absl::StatusOr<StoredTensor> readQuantized() {
    const PickleValue &attributes = pickle_[pickle_.top().state];
    std::map<std::string_view, const PickleValue *> found;
    for (size_t i = 0; i < attributes.pairs.size(); i += 2)
      found[pickle_[attributes.pairs[i]].text] =
          &pickle_[attributes.pairs[i + 1]];
    if (found.size() != 2 || !found.count("weight") || !found.count("scales"))
      return error(
          absl::StrCat("a quantised weight with ", found.size(), " attributes"),
          "weight and scales; the file is damaged: download or export it "
          "again");
    absl::StatusOr<Array> weight = readArray(*found["weight"], "weight");
    if (!weight.ok())
      return weight.status();
    absl::StatusOr<Array> scales = readArray(*found["scales"], "scales");
    if (!scales.ok())
      return scales.status();
    if (weight->type != ElementType::kI8 || weight->shape.size() < 2)
      return error(absl::StrCat("weights of ",
                                std::string(elementName(weight->type)),
                                " and shape ", shapeText(weight->shape)),
                   "a matrix of I8");
    if (scales->type != ElementType::kBF16)
      return error(
          absl::StrCat("scales of ", std::string(elementName(scales->type))),
          "BF16");
    // As many blocks of inputs as the scales have rows, for each output.
    uint64_t blocks =
        scales->shape.size() < 2 ? 0 : scales->shape[scales->shape.size() - 2];
    std::vector<uint64_t> expected = weight->shape;
    uint64_t &inputs = expected[expected.size() - 2];
    if (blocks == 0 || inputs % blocks != 0) {
      return error(
          absl::StrCat("scales of shape ", shapeText(scales->shape)),
          absl::StrCat("a row of them for each of equal blocks of the ", inputs,
                       " inputs of weights of shape ", shapeText(weight->shape),
                       "; the file is damaged: download or export it again"));
    }
    inputs = blocks;
    if (scales->shape != expected)
      return error(
          absl::StrCat("scales of shape ", shapeText(scales->shape)),
          absl::StrCat(shapeText(expected), " for weights of shape ",
                       shapeText(weight->shape),
                       "; the file is damaged: download or export it again"));
    StoredTensor tensor = turned(*weight);
    tensor.coding = StoredTensor::Coding::kScaled;
    tensor.scales = {index_, scales->offset};
    tensor.scaleBlocks = blocks;
    return tensor;
  }

  /// _reconstruct(ndarray, (0,), b'b') with the state (1, shape, dtype, is
  /// Fortran's order, bytes).
  absl::StatusOr<Array> readArray(const PickleValue &value,
                                  const std::string &what) const {
    if (value.kind != Kind::kCall ||
        !contains(kArray, pickle_[value.items[0]].text))
      return error(
          absl::StrCat(describe(value), " as ", what),
          "a NumPy array; the file is damaged: download or export it again");
    const PickleValue &state = pickle_[value.state];
    auto item = [&](size_t i) -> const PickleValue & {
      return pickle_[state.items[i]];
    };
    if (state.kind != Kind::kTuple || state.items.size() != 5 ||
        item(1).kind != Kind::kTuple || item(3).kind != Kind::kBool ||
        item(4).kind != Kind::kBytes)
      return error(absl::StrCat(describe(state), " as the state of ", what),
                   "(1, shape, dtype, order, bytes); the file is damaged: "
                   "download or export it again");
    if (item(3).integer)
      return error(absl::StrCat("columns in order in ", what),
                   "rows in order (C's); save it again");
    std::optional<ElementType> type = readType(item(2));
    if (!type)
      return error(absl::StrCat("another element type in ", what),
                   "little-endian f4, i1 or bfloat16; save it again");
    if (size_t rank = item(1).items.size(); rank > kMaxPickledRank)
      return error(absl::StrCat(rank, " dimensions in ", what),
                   absl::StrCat("at most ", kMaxPickledRank,
                                "; the file is damaged: download or export it "
                                "again"));
    Array array{*type, {}, item(4).offset};
    uint64_t bytes = elementBits(*type) / 8;
    bool overflow = false;
    for (uint32_t index : item(1).items) {
      const PickleValue &size = pickle_[index];
      if (size.kind != Kind::kInteger || size.integer < 0)
        return error(absl::StrCat(describe(size), " in the shape of ", what),
                     "sizes; the file is damaged: download or export it again");
      array.shape.push_back(uint64_t(size.integer));
      overflow |= __builtin_mul_overflow(bytes, uint64_t(size.integer), &bytes);
    }
    if (overflow || bytes != item(4).size)
      return error(
          absl::StrCat(item(4).size, " bytes in ", what),
          absl::StrCat("shape ", shapeText(array.shape), " of ",
                       std::string(elementName(*type)),
                       "; the file is damaged: download or export it again"));
    return array;
  }

  /// dtype('f4', False, True) with the state (3, '<', ...).
  std::optional<ElementType> readType(const PickleValue &value) const {
    if (!isCall(value, kType) || pickle_[value.items[1]].items.empty())
      return std::nullopt;
    const PickleValue &name = pickle_[pickle_[value.items[1]].items[0]];
    const PickleValue &state = pickle_[value.state];
    if (state.kind != Kind::kTuple || state.items.size() < 2)
      return std::nullopt;
    const std::string &order = pickle_[state.items[1]].text;
    if (name.kind == Kind::kText && name.text == "i1")
      return ElementType::kI8;
    if (order != "<" && order != "=")
      return std::nullopt;
    if (name.kind == Kind::kText && name.text == "f4")
      return ElementType::kF32;
    if (name.kind == Kind::kGlobal && name.text.ends_with(kBf16End))
      return ElementType::kBF16;
    return std::nullopt;
  }

  std::span<const uint8_t> bytes_;
  std::string path_;
  uint32_t index_;
  std::string tensor_;
  Pickle pickle_;
};

/// Files 0 .. n - 1, each of one shard.
absl::StatusOr<size_t> countFiles(const FileSet &set,
                                  const std::vector<std::string> &names) {
  size_t next = 0;
  Listing missing;
  std::string after; // what follows the first that is missing
  for (const std::string &name : names) {
    if (!isJaxName(name))
      continue;
    if (!name.ends_with("_000"))
      return absl::InvalidArgumentError(absl::StrCat(
          set.directory, "/", name,
          ": found a shard of several, expected files that end in _000 only: a "
          "checkpoint that one host wrote; join the shards first"));
    for (; fileName(next) != name; ++next)
      missing.add(fileName(next));
    ++next;
    if (missing.count && after.empty())
      after = name;
  }
  if (missing.count)
    return missingFiles(
        set.directory, missing,
        absl::StrCat("found ", inQuotes(after),
                     " after it, expected all from tensor00000_000 on; "
                     "download it"));
  return next;
}

} // namespace

bool isJaxName(const std::string &name) {
  if (name.size() != kNameBytes || !name.starts_with(kStart))
    return false;
  for (size_t i = kStart.size(); i < kNameBytes; ++i)
    if (i == kStart.size() + kIndexDigits ? name[i] != '_'
                                          : name[i] < '0' || name[i] > '9')
      return false;
  return true;
}

absl::StatusOr<StoredTensor> readJax(std::span<const uint8_t> file,
                                     const std::string &path, uint32_t index,
                                     const std::string &tensor) {
  return JaxFile(file, path, index, tensor).read();
}

absl::Status openJax(FileSet &set, const std::vector<std::string> &names) {
  set.layout = "xAI's ckpt-0";
  absl::StatusOr<size_t> count = countFiles(set, names);
  if (!count.ok())
    return count.status();
  size_t layers = (*count - std::min(*count, kFirst.size())) / kOfLayer.size();
  if (layers == 0 || *count != kFirst.size() + layers * kOfLayer.size())
    return absl::InvalidArgumentError(absl::StrCat(
        set.directory, ": found ", *count, " files of ckpt-0, expected ",
        kFirst.size(), " and ", kOfLayer.size(),
        " for each layer (770 in Grok-1); download the missing ones, or remove "
        "those of another checkpoint"));
  std::vector<std::string> tensors = namesOf(uint32_t(layers));
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (absl::Status status = set.map(fileName(i)); !status.ok())
      return status;
    absl::StatusOr<StoredTensor> tensor =
        readJax(set.files.back().bytes(), set.files.back().path(), uint32_t(i),
                tensors[i]);
    set.files.back().evict();
    if (!tensor.ok())
      return tensor.status();
    set.insert(tensors[i], *std::move(tensor));
  }
  set.layout = absl::StrCat("xAI's ckpt-0, ", *count, " pickles of ", layers,
                            layers == 1 ? " layer" : " layers");
  return absl::OkStatus();
}

} // namespace grok
