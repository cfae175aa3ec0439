// Loading: the shares of every matrix and the arena, sized once.
#include <algorithm>

#include "runtime/common/Rope.h"
#include "runtime/cpu/Forward.h"

namespace grok::cpu {
namespace {

/// Shares that each of several threads has of a phase: enough that the others
/// can do most of what one leaves that has to wait for its processor, and so
/// few that a share is still a long read.
constexpr unsigned kSharesEach = 4;

uint32_t roundUp(uint32_t n, uint32_t unit) {
  return uint32_t(alignUp(n, unit));
}

} // namespace

Forward::Forward(const ModelConfig &model, const PlanTables &plan,
                 std::span<const uint8_t> blob, const LoadLimits &limits,
                 unsigned threads, const Kernels &kernels)
    : m_(model), blob_(blob), k_(kernels), quantization_(plan.quantization),
      rowStorage_(plan.dtype == DType::kBF16 ? Storage::kBF16 : Storage::kF16),
      storage_(quantization_ == Quantization::kInt8  ? Storage::kInt8
               : quantization_ == Quantization::kFp8 ? Storage::kFp8
                                                     : rowStorage_),
      blockSteps_(plan.blockSteps), maxBatch_(plan.maxBatch),
      maxSeq_(limits.maxSeq), vectorsOffset_(plan.vectorsOffset),
      vectorsLayerBytes_(plan.vectorsLayerBytes), kvReserve_(limits.kvBytes),
      pool_(threads), sharesEach_(threads == 1 ? 1 : kSharesEach),
      hiddenStride_(roundUp(model.hiddenSize, kTileK)),
      attentionStride_(roundUp(model.numHeads * model.headDim, kTileK)),
      headStride_(roundUp(model.headDim, 16)),
      actStride_(roundUp(model.expertWidth, kTileK)),
      denseStride_(roundUp(model.denseWidth, kTileK)),
      chunks_(ceilDiv(limits.maxSeq, kChunkPositions)),
      rowBlocks_(ceilDiv(limits.maxSeq, kKvBlock)),
      partialStride_(headStride_ + kPartialExtra) {}

absl::StatusOr<std::unique_ptr<Forward>>
Forward::create(const ModelConfig &model, const PlanTables &plan,
                std::span<const uint8_t> blob, const LoadLimits &limits,
                unsigned threads, const Kernels &kernels) {
  std::unique_ptr<Forward> forward(
      new Forward(model, plan, blob, limits, threads, kernels));
  forward->planMatrices(plan);
  if (absl::Status status = forward->planArena(); !status.ok())
    return status;
  std::vector<float> rope = ropeTable(model, limits.maxSeq);
  std::copy(rope.begin(), rope.end(), forward->rope_);
  return forward;
}

void Forward::planMatrices(const PlanTables &plan) {
  auto cut = [&](MatrixKind kind, uint32_t expert = 0) {
    const PlanMatrix *matrix = plan.findMatrix(kind, expert);
    if (!matrix)
      return HostMatrix();
    // The head's rows go straight to the logits, down and attn_out rows to
    // their sums: no scratch.
    if (kind == MatrixKind::kQkv || kind == MatrixKind::kGateUp ||
        kind == MatrixKind::kDenseGateUp)
      shareRows_ =
          std::max(shareRows_, (matrix->tiles / shares() + 1) * kTileRows);
    return cutMatrix(*matrix, plan, shares());
  };
  qkv_ = cut(MatrixKind::kQkv);
  attnOut_ = cut(MatrixKind::kAttnOut);
  head_ = cut(MatrixKind::kHead);
  if (m_.denseWidth) {
    denseGateUp_ = cut(MatrixKind::kDenseGateUp);
    denseDown_ = cut(MatrixKind::kDenseDown);
  }
  experts_.resize(m_.numExperts);
  for (uint32_t e = 0; e != m_.numExperts; ++e)
    if (plan.experts[e] == PlanTables::Expert::kKept)
      experts_[e] = {true, cut(MatrixKind::kGateUp, e),
                     cut(MatrixKind::kDown, e)};
  embedding_ = plan.embedding;
  if (m_.tiedHead)
    tiedRows_ = RowLocator(*plan.findMatrix(MatrixKind::kHead), plan);
}

void Forward::placeWorkers(uintptr_t base) {
  for (unsigned thread = 0; thread != pool_.threads(); ++thread) {
    ArenaLayout layout;
    uintptr_t own = base + workerBegin_ + thread * workerBytes_;
    auto floats = [&](uint64_t count) {
      return reinterpret_cast<float *>(own + layout.floats(count));
    };
    Worker &w = workers_[thread];
    w.residual = floats(uint64_t(kMaxColumns) * hiddenStride_);
    w.normed = floats(uint64_t(kMaxColumns) * hiddenStride_);
    w.operand = floats(uint64_t(kMaxColumns) * hiddenStride_);
    w.attention = floats(uint64_t(kMaxColumns) * attentionStride_);
    w.attentionOperand = floats(uint64_t(kMaxColumns) * attentionStride_);
    w.rows = floats(uint64_t(kMaxColumns) * shareRows_);
    w.gated = floats(shareRows_ / 2);
    w.scores = floats(uint64_t(m_.numHeads / m_.numKvHeads) * kChunkPositions);
    w.router = floats(m_.numExperts);
    w.choices = reinterpret_cast<Choice *>(
        own + layout.take(uint64_t(kMaxColumns) * m_.expertsPerToken *
                          sizeof(Choice)));
    w.candidates = reinterpret_cast<Candidate *>(
        own + layout.take(kMaxColumns * sizeof(Candidate)));
    w.active = reinterpret_cast<uint32_t *>(
        own + layout.take(uint64_t(m_.numExperts) * sizeof(uint32_t)));
    workerBytes_ = layout.total();
  }
}

absl::Status Forward::planArena() {
  uint64_t columns = kMaxColumns;
  uint64_t kvFloats = uint64_t(maxBatch_) * rowBlocks_ * m_.numLayers * 2 *
                      m_.numKvHeads * kKvBlock * headStride_;
  workers_.resize(pool_.threads());
  placeWorkers(0); // for workerBytes_

  ArenaLayout layout;
  uint64_t rope = layout.floats(uint64_t(maxSeq_) * m_.headDim);
  uint64_t q = layout.floats(columns * m_.numHeads * headStride_);
  uint64_t partials =
      layout.floats(columns * m_.numHeads * chunks_ * partialStride_);
  uint64_t attnSums = layout.floats(columns * hiddenStride_);
  uint64_t act = layout.floats(columns * m_.expertsPerToken * actStride_);
  uint64_t denseAct = layout.floats(columns * denseStride_);
  uint64_t moeSums = layout.floats(columns * hiddenStride_);
  uint64_t logits = layout.floats(columns * roundUp(m_.vocabSize, kTileRows));
  uint64_t routing = layout.take(columns * m_.numLayers * m_.expertsPerToken *
                                 sizeof(uint32_t));
  workerBegin_ = layout.take(workerBytes_ * pool_.threads());
  uint64_t kv = layout.take(std::max(kvFloats * sizeof(float), kvReserve_));

  absl::StatusOr<HostArena> arena = HostArena::map(layout.total());
  if (!arena.ok())
    return arena.status();
  arena_ = std::move(*arena);
  auto at = [&](uint64_t offset) {
    return reinterpret_cast<float *>(arena_.data() + offset);
  };
  rope_ = at(rope);
  q_ = at(q);
  partials_ = at(partials);
  attnSums_ = at(attnSums);
  act_ = at(act);
  denseAct_ = at(denseAct);
  moeSums_ = at(moeSums);
  logits_ = at(logits);
  routing_ = reinterpret_cast<uint32_t *>(arena_.data() + routing);
  kv_ = at(kv);
  placeWorkers(reinterpret_cast<uintptr_t>(arena_.data()));
  return absl::OkStatus();
}

} // namespace grok::cpu
