#include "runtime/checkpoint/ModelTensors.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/checkpoint/Messages.h"
#include "runtime/checkpoint/TensorNames.h"

namespace grok {
namespace {

/// Finds the model's tensors among the stored ones.
class Matcher {
public:
  Matcher(FileSet &set, const ModelConfig &model) : set_(set), model_(model) {}

  absl::StatusOr<TensorMap> match() {
    std::optional<Spelling> spelling = detectSpelling(set_);
    if (!spelling)
      return absl::InvalidArgumentError(absl::StrCat(
          set_.directory, ": found ",
          set_.tensors.empty()
              ? std::string("no tensor")
              : absl::StrCat("tensors named like ",
                             inQuotes(set_.tensors.begin()->first)),
          ", expected names like ", example(Spelling::kAttn), ", ",
          example(Spelling::kTransformer), ", ", example(Spelling::kSelfAttn),
          " or ", example(Spelling::kGguf),
          "; these are not the weights of such a model"));
    spelling_ = *spelling;
    absl::Status status =
        forEachTensor(model_, [&](const TensorId &id) { return take(id); });
    if (status.ok())
      status = checkRest();
    if (!status.ok())
      return status;
    return std::move(found_);
  }

  /// Goes through what is stored, not through what the model has: names can
  /// say any number of layers and experts.
  Mismatches mismatches() {
    Mismatches out;
    spelling_ = detectSpelling(set_).value_or(Spelling::kAttn);
    ModelConfig named = model_; // one tensor of all experts is one name
    if (isStacked(spelling_, TensorKind::kExpertGate))
      named.numExperts = std::min(named.numExperts, 1u);
    uint64_t present = expectsHead() ? 0 : 1;
    for (const auto &[name, tensor] : set_.tensors) {
      std::optional<TensorId> id = storedId(spelling_, name);
      if (id && hasTensor(named, *id)) {
        ++present;
        if (absl::Status status = check(*id, name, tensor); !status.ok())
          out.wrong.add(std::string(status.message()));
      } else if (!isIgnoredTensor(name)) {
        out.extra.add(inQuotes(name));
      }
    }
    out.missing.count = countTensors(named) - present;
    out.missing.first = firstMissing(named);
    return out;
  }

private:
  static std::string example(Spelling spelling) {
    return inQuotes(spellingExample(spelling));
  }

  /// Whether there is to be a head: a tied one may be missing.
  bool expectsHead() const {
    return !model_.tiedHead || isStored({TensorKind::kHead, 0, 0});
  }
  bool isStored(const TensorId &id) const {
    std::string name = storedName(spelling_, id);
    return !name.empty() && set_.tensors.count(name);
  }

  /// Messages of the first few, and no step beyond them.
  std::vector<std::string> firstMissing(const ModelConfig &named) const {
    std::vector<std::string> out;
    forEachTensor(named, [&](const TensorId &id) {
      if (!isStored(id) && (id.kind != TensorKind::kHead || expectsHead()))
        out.emplace_back(missing(id, storedName(spelling_, id)).message());
      return out.size() < Listing::kShown ? absl::OkStatus()
                                          : absl::CancelledError();
    }).IgnoreError(); // no more are wanted
    return out;
  }

  /// Moves a tensor from the stored ones to the found ones.
  absl::Status take(const TensorId &id) {
    std::string name = storedName(spelling_, id);
    auto it = set_.tensors.find(name);
    if (name.empty() || it == set_.tensors.end()) {
      if (id.kind == TensorKind::kHead && model_.tiedHead) {
        found_[id] = found_[{TensorKind::kTokenEmbedding, 0, 0}];
        return absl::OkStatus();
      }
      return missing(id, name);
    }
    if (absl::Status status = check(id, name, it->second); !status.ok())
      return status;
    if (!isStacked(spelling_, id.kind)) {
      found_[id] = std::move(it->second);
      set_.tensors.erase(it);
      return absl::OkStatus();
    }
    found_[id] = sliceOf(it->second, id.expert);
    if (id.expert + 1 == model_.numExperts)
      set_.tensors.erase(it);
    return absl::OkStatus();
  }

  absl::Status missing(const TensorId &id, const std::string &name) const {
    TensorShape shape = tensorShape(model_, id.kind);
    bool dense = id.kind == TensorKind::kDenseGate;
    if (name.empty())
      return absl::InvalidArgumentError(absl::StrCat(
          set_.directory, ": found tensors named like ", example(spelling_),
          id.kind == TensorKind::kHead
              ? ", which have no head of their own, but the config's head is "
                "not tied (tie_word_embeddings)"
              : absl::StrCat(", expected names like ",
                             example(Spelling::kSelfAttn),
                             " because the config has a residual dense MLP "
                             "(residual_moe)"),
          "; config and weights are of different models"));
    std::string remedy = "a file is missing or config and weights are of "
                         "different models";
    if (dense)
      remedy =
          "the config has a residual dense MLP (residual_moe), the weights "
          "must have it too";
    if (id.kind == TensorKind::kHead)
      remedy = "the config's head is not tied (tie_word_embeddings), so the "
               "weights must have one";
    if (id.kind == TensorKind::kRouter)
      remedy = "the config has no expert_routing, so experts are chosen by a "
               "learned router";
    return absl::NotFoundError(absl::StrCat(
        set_.directory, ": tensor '", name, "' (", tensorName(id),
        "): found nothing, expected ", shapeOf(id.kind, shape), "; ", remedy));
  }

  static bool isVector(TensorKind kind) {
    return kind == TensorKind::kFinalNorm || kind == TensorKind::kPreAttnNorm ||
           kind == TensorKind::kPostAttnNorm ||
           kind == TensorKind::kPreMoeNorm || kind == TensorKind::kPostMoeNorm;
  }
  std::vector<uint64_t> dimensions(TensorKind kind, TensorShape shape) const {
    if (isVector(kind))
      return {shape.columns};
    if (isStacked(spelling_, kind))
      return {model_.numExperts, shape.rows, shape.columns};
    return {shape.rows, shape.columns};
  }
  std::string shapeOf(TensorKind kind, TensorShape shape) const {
    return absl::StrCat("shape ", shapeText(dimensions(kind, shape)));
  }

  absl::Status check(const TensorId &id, const std::string &name,
                     const StoredTensor &tensor) const {
    TensorShape shape = tensorShape(model_, id.kind);
    std::string where =
        absl::StrCat(set_.files[tensor.parts[0].file].path(), ": tensor '",
                     name, "' (", tensorName(id), "): found ");
    if (tensor.shape != dimensions(id.kind, shape))
      return absl::InvalidArgumentError(
          absl::StrCat(where, foundShape(tensor), ", expected ",
                       shapeOf(id.kind, shape), shapeRemedy(tensor, shape)));
    if (tensor.coding == StoredTensor::Coding::kPlain &&
        tensor.type != ElementType::kF32 && tensor.type != ElementType::kF16 &&
        tensor.type != ElementType::kBF16)
      return absl::InvalidArgumentError(absl::StrCat(
          where, "element type ", std::string(elementName(tensor.type)),
          ", expected F32, F16 or BF16; convert the checkpoint"));
    return absl::OkStatus();
  }

  static std::string foundShape(const StoredTensor &tensor) {
    std::string text = absl::StrCat("shape ", shapeText(tensor.shape));
    if (!tensor.strides.empty())
      absl::StrAppend(&text, " (the file's, turned)");
    if (tensor.parts.size() > 1)
      absl::StrAppend(&text, " from ", tensor.parts.size(), " slices");
    return text;
  }
  /// Names are complete even when half of the ranks is missing: only the number
  /// of elements tells.
  static std::string shapeRemedy(const StoredTensor &tensor,
                                 TensorShape shape) {
    uint64_t split = tensor.parts.size() > 1 ? tensor.splitDimension : 0;
    uint64_t expected = split == 0 ? shape.rows : shape.columns;
    if (tensor.parts.size() > 1 && tensor.shape.size() == 2 &&
        tensor.shape[split] < expected &&
        tensor.shape[1 - split] == (split == 0 ? shape.columns : shape.rows))
      return absl::StrCat("; files of ranks ", tensor.parts.size(),
                          " and above are missing: download them");
    return "; config and weights are of different models";
  }

  absl::Status checkRest() const {
    const std::string *first = nullptr;
    size_t count = 0;
    for (const auto &[name, tensor] : set_.tensors)
      if (!isIgnoredTensor(name)) {
        first = first ? first : &name;
        ++count;
      }
    if (!first)
      return absl::OkStatus();
    const StoredTensor &tensor = set_.tensors.at(*first);
    return absl::InvalidArgumentError(absl::StrCat(
        set_.files[tensor.parts[0].file].path(), ": tensor ", inQuotes(*first),
        ": found", count > 1 ? absl::StrCat(" with ", count - 1, " more") : "",
        ", expected no such tensor ", reason(*first),
        "; config and weights are of different models"));
  }

  /// Why the model has no place for a stored tensor.
  std::string reason(std::string_view name) const {
    bool dense =
        name.find(".mlp.") != name.npos || name.ends_with(".ffn_gate.weight") ||
        name.ends_with(".ffn_up.weight") || name.ends_with(".ffn_down.weight");
    if (dense && model_.denseWidth == 0)
      return "because the config has no residual dense MLP (residual_moe)";
    if (model_.hash &&
        (name.ends_with(".gate.weight") || name.ends_with(".router.weight") ||
         name.ends_with(".ffn_gate_inp.weight") || name.ends_with("/router/w")))
      return "because the config routes by hash (expert_routing)";
    if (std::optional<Spelling> other = spellingOf(name);
        other && *other != spelling_)
      return absl::StrCat("beside names like ", example(spelling_));
    return absl::StrCat("in a model of ", model_.numLayers, " layers and ",
                        model_.numExperts, " experts");
  }

  FileSet &set_;
  const ModelConfig &model_;
  Spelling spelling_ = Spelling::kAttn;
  TensorMap found_;
};

} // namespace

std::optional<Spelling> detectSpelling(const FileSet &set) {
  std::array<size_t, kSpellings> count = {};
  for (const auto &[name, tensor] : set.tensors)
    if (std::optional<Spelling> spelling = spellingOf(name))
      ++count[size_t(*spelling)];
  auto best = std::ranges::max_element(count);
  if (*best == 0)
    return std::nullopt;
  return Spelling(best - count.begin());
}

Mismatches findMismatches(FileSet set, const ModelConfig &model) {
  return Matcher(set, model).mismatches();
}

absl::StatusOr<TensorMap> matchTensors(FileSet &set, const ModelConfig &model) {
  return Matcher(set, model).match();
}

} // namespace grok
