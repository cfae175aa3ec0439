#include <algorithm>
#include <sys/stat.h>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/bundle/Bundle.h"
#include "runtime/bundle/FileIO.h"
#include "runtime/bundle/FileState.h"
#include "runtime/bundle/Fragment.h"
#include "runtime/bundle/Half.h"
#include "runtime/bundle/Manifest.h"
#include "runtime/bundle/PlanCheck.h"

namespace grok {
namespace {

/// Which streamed matrix holds a tensor, and at which row.
struct MatrixPlace {
  MatrixKind kind;
  uint32_t row;
};

/// The inverse of matrixRow, for the tensors that are parts of matrices.
MatrixPlace matrixPlace(const ModelConfig &m, TensorKind tensor, uint32_t row) {
  uint32_t dh = m.headDim, head = row / dh, r = row % dh;
  uint32_t paired = 2 * (r % (dh / 2)) + r / (dh / 2);
  switch (tensor) {
  case TensorKind::kQuery:
    return {MatrixKind::kQkv, head * dh + paired};
  case TensorKind::kKey:
    return {MatrixKind::kQkv, (m.numHeads + head) * dh + paired};
  case TensorKind::kValue:
    return {MatrixKind::kQkv, (m.numHeads + m.numKvHeads) * dh + row};
  case TensorKind::kAttnOut:
    return {MatrixKind::kAttnOut, row};
  case TensorKind::kExpertGate:
    return {MatrixKind::kGateUp, 2 * row};
  case TensorKind::kExpertUp:
    return {MatrixKind::kGateUp, 2 * row + 1};
  case TensorKind::kExpertDown:
    return {MatrixKind::kDown, row};
  case TensorKind::kDenseGate:
    return {MatrixKind::kDenseGateUp, 2 * row};
  case TensorKind::kDenseUp:
    return {MatrixKind::kDenseGateUp, 2 * row + 1};
  case TensorKind::kDenseDown:
    return {MatrixKind::kDenseDown, row};
  default: // the head; the embedding when it is tied
    return {MatrixKind::kHead, row};
  }
}

/// Index among a layer's vectors of D floats, or -1 for other tensors.
int vectorIndex(TensorKind kind) {
  switch (kind) {
  case TensorKind::kPreAttnNorm:
    return 0;
  case TensorKind::kPostAttnNorm:
    return 1;
  case TensorKind::kPreMoeNorm:
    return 2;
  case TensorKind::kPostMoeNorm:
    return 3;
  case TensorKind::kRouter:
    return 4;
  default:
    return -1;
  }
}

class BundleSource : public TensorSource {
public:
  explicit BundleSource(std::shared_ptr<Bundle> bundle)
      : bundle_(std::move(bundle)) {
    const PlanTables &plan = bundle_->plan();
    owners_.resize(plan.matrices.size());
    for (size_t i = 0; i < plan.matrices.size(); ++i) {
      for (uint32_t s = 0; s < plan.slots; ++s)
        if (plan.matrices[i].slots[s].tileCount)
          owners_[i].push_back({plan.matrices[i].slots[s].tileBegin, s});
      std::sort(owners_[i].begin(), owners_[i].end());
    }
    struct stat info;
    if (::stat(blobPath().c_str(), &info) == 0)
      blobState_ = FileState(info);
  }

  std::string identity() const override {
    return absl::StrCat("blob ",
                        bundle_->manifest().files.at(kBlobFile).sha256);
  }

  absl::Status checkUnchanged() const override {
    return blobState_.checkUnchanged(blobPath());
  }

  absl::Status readRow(const TensorId &id, uint32_t row,
                       std::span<float> out) override {
    if (absl::Status status = check(id, row, out.size()); !status.ok())
      return status;
    if (const uint8_t *floats = vectorAt(id, row)) {
      std::memcpy(out.data(), floats, out.size_bytes());
      return absl::OkStatus();
    }
    if (isQuantized(id)) {
      codes_.resize(out.size());
      RowScales scales;
      if (absl::Status status = readStored(id, row, codes_, &scales);
          !status.ok())
        return status;
      dequantizeRow(bundle_->plan().quantization, codes_, scales, out);
      return absl::OkStatus();
    }
    half_.resize(out.size());
    if (absl::Status status = readStored(id, row, bytesOf(half_)); !status.ok())
      return status;
    halfToFloat(bundle_->plan().dtype, half_, out.data());
    return absl::OkStatus();
  }

  absl::Status readRow16(const TensorId &id, uint32_t row, DType dtype,
                         std::span<uint16_t> out) override {
    if (absl::Status status = check(id, row, out.size()); !status.ok())
      return status;
    if (dtype == bundle_->plan().dtype && !vectorAt(id, row) &&
        !isQuantized(id))
      return readStored(id, row, bytesOf(out));
    return TensorSource::readRow16(id, row, dtype, out);
  }

  absl::Status readCodes(const TensorId &id, uint32_t row, Quantization q,
                         std::span<uint8_t> codes, RowScales &scales,
                         QuantizationError &error) override {
    if (absl::Status status = check(id, row, codes.size()); !status.ok())
      return status;
    if (q == bundle_->plan().quantization && isQuantized(id))
      return readStored(id, row, codes, &scales);
    return TensorSource::readCodes(id, row, q, codes, scales, error);
  }

private:
  std::string blobPath() const {
    return absl::StrCat(bundle_->path(), "/", kBlobFile);
  }

  absl::Status check(const TensorId &id, uint32_t row, size_t columns) {
    if (bundle_->blob().empty())
      return absl::FailedPreconditionError(absl::StrCat(
          bundle_->path(), ": found no weights in the bundle, expected "
                           "weights.blob; fill it in with grokrun pack"));
    const ModelConfig &model = bundle_->model();
    TensorShape shape = tensorShape(model, id.kind);
    bool there = row < shape.rows && columns == shape.columns &&
                 id.layer < model.numLayers && id.expert < model.numExperts;
    if (!there || (id.kind == TensorKind::kRouter && model.hash))
      return absl::InternalError(
          absl::StrCat("tensor '", tensorName(id), "': row ", row, " of ",
                       columns, " columns asked of a [", shape.rows, ", ",
                       shape.columns, "] tensor"));
    limitPages(columns * 2);
    return absl::OkStatus();
  }

  /// Where a float32 row lies; null for the 16-bit tensors.
  const uint8_t *vectorAt(const TensorId &id, uint32_t row) const {
    const PlanTables &plan = bundle_->plan();
    uint64_t rowBytes = uint64_t(bundle_->model().hiddenSize) * sizeof(float);
    const uint8_t *vectors = bundle_->blob().data() + plan.vectorsOffset;
    if (id.kind == TensorKind::kFinalNorm)
      return vectors + bundle_->model().numLayers * plan.vectorsLayerBytes;
    int index = vectorIndex(id.kind);
    if (index < 0)
      return nullptr;
    return vectors + id.layer * plan.vectorsLayerBytes +
           (uint64_t(index) + row) * rowBytes;
  }

  static std::span<uint8_t> bytesOf(std::span<uint16_t> halves) {
    return {reinterpret_cast<uint8_t *>(halves.data()), halves.size_bytes()};
  }

  /// Vectors and an untied embedding never are.
  bool isQuantized(const TensorId &id) const {
    return bundle_->plan().quantization != Quantization::kNone &&
           (id.kind != TensorKind::kTokenEmbedding ||
            bundle_->model().tiedHead) &&
           !vectorAt(id, 0);
  }

  /// The stored bytes of a row of 16-bit elements, or of codes, whose scales
  /// are wanted then.
  absl::Status readStored(const TensorId &id, uint32_t row,
                          std::span<uint8_t> out, RowScales *scales = nullptr) {
    const ModelConfig &model = bundle_->model();
    if (id.kind == TensorKind::kTokenEmbedding && !model.tiedHead)
      return readEmbedding(row, out);
    MatrixPlace place = matrixPlace(model, id.kind, row);
    const PlanTables &plan = bundle_->plan();
    const PlanMatrix *matrix = plan.findMatrix(place.kind, id.expert);
    if (!matrix)
      return absl::NotFoundError(absl::StrCat(
          bundle_->path(), ": found no tensor '", tensorName(id),
          "', expected it for this plan; the bundle was compiled without "
          "this expert, compile from the checkpoint instead"));
    readMatrixRow(*matrix, place.row, id.layer, out, scales);
    return absl::OkStatus();
  }

  void readMatrixRow(const PlanMatrix &matrix, uint32_t row, uint32_t layer,
                     std::span<uint8_t> out, RowScales *scales) const {
    const PlanTables &plan = bundle_->plan();
    const Quantization q = plan.quantization;
    const uint32_t rowBytes = fragmentRowBytes(q),
                   k = uint32_t(out.size() / elementBytes(q));
    uint32_t tile = row / kTileRows;
    const SlotExtent &extent =
        ownerOf(size_t(&matrix - plan.matrices.data()), tile);
    uint64_t offset = extent.offset;
    if (isPerLayer(matrix.kind))
      offset += layer * plan.banks[extent.bank].layerStride;
    const uint8_t *base = bundle_->blob().data() + offset;
    tile -= extent.tileBegin;
    if (scales)
      std::memcpy(scales->data(),
                  base + rowScaleOffset(q, row - extent.tileBegin * kTileRows,
                                        matrix.steps),
                  sizeof(*scales));
    for (uint32_t block = 0; block < matrix.steps; block += plan.blockSteps) {
      const uint8_t *from = base +
                            fragmentOffset(q, tile, block, extent.tileCount,
                                           matrix.steps, plan.blockSteps) +
                            row % kTileRows * rowBytes;
      uint32_t end = std::min(matrix.steps, block + plan.blockSteps);
      for (uint32_t step = block; step < end; ++step, from += fragmentBytes(q))
        copyFragmentRow(q, from,
                        out.subspan(size_t(streamedInput(q, k, step * kTileK)) *
                                    elementBytes(q)));
    }
  }

  /// The first 32 elements of `out`, or all if there are fewer: the rest of the
  /// fragment is padding.
  static void copyFragmentRow(Quantization q, const uint8_t *from,
                              std::span<uint8_t> out) {
    uint8_t elements[fragmentRowBytes(Quantization::kNone)];
    if (q == Quantization::kNone)
      permuteFragmentRow(from, elements);
    else
      permuteCodesFromFragment(from, elements);
    std::memcpy(out.data(), elements,
                std::min<size_t>(out.size(), fragmentRowBytes(q)));
  }

  const SlotExtent &ownerOf(size_t matrix, uint32_t tile) const {
    const auto &owners = owners_[matrix];
    auto after = std::upper_bound(
        owners.begin(), owners.end(), tile,
        [](uint32_t t, const Owner &owner) { return t < owner.tileBegin; });
    return bundle_->plan().matrices[matrix].slots[std::prev(after)->slot];
  }

  absl::Status readEmbedding(uint32_t row, std::span<uint8_t> out) const {
    for (const EmbeddingExtent &extent : bundle_->plan().embedding) {
      if (row < extent.rowBegin || row - extent.rowBegin >= extent.rowCount)
        continue;
      std::memcpy(out.data(),
                  bundle_->blob().data() + extent.offset +
                      uint64_t(row - extent.rowBegin) * out.size(),
                  out.size());
      return absl::OkStatus();
    }
    return absl::InternalError(
        absl::StrCat("no slot holds row ", row, " of the embedding"));
  }

  /// A mapping's pages count as the process's memory until they are released.
  void limitPages(uint64_t bytes) {
    constexpr uint64_t kWindow = 64 << 20;
    bytesRead_ += bytes;
    if (bytesRead_ < kWindow)
      return;
    releasePages(bundle_->blob());
    bytesRead_ = 0;
  }

  struct Owner {
    uint32_t tileBegin, slot;
    bool operator<(const Owner &other) const {
      return tileBegin < other.tileBegin;
    }
  };

  std::shared_ptr<Bundle> bundle_;
  FileState blobState_;
  std::vector<std::vector<Owner>> owners_; // per matrix, by tile
  std::vector<uint16_t> half_;
  std::vector<uint8_t> codes_;
  uint64_t bytesRead_ = 0;
};

} // namespace

std::unique_ptr<TensorSource> bundleSource(std::shared_ptr<Bundle> bundle) {
  return std::make_unique<BundleSource>(std::move(bundle));
}

} // namespace grok
