#include "test/unit/common/HandPlan.h"

#include <algorithm>

#include "runtime/bundle/Bundle.h"

namespace grok::test {
namespace {

class Builder {
public:
  Builder(const ModelConfig &model, const HandPlanOptions &options)
      : m_(model) {
    p_.slots = options.slots;
    p_.maxBatch = options.maxBatch;
    p_.maxSeq =
        options.maxSeq ? options.maxSeq : std::min(model.maxPositions, 1024u);
    p_.dtype = options.dtype;
    p_.blockSteps = options.blockSteps;
    p_.experts.assign(model.numExperts, PlanTables::Expert::kKept);
    for (uint32_t e : options.dropped)
      p_.experts[e] = PlanTables::Expert::kPruned;
  }

  PlanTables build() {
    addMatrix(MatrixKind::kQkv);
    addMatrix(MatrixKind::kAttnOut);
    addMlp(MatrixKind::kGateUp, MatrixKind::kDenseGateUp);
    addMlp(MatrixKind::kDown, MatrixKind::kDenseDown);
    uint64_t layerBytes = at_;
    at_ = layerBytes * m_.numLayers;
    addMatrix(MatrixKind::kHead);
    addEmbedding();
    p_.vectorsOffset = at_;
    p_.vectorsLayerBytes = (uint64_t(4) + (m_.hash ? 0 : m_.numExperts)) *
                           m_.hiddenSize * sizeof(float);
    at_ = alignUp(at_ + m_.numLayers * p_.vectorsLayerBytes +
                      m_.hiddenSize * sizeof(float),
                  256);
    p_.banks = {{0, at_, at_, layerBytes}};
    p_.blobBytes = at_;
    addKv();
    return std::move(p_);
  }

private:
  void addMlp(MatrixKind expert, MatrixKind dense) {
    for (uint32_t e = 0; e != m_.numExperts; ++e)
      if (p_.experts[e] == PlanTables::Expert::kKept)
        addMatrix(expert, e);
    if (m_.denseWidth)
      addMatrix(dense);
  }

  void addMatrix(MatrixKind kind, uint32_t expert = 0) {
    MatrixShape shape = matrixShape(m_, kind);
    PlanMatrix matrix{kind,
                      expert,
                      ceilDiv(shape.rows, kTileRows),
                      ceilDiv(shape.k, kTileK),
                      {}};
    for (uint32_t s = 0; s != p_.slots; ++s) {
      uint32_t begin = matrix.tiles * s / p_.slots,
               end = matrix.tiles * (s + 1) / p_.slots;
      bool empty = begin == end;
      matrix.slots.push_back({begin, end - begin, 0, empty ? 0 : at_});
      at_ += uint64_t(end - begin) * matrix.steps * kFragmentBytes;
    }
    p_.matrices.push_back(std::move(matrix));
  }

  void addEmbedding() {
    if (m_.tiedHead)
      return;
    for (const SlotExtent &tiles : p_.matrices.back().slots) {
      uint32_t begin = tiles.tileBegin * kTileRows;
      uint32_t rows =
          std::min(tiles.tileCount * kTileRows, m_.vocabSize - begin);
      p_.embedding.push_back({begin, rows, 0, rows ? at_ : 0});
      at_ = alignUp(at_ + uint64_t(rows) * m_.hiddenSize * 2, 16);
    }
  }

  void addKv() {
    uint64_t needed =
        kvBytes(m_, p_.maxBatch, p_.maxSeq, kvElementBytes(p_.activations));
    p_.kvReserveBytes = alignUp(needed, kKvReserveUnit);
    p_.arena = {{"kv", 0, p_.kvReserveBytes, 0, 7}};
    p_.arenaBytes = p_.kvReserveBytes;
  }

  const ModelConfig &m_;
  PlanTables p_;
  uint64_t at_ = 0;
};

} // namespace

PlanTables handPlan(const ModelConfig &model, const HandPlanOptions &options) {
  return Builder(model, options).build();
}

absl::StatusOr<std::vector<uint8_t>> handBlob(const ModelConfig &model,
                                              const PlanTables &plan,
                                              TensorSource &weights) {
  std::vector<uint8_t> blob;
  absl::Status status =
      packBlob(model, plan, weights, [&](std::span<const uint8_t> piece) {
        blob.insert(blob.end(), piece.begin(), piece.end());
        return absl::OkStatus();
      });
  if (!status.ok())
    return status;
  return blob;
}

} // namespace grok::test
