#include "runtime/checkpoint/Survey.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "runtime/checkpoint/FileSet.h"
#include "runtime/checkpoint/GgufNumbers.h"

namespace grok {
namespace {

/// Reads a model's shapes off its tensors.
class Inference {
public:
  Inference(const FileSet &set, Spelling spelling)
      : set_(set), spelling_(spelling) {}

  ModelConfig infer() const {
    ModelConfig m;
    auto [vocabulary, width] = shapeOf(TensorKind::kTokenEmbedding);
    m.vocabSize = vocabulary;
    m.hiddenSize = width;
    m.numLayers = countNumbers(TensorKind::kQuery, &TensorId::layer);
    bool stacked = isStacked(spelling_, TensorKind::kExpertGate);
    const StoredTensor *gate = find({TensorKind::kExpertGate, 0, 0});
    if (stacked)
      m.numExperts = gate && gate->shape.size() == 3
                         ? uint32_t(std::min(gate->shape[0], kMaxExperts))
                         : 0;
    else
      m.numExperts = countNumbers(TensorKind::kExpertGate, &TensorId::expert);
    m.expertWidth = shapeOf(TensorKind::kExpertGate).first;
    m.headDim = 1;
    m.numHeads = shapeOf(TensorKind::kQuery).first;
    m.numKvHeads = shapeOf(TensorKind::kKey).first;
    m.denseWidth = shapeOf(TensorKind::kDenseGate).first;
    m.tiedHead = !find({TensorKind::kHead, 0, 0});
    if (!find({TensorKind::kRouter, 0, 0}))
      m.hash = HashRouting{};
    return m;
  }

private:
  const StoredTensor *find(const TensorId &id) const {
    auto it = set_.tensors.find(storedName(spelling_, id));
    return it == set_.tensors.end() ? nullptr : &it->second;
  }
  /// Rows and columns of the first of a kind; 0 if there is none.
  std::pair<uint32_t, uint32_t> shapeOf(TensorKind kind) const {
    const StoredTensor *tensor = find({kind, 0, 0});
    if (!tensor || tensor->shape.size() < 2)
      return {0, 0};
    size_t rank = tensor->shape.size();
    return {uint32_t(tensor->shape[rank - 2]),
            uint32_t(tensor->shape[rank - 1])};
  }
  /// One more than the last number that names of the kind have, so that gaps
  /// show; but what is far from the others is none of them.
  uint32_t countNumbers(TensorKind kind, uint32_t TensorId::*number) const {
    std::set<uint32_t> numbers;
    for (const auto &[name, tensor] : set_.tensors)
      if (std::optional<TensorId> id = storedId(spelling_, name);
          id && id->kind == kind)
        numbers.insert(*id.*number);
    uint32_t end = 0;
    for (uint32_t i : numbers)
      if (i - end < kMaxGap)
        end = i + 1;
    return end;
  }
  static constexpr uint32_t kMaxGap = 1024;
  static constexpr uint64_t kMaxExperts = 65535; // a config's limit

  const FileSet &set_;
  Spelling spelling_;
};

uint64_t bytesOf(const StoredTensor &tensor) {
  uint64_t elements = 1, rows = 1;
  for (uint64_t size : tensor.shape) {
    rows = elements;
    elements *= size;
  }
  uint64_t bytes = storedBytes(tensor, elements);
  if (tensor.coding == StoredTensor::Coding::kScaled)
    bytes += rows * tensor.scaleBlocks * sizeof(uint16_t);
  return bytes;
}

} // namespace

absl::StatusOr<Survey> surveyCheckpoint(const std::string &path,
                                        const ModelConfig *model) {
  FileSet set;
  Survey survey;
  survey.unreadable = openFileSet(path, set);
  if (!survey.unreadable.ok() && set.layout.empty())
    return survey.unreadable;
  survey.place = set.directory;
  survey.layout = set.layout;
  survey.spelling = detectSpelling(set);
  survey.files = set.files.size();
  survey.misplaced = set.misplaced;
  if (!set.tensors.empty())
    survey.firstName = set.tensors.begin()->first;
  for (const auto &[name, tensor] : set.tensors)
    for (Survey::Amount *amount :
         {&survey.all, &survey.types[codingName(tensor)]}) {
      ++amount->tensors;
      amount->bytes += bytesOf(tensor);
    }
  if (model)
    survey.model = *model;
  else if (survey.spelling)
    survey.model = Inference(set, *survey.spelling).infer();
  if (model) {
    survey.contradiction = checkNumbers(set, *model);
    noteNumbers(set, *model);
  }
  survey.notes = set.notes;
  if (survey.spelling)
    survey.mismatches = findMismatches(std::move(set), survey.model);
  return survey;
}

} // namespace grok
