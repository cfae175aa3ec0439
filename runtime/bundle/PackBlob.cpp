#include "runtime/bundle/PackBlob.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/bundle/BlobWalk.h"
#include "runtime/bundle/Bundle.h"
#include "runtime/bundle/Fragment.h"
#include "runtime/bundle/PlanCheck.h"

namespace grok {
namespace {

/// Bytes of the blob that are announced to the source ahead of those that are
/// packed: enough to keep a disk busy.
constexpr uint64_t kAheadBytes = uint64_t(64) << 20;

/// Packs the parts of a blob. It holds one group of tiles at a time.
class PartPacker {
public:
  PartPacker(const ModelConfig &model, const PlanTables &plan,
             TensorSource &source, const PartSink &sink)
      : model_(model), plan_(plan), source_(source), sink_(sink) {}

  /// Of everything that was quantised so far.
  const QuantizationError &error() const { return error_; }

  /// Announces to the source what packPart will read, vectors aside.
  void expect(const BlobPart &part) const {
    if (part.kind == BlobPart::Kind::kEmbedding) {
      const EmbeddingExtent &extent = plan_.embedding[part.slot];
      source_.expect({TensorKind::kTokenEmbedding, 0, 0}, extent.rowBegin,
                     extent.rowCount);
    }
    if (part.kind != BlobPart::Kind::kExtent)
      return;
    const PlanMatrix &matrix = plan_.matrices[part.matrix];
    const SlotExtent &extent = matrix.slots[part.slot];
    uint32_t begin = extent.tileBegin * kTileRows,
             end = std::min(begin + extent.tileCount * kTileRows,
                            matrixShape(model_, matrix.kind).rows);
    // Of each tensor one range: all of it is read, heads that RoPE pairs aside.
    std::map<TensorKind, std::pair<uint32_t, uint32_t>> ranges;
    for (uint32_t row = begin; row < end; ++row) {
      TensorRow from = sourceRow(matrix, row);
      auto &[first, last] =
          ranges.try_emplace(from.tensor, from.row, from.row).first->second;
      first = std::min(first, from.row);
      last = std::max(last, from.row);
    }
    for (const auto &[tensor, range] : ranges)
      source_.expect(tensorId(matrix, tensor, part.layer), range.first,
                     range.second - range.first + 1);
  }

  absl::Status packPart(const BlobPart &part) {
    at_ = part.offset;
    switch (part.kind) {
    case BlobPart::Kind::kExtent:
      return packExtent(plan_.matrices[part.matrix],
                        plan_.matrices[part.matrix].slots[part.slot],
                        part.layer);
    case BlobPart::Kind::kEmbedding:
      return packEmbedding(plan_.embedding[part.slot]);
    case BlobPart::Kind::kVectors:
      return packVectors();
    }
    return absl::InternalError("a blob part of an unknown kind");
  }

private:
  absl::Status emit(std::span<const uint8_t> bytes) {
    uint64_t offset = at_;
    at_ += bytes.size();
    return sink_(offset, bytes);
  }
  template <typename T> absl::Status emit(const std::vector<T> &values) {
    return emit({reinterpret_cast<const uint8_t *>(values.data()),
                 values.size() * sizeof(T)});
  }

  absl::Status padTo(uint64_t offset) {
    static constexpr uint8_t kZeros[65536] = {};
    while (at_ < offset) {
      auto bytes = std::min<uint64_t>(offset - at_, sizeof(kZeros));
      if (absl::Status status = emit({kZeros, size_t(bytes)}); !status.ok())
        return status;
    }
    return absl::OkStatus();
  }

  TensorRow sourceRow(const PlanMatrix &matrix, uint32_t row) const {
    TensorRow from = matrixRow(model_, matrix.kind, row);
    if (model_.tiedHead && from.tensor == TensorKind::kHead)
      from.tensor = TensorKind::kTokenEmbedding;
    return from;
  }

  static TensorId tensorId(const PlanMatrix &matrix, TensorKind tensor,
                           uint32_t layer) {
    return {tensor, isPerLayer(matrix.kind) ? layer : 0, matrix.expert};
  }

  absl::Status packExtent(const PlanMatrix &matrix, const SlotExtent &extent,
                          uint32_t layer) {
    MatrixShape shape = matrixShape(model_, matrix.kind);
    const Quantization q = plan_.quantization;
    // Padding of k stays zero.
    row_.assign(uint64_t(matrix.steps) * kTileK, 0);
    codes_.assign(row_.size(), 0);
    for (uint32_t first = 0; first < extent.tileCount; first += kGroupTiles) {
      uint32_t tiles = std::min(extent.tileCount - first, kGroupTiles);
      group_.assign(extentBytes(q, tiles, matrix.steps), 0);
      uint32_t begin = (extent.tileBegin + first) * kTileRows;
      for (uint32_t r = 0; r < tiles * kTileRows; ++r)
        if (absl::Status status =
                packRow(matrix, shape, begin + r, layer, tiles, r);
            !status.ok())
          return status;
      if (absl::Status status = emit(group_); !status.ok())
        return status;
    }
    return absl::OkStatus();
  }

  /// Row `r` of the group of `tiles` tiles in group_: row `row` of the matrix,
  /// zeros past its end.
  absl::Status packRow(const PlanMatrix &matrix, const MatrixShape &shape,
                       uint32_t row, uint32_t layer, uint32_t tiles,
                       uint32_t r) {
    if (row >= shape.rows)
      return absl::OkStatus();
    TensorRow from = sourceRow(matrix, row);
    TensorId id = tensorId(matrix, from.tensor, layer);
    const Quantization q = plan_.quantization;
    if (q == Quantization::kNone) {
      absl::Status status = source_.readRow16(id, from.row, plan_.dtype,
                                              std::span(row_).first(shape.k));
      if (status.ok())
        forEachFragmentRow(matrix, tiles, r, [&](uint32_t step, uint8_t *to) {
          permuteFragmentRow(row_.data() + uint64_t(step) * kTileK, to);
        });
      return status;
    }
    RowScales scales;
    absl::Status status = source_.readCodes(
        id, from.row, q, std::span(codes_).first(shape.k), scales, error_);
    if (!status.ok())
      return status;
    std::memcpy(group_.data() + rowScaleOffset(q, r, matrix.steps),
                scales.data(), sizeof(scales));
    forEachFragmentRow(matrix, tiles, r, [&](uint32_t step, uint8_t *to) {
      uint32_t first = streamedInput(q, shape.k, step * kTileK);
      permuteCodesToFragment(codes_.data() + first, to);
    });
    return absl::OkStatus();
  }

  /// Calls `pack(step, to)` with the place in group_ of every fragment's part
  /// of row `r`.
  template <typename Pack>
  void forEachFragmentRow(const PlanMatrix &matrix, uint32_t tiles, uint32_t r,
                          const Pack &pack) {
    const Quantization q = plan_.quantization;
    for (uint32_t block = 0; block < matrix.steps; block += plan_.blockSteps) {
      uint32_t end = std::min(matrix.steps, block + plan_.blockSteps);
      uint8_t *to = group_.data() +
                    fragmentOffset(q, r / kTileRows, block, tiles, matrix.steps,
                                   plan_.blockSteps) +
                    r % kTileRows * fragmentRowBytes(q);
      for (uint32_t step = block; step < end; ++step, to += fragmentBytes(q))
        pack(step, to);
    }
  }

  absl::Status packEmbedding(const EmbeddingExtent &extent) {
    row_.resize(model_.hiddenSize);
    for (uint32_t r = 0; r < extent.rowCount; ++r) {
      if (absl::Status status =
              source_.readRow16({TensorKind::kTokenEmbedding, 0, 0},
                                extent.rowBegin + r, plan_.dtype, row_);
          !status.ok())
        return status;
      if (absl::Status status = emit(row_); !status.ok())
        return status;
    }
    return absl::OkStatus();
  }

  absl::Status packVector(TensorKind kind, uint32_t layer, uint32_t row) {
    vector_.resize(model_.hiddenSize);
    if (absl::Status status = source_.readRow({kind, layer, 0}, row, vector_);
        !status.ok())
      return status;
    return emit(vector_);
  }

  absl::Status packVectors() {
    for (uint32_t layer = 0; layer < model_.numLayers; ++layer) {
      for (TensorKind kind :
           {TensorKind::kPreAttnNorm, TensorKind::kPostAttnNorm,
            TensorKind::kPreMoeNorm, TensorKind::kPostMoeNorm})
        if (absl::Status status = packVector(kind, layer, 0); !status.ok())
          return status;
      for (uint32_t e = 0; e < (model_.hash ? 0 : model_.numExperts); ++e)
        if (absl::Status status = packVector(TensorKind::kRouter, layer, e);
            !status.ok())
          return status;
      if (absl::Status status = padTo(plan_.vectorsOffset +
                                      (layer + 1) * plan_.vectorsLayerBytes);
          !status.ok())
        return status;
    }
    return packVector(TensorKind::kFinalNorm, 0, 0);
  }

  const ModelConfig &model_;
  const PlanTables &plan_;
  TensorSource &source_;
  const PartSink &sink_;
  QuantizationError error_;
  uint64_t at_ = 0; // where the next byte goes
  std::vector<uint16_t> row_;
  std::vector<uint8_t> codes_;
  std::vector<uint8_t> group_;
  std::vector<float> vector_;
};

} // namespace

std::vector<BlobPart> packingOrder(const ModelConfig &model,
                                   const PlanTables &plan, bool wholeMatrices) {
  std::vector<BlobPart> parts;
  forEachBlobPart(model, plan, [&](const BlobPart &part) {
    parts.push_back(part);
    return absl::OkStatus();
  }).IgnoreError(); // the visit does not fail
  if (!wholeMatrices)
    return parts;
  auto place = [&](const BlobPart &part) {
    bool layered = part.kind == BlobPart::Kind::kExtent &&
                   isPerLayer(plan.matrices[part.matrix].kind);
    return std::tuple(!layered, part.layer, part.kind, part.matrix, part.slot);
  };
  std::ranges::sort(parts, {}, place);
  return parts;
}

absl::StatusOr<QuantizationError>
packParts(const ModelConfig &model, const PlanTables &plan,
          TensorSource &weights, std::span<const BlobPart> parts,
          const PartSink &sink,
          const std::function<absl::Status(size_t)> &done) {
  PartPacker packer(model, plan, weights, sink);
  size_t announced = 0;
  uint64_t ahead = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    for (; announced < parts.size() && ahead < kAheadBytes; ++announced) {
      packer.expect(parts[announced]);
      ahead += parts[announced].bytes;
    }
    ahead -= parts[i].bytes;
    absl::Status status = packer.packPart(parts[i]);
    if (status.ok() && done)
      status = done(i + 1);
    if (!status.ok())
      return status;
  }
  return packer.error();
}

absl::Status
packBlob(const ModelConfig &model, const PlanTables &plan,
         TensorSource &weights,
         const std::function<absl::Status(std::span<const uint8_t>)> &sink) {
  if (absl::Status status = checkPlan(plan, model, "plan"); !status.ok())
    return status;
  uint64_t at = 0;
  auto padTo = [&](uint64_t offset) {
    static constexpr uint8_t kZeros[65536] = {};
    absl::Status status;
    for (uint64_t step; at < offset && status.ok(); at += step) {
      step = std::min<uint64_t>(offset - at, sizeof kZeros);
      status = sink({kZeros, size_t(step)});
    }
    return status;
  };
  auto place = [&](uint64_t offset, std::span<const uint8_t> bytes) {
    if (absl::Status status = padTo(offset); !status.ok())
      return status;
    at += bytes.size();
    return sink(bytes);
  };
  absl::Status status =
      packParts(model, plan, weights, packingOrder(model, plan, false), place)
          .status();
  return status.ok() ? padTo(plan.blobBytes) : status;
}

} // namespace grok
