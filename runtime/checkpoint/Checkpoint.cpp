#include "runtime/checkpoint/Checkpoint.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/bundle/Half.h"
#include "runtime/checkpoint/FileSet.h"
#include "runtime/checkpoint/ModelTensors.h"

namespace grok {
namespace {

size_t elementBytes(ElementType type) { return elementBits(type) / 8; }

/// A contiguous piece of a row.
struct Piece {
  uint32_t file;
  uint64_t offset, elements;
};

/// The stored elements of a row, in order. The data may lie at any address.
template <typename Visit>
void forEachPiece(const StoredTensor &tensor, uint64_t row, uint64_t columns,
                  Visit visit) {
  uint64_t bytes = elementBytes(tensor.type), parts = tensor.parts.size();
  if (tensor.splitDimension == 1) {
    uint64_t width = columns / parts;
    for (const StoredTensor::Part &part : tensor.parts)
      visit(Piece{part.file, part.offset + row * width * bytes, width});
    return;
  }
  uint64_t rows = tensor.shape.size() == 2 ? tensor.shape[0] / parts : 1;
  const StoredTensor::Part &part = tensor.parts[row / rows];
  visit(Piece{part.file, part.offset + row % rows * columns * bytes, columns});
}

void convert(ElementType type, const uint8_t *in, size_t count, float *out) {
  if (type == ElementType::kF32) {
    std::memcpy(out, in, count * 4);
    return;
  }
  DType half = type == ElementType::kF16 ? DType::kF16 : DType::kBF16;
  std::array<uint16_t, 512> aligned;
  for (size_t done = 0; done < count;) {
    size_t step = std::min(aligned.size(), count - done);
    std::memcpy(aligned.data(), in + done * 2, step * 2);
    halfToFloat(half, std::span(aligned.data(), step), out + done);
    done += step;
  }
}

class CheckpointSource : public TensorSource {
public:
  CheckpointSource(FileSet &&set, TensorMap &&tensors, const ModelConfig &model)
      : files_(std::move(set.files)), directory_(std::move(set.directory)),
        tensors_(std::move(tensors)), model_(model) {}

  absl::Status readRow(const TensorId &id, uint32_t row,
                       std::span<float> out) override {
    absl::StatusOr<const StoredTensor *> tensor = find(id, row, out.size());
    if (!tensor.ok())
      return tensor.status();
    float *next = out.data();
    forEachPiece(**tensor, row, out.size(), [&](const Piece &piece) {
      convert((*tensor)->type, touch(piece, (*tensor)->type), piece.elements,
              next);
      next += piece.elements;
    });
    return absl::OkStatus();
  }

  absl::Status readRow16(const TensorId &id, uint32_t row, DType dtype,
                         std::span<uint16_t> out) override {
    absl::StatusOr<const StoredTensor *> tensor = find(id, row, out.size());
    if (!tensor.ok())
      return tensor.status();
    ElementType same =
        dtype == DType::kF16 ? ElementType::kF16 : ElementType::kBF16;
    if ((*tensor)->type != same) {
      absl::Status status = TensorSource::readRow16(id, row, dtype, out);
      return status.ok()
                 ? status
                 : absl::Status(status.code(), absl::StrCat(directory_, ": ",
                                                            status.message()));
    }
    uint16_t *next = out.data();
    forEachPiece(**tensor, row, out.size(), [&](const Piece &piece) {
      std::memcpy(next, touch(piece, same), piece.elements * 2);
      next += piece.elements;
    });
    return absl::OkStatus();
  }

private:
  /// Bytes that may be touched before the pages are given back. A page fault
  /// maps up to kFaultBytes around it, which a read is charged for unless it
  /// continues the one before.
  static constexpr uint64_t kWindowBytes = uint64_t(256) << 20;
  static constexpr uint64_t kFaultBytes = uint64_t(64) << 10;

  absl::StatusOr<const StoredTensor *> find(const TensorId &id, uint32_t row,
                                            size_t columns) const {
    auto it = tensors_.find(id);
    if (it == tensors_.end())
      return absl::InternalError(
          absl::StrCat("tensor '", tensorName(id), "' is not in the model"));
    TensorShape shape = tensorShape(model_, id.kind);
    if (row >= shape.rows || columns != shape.columns)
      return absl::InternalError(
          absl::StrCat("tensor '", tensorName(id), "': row ", row, " of ",
                       columns, " elements was asked for, the shape is [",
                       shape.rows, ", ", shape.columns, "]"));
    return &it->second;
  }

  const uint8_t *touch(const Piece &piece, ElementType type) {
    uint64_t bytes = piece.elements * elementBytes(type);
    bool continues = piece.file == lastFile_ && piece.offset == lastEnd_;
    touched_ += bytes + (continues ? 0 : kFaultBytes);
    lastFile_ = piece.file;
    lastEnd_ = piece.offset + bytes;
    if (touched_ > kWindowBytes) {
      touched_ = 0;
      for (const MappedFile &file : files_)
        file.evict();
    }
    return files_[piece.file].bytes().data() + piece.offset;
  }

  std::vector<MappedFile> files_;
  std::string directory_;
  TensorMap tensors_;
  ModelConfig model_;
  uint64_t touched_ = 0, lastEnd_ = 0;
  uint32_t lastFile_ = UINT32_MAX;
};

/// A tied head that is stored nevertheless must be the embedding, bit by bit.
absl::Status checkTiedHead(CheckpointSource &source, const ModelConfig &model,
                           const std::string &directory) {
  std::vector<float> embedding(model.hiddenSize), head(model.hiddenSize);
  for (uint32_t row = 0; row < model.vocabSize; ++row) {
    absl::Status status =
        source.readRow({TensorKind::kTokenEmbedding, 0, 0}, row, embedding);
    if (status.ok())
      status = source.readRow({TensorKind::kHead, 0, 0}, row, head);
    if (!status.ok())
      return status;
    if (std::memcmp(embedding.data(), head.data(), head.size() * 4) != 0)
      return absl::InvalidArgumentError(absl::StrCat(
          directory, ": tensor 'lm_head.weight': found values in row ", row,
          " that differ from the embedding's, expected the same because the "
          "config's head is tied; set tie_word_embeddings to false if the "
          "model "
          "has a head of its own"));
  }
  return absl::OkStatus();
}

} // namespace

absl::StatusOr<std::unique_ptr<TensorSource>>
openCheckpoint(const std::string &directory, const ModelConfig &model,
               std::vector<std::string> *notes) {
  absl::StatusOr<FileSet> set = openFileSet(directory);
  if (!set.ok())
    return set.status();
  absl::StatusOr<TensorMap> tensors = matchTensors(*set, model);
  if (!tensors.ok())
    return tensors.status();
  if (notes)
    *notes = set->notes;
  const StoredTensor &head = tensors->at({TensorKind::kHead, 0, 0});
  const StoredTensor &embedding =
      tensors->at({TensorKind::kTokenEmbedding, 0, 0});
  bool storedTwice = model.tiedHead && head.parts != embedding.parts;
  std::string place = set->directory;
  auto source = std::make_unique<CheckpointSource>(*std::move(set),
                                                   *std::move(tensors), model);
  if (storedTwice)
    if (absl::Status status = checkTiedHead(*source, model, place);
        !status.ok())
      return status;
  return source;
}

} // namespace grok
