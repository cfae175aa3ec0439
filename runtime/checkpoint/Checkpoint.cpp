#include "runtime/checkpoint/Checkpoint.h"

#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/checkpoint/FileSet.h"
#include "runtime/checkpoint/GgufNumbers.h"
#include "runtime/checkpoint/ModelTensors.h"
#include "runtime/checkpoint/RowReader.h"
#include "runtime/checkpoint/TensorNames.h"

namespace grok {
namespace {

class CheckpointSource : public TensorSource {
public:
  CheckpointSource(FileSet &&set, TensorMap &&tensors, const ModelConfig &model)
      : reader_(std::move(set.files)), tensors_(std::move(tensors)),
        model_(model) {
    for (const auto &[id, tensor] : tensors_)
      turned_ |= id.kind != TensorKind::kRouter && !tensor.strides.empty() &&
                 tensor.strides.back() != 1;
  }

  /// The directory can be named in many ways, and its files say enough.
  std::string identity() const override {
    std::string text;
    for (const MappedFile &file : reader_.files())
      absl::StrAppend(&text, file.path().substr(file.path().rfind('/') + 1),
                      "\n", file.state().text(), "\n");
    return text;
  }
  absl::Status checkUnchanged() const override {
    for (const MappedFile &file : reader_.files())
      if (absl::Status status = file.state().checkUnchanged(file.path());
          !status.ok())
        return status;
    return absl::OkStatus();
  }
  bool wantsWholeMatrices() const override { return turned_; }

  void expect(const TensorId &id, uint32_t firstRow, uint32_t count) override {
    if (auto it = tensors_.find(id); it != tensors_.end())
      reader_.expect(it->second, firstRow, count);
  }

  absl::Status readRow(const TensorId &id, uint32_t row,
                       std::span<float> out) override {
    absl::StatusOr<const StoredTensor *> tensor = find(id, row, out.size());
    if (!tensor.ok())
      return tensor.status();
    return finiteScales(id, **tensor, row, reader_.read(**tensor, row, out));
  }

  absl::Status readRow16(const TensorId &id, uint32_t row, DType dtype,
                         std::span<uint16_t> out) override {
    absl::StatusOr<const StoredTensor *> tensor = find(id, row, out.size());
    if (!tensor.ok())
      return tensor.status();
    ElementType same =
        dtype == DType::kF16 ? ElementType::kF16 : ElementType::kBF16;
    if ((*tensor)->type != same ||
        (*tensor)->coding != StoredTensor::Coding::kPlain) {
      wide_.resize(out.size());
      absl::Status status =
          finiteScales(id, **tensor, row, reader_.read(**tensor, row, wide_));
      return status.ok()
                 ? placed(**tensor, roundRow(id, row, dtype, wide_, out))
                 : status;
    }
    reader_.readStored(**tensor, row, out);
    return absl::OkStatus();
  }

  absl::Status readCodes(const TensorId &id, uint32_t row, Quantization q,
                         std::span<uint8_t> codes, RowScales &scales,
                         QuantizationError &error) override {
    absl::StatusOr<const StoredTensor *> tensor = find(id, row, codes.size());
    if (!tensor.ok())
      return tensor.status();
    if (q == Quantization::kInt8 && RowReader::hasCodes(**tensor))
      return finiteScales(id, **tensor, row,
                          reader_.readCodes(**tensor, row, codes, scales));
    return placed(**tensor,
                  TensorSource::readCodes(id, row, q, codes, scales, error));
  }

private:
  absl::Status finiteScales(const TensorId &id, const StoredTensor &tensor,
                            uint32_t row,
                            const std::optional<BadScale> &bad) const {
    if (!bad)
      return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        reader_.path(tensor), ": tensor '", tensorName(id), "' [", row, ", ",
        bad->column, "]: found a ",
        bad->overflows ? "code whose product with its scale is beyond float32"
                       : "scale that is infinite or no number",
        ", expected a finite one; the file is damaged: download or export it "
        "again"));
  }

  /// An error with the tensor's file before it, unless that is there.
  absl::Status placed(const StoredTensor &tensor,
                      const absl::Status &status) const {
    const std::string &path = reader_.path(tensor);
    return status.ok() || absl::StartsWith(status.message(), path)
               ? status
               : absl::Status(status.code(),
                              absl::StrCat(path, ": ", status.message()));
  }

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

  RowReader reader_;
  std::vector<float> wide_;
  bool turned_ = false; // some matrices lie column by column
  TensorMap tensors_;
  ModelConfig model_;
};

/// A tied head that is stored nevertheless must be the embedding, bit by bit.
/// `headPlace`: its file and stored name.
absl::Status checkTiedHead(CheckpointSource &source, const ModelConfig &model,
                           const std::string &headPlace) {
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
          headPlace, " (head): found values in row ", row,
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
  FileSet set;
  if (absl::Status status = openFileSet(directory, set); !status.ok())
    return status;
  std::optional<Spelling> spelling = detectSpelling(set);
  absl::StatusOr<TensorMap> tensors = matchTensors(set, model);
  if (!tensors.ok())
    return tensors.status();
  noteNumbers(set, model);
  if (notes)
    *notes = set.notes;
  if (absl::Status status = checkNumbers(set, model); !status.ok())
    return status;
  const StoredTensor &head = tensors->at({TensorKind::kHead, 0, 0});
  const StoredTensor &embedding =
      tensors->at({TensorKind::kTokenEmbedding, 0, 0});
  bool storedTwice = model.tiedHead && (head.parts != embedding.parts ||
                                        head.strides != embedding.strides);
  std::string headPlace;
  if (storedTwice)
    headPlace =
        absl::StrCat(set.files[head.parts[0].file].path(), ": tensor '",
                     storedName(*spelling, {TensorKind::kHead, 0, 0}), "'");
  auto source = std::make_unique<CheckpointSource>(std::move(set),
                                                   *std::move(tensors), model);
  if (storedTwice)
    if (absl::Status status = checkTiedHead(*source, model, headPlace);
        !status.ok())
      return status;
  return source;
}

} // namespace grok
