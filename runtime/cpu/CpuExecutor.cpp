// Scheduling on the CPU: which positions of which rows a step computes, and
// what becomes of the picked ids.
#include "runtime/cpu/CpuExecutor.h"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "absl/strings/str_format.h"
#include "runtime/bundle/Sampling.h"
#include "runtime/cpu/Forward.h"

namespace grok::cpu {
namespace {

using Clock = std::chrono::steady_clock;

/// A row of the request in progress.
struct RowState {
  uint32_t next = 0;  // first position that is not computed yet
  uint32_t known = 0; // ids there are
  uint32_t limit = 0; // ids to end with
  bool done = false;
};

class CpuExecutor final : public Executor {
public:
  CpuExecutor(const ModelConfig &model, uint32_t maxBatch,
              const LoadLimits &limits, std::unique_ptr<Forward> forward,
              HostArena blob)
      : model_(model), maxBatch_(maxBatch), limits_(limits),
        blob_(std::move(blob)), forward_(std::move(forward)),
        ids_(maxBatch, std::vector<int32_t>(limits.maxSeq)), rows_(maxBatch) {
    columns_.reserve(kMaxColumns);
  }

  absl::StatusOr<BatchResult> run(const BatchRequest &request) override;
  absl::StatusOr<BenchResult> bench(const BenchRequest &request) override;
  absl::StatusOr<double> streamingCeiling() override {
    return forward_->streamRate();
  }
  absl::StatusOr<double> matrixRate() override {
    return absl::UnimplementedError(
        "the CPU executor has no matrix units to measure, expected a GPU; use "
        "--device cuda:N");
  }
  absl::StatusOr<std::vector<TraceSpan>> trace(const BenchRequest &) override {
    return absl::UnimplementedError(
        "the CPU executor notes no phases, expected a GPU; use --device "
        "cuda:N");
  }
  absl::StatusOr<uint64_t> deviceBytesInUse() override {
    return absl::UnimplementedError(
        "the CPU executor has no device memory, expected a GPU; use --device "
        "cuda:N");
  }
  absl::StatusOr<std::string> pciBusId() const override {
    return absl::UnimplementedError(
        "the CPU is on no PCI bus, expected a GPU; use --device cuda:N");
  }
  bool onCpu() const override { return true; }
  uint32_t maxBatch() const override { return maxBatch_; }
  uint32_t maxSeq() const override { return limits_.maxSeq; }
  uint32_t knownIdsPerStep() const override { return kMaxColumns; }
  std::string deviceName() const override {
    return absl::StrFormat("cpu (%d threads, %s)", forward_->threads(),
                           forward_->kernels().name);
  }
  uint64_t memoryBytes() const override {
    return forward_->arenaBytes() + blob_.bytes();
  }

private:
  void start(const BatchRequest &request);
  void fillColumns(const BatchRequest &request);
  absl::Status finishColumns(const BatchRequest &request,
                             Clock::time_point begin, BatchResult &result);
  void fillBenchColumns(const BenchRequest &request, uint32_t step);

  const ModelConfig model_;
  const uint32_t maxBatch_;
  const LoadLimits limits_;
  HostArena blob_; // generated weights; empty when they are the bundle's
  std::unique_ptr<Forward> forward_;
  std::vector<std::vector<int32_t>> ids_; // [row][position]
  std::vector<RowState> rows_;
  std::vector<Column> columns_;
};

void CpuExecutor::start(const BatchRequest &request) {
  for (size_t i = 0; i != request.rows.size(); ++i) {
    const RowRequest &row = request.rows[i];
    std::copy(row.ids.begin(), row.ids.end(), ids_[i].begin());
    rows_[i] = {row.start, uint32_t(row.ids.size()),
                uint32_t(row.ids.size()) + row.maxNew, row.idle};
  }
}

/// Every row that is not done gets a position; what is left of the columns goes
/// to rows with more known ids.
void CpuExecutor::fillColumns(const BatchRequest &request) {
  columns_.clear();
  uint32_t rows = uint32_t(request.rows.size()), waiting = 0;
  for (uint32_t i = 0; i != rows; ++i)
    waiting += !rows_[i].done;
  for (uint32_t i = 0; i != rows; ++i) {
    RowState &row = rows_[i];
    if (row.done)
      continue;
    uint32_t share = uint32_t(kMaxColumns - columns_.size()) / waiting--;
    for (uint32_t n = 0; n != share && row.next != row.known; ++n, ++row.next) {
      bool last = row.next + 1 == row.known;
      columns_.push_back(
          {i, row.next, ids_[i][row.next],
           bool(request.onLogits) || (last && row.known < row.limit)});
    }
  }
}

/// Hands out logits and routing, and appends the picked id to rows whose last
/// known position was computed.
absl::Status CpuExecutor::finishColumns(const BatchRequest &request,
                                        Clock::time_point begin,
                                        BatchResult &result) {
  const double now =
      std::chrono::duration<double>(Clock::now() - begin).count();
  for (uint32_t c = 0; c != columns_.size(); ++c) {
    const Column &column = columns_[c];
    if (request.onRouting)
      for (uint32_t layer = 0; layer != model_.numLayers; ++layer)
        request.onRouting(column.row, column.position, layer,
                          forward_->routing(layer, c));
    if (request.onLogits)
      if (absl::Status status = request.onLogits(column.row, column.position,
                                                 forward_->logits(c));
          !status.ok())
        return status;
    RowState &row = rows_[column.row];
    if (column.position + 1 != row.known)
      continue;
    if (row.known == row.limit) {
      row.done = true;
      continue;
    }
    int32_t id = forward_->picked(c);
    ids_[column.row][row.known++] = id;
    if (request.wantTimes)
      result.newSeconds[column.row].push_back(now);
    row.done = row.known == row.limit || id == request.eosId;
  }
  return absl::OkStatus();
}

absl::StatusOr<BatchResult> CpuExecutor::run(const BatchRequest &request) {
  if (absl::Status status =
          validateRequest(request, model_, maxBatch_, limits_.maxSeq);
      !status.ok())
    return status;
  const Clock::time_point begin = Clock::now();
  BatchResult result;
  if (request.wantTimes)
    result.newSeconds.resize(request.rows.size());
  start(request);
  Picking picking{request.temperature > 0 ? 1 / request.temperature : 0,
                  request.seed};
  for (fillColumns(request); !columns_.empty(); fillColumns(request)) {
    forward_->step(columns_, picking);
    if (absl::Status status = finishColumns(request, begin, result);
        !status.ok())
      return status;
  }
  result.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  for (size_t i = 0; i != request.rows.size(); ++i)
    result.newIds.emplace_back(ids_[i].begin() + request.rows[i].ids.size(),
                               ids_[i].begin() + rows_[i].known);
  return result;
}

/// The step's ids, all at the request's last position.
void CpuExecutor::fillBenchColumns(const BenchRequest &request, uint32_t step) {
  columns_.clear();
  for (uint32_t row = 0; row != request.rows; ++row)
    columns_.push_back(
        {row, request.context - 1,
         sampling::benchToken(request.seed, step, row, model_.vocabSize),
         true});
}

absl::StatusOr<BenchResult> CpuExecutor::bench(const BenchRequest &request) {
  if (absl::Status status = validateBench(request, maxBatch_, limits_.maxSeq);
      !status.ok())
    return status;
  forward_->clearKv(request.rows, request.context);
  BenchResult result;
  result.stepSeconds.reserve(request.steps);
  result.experts.reserve(request.steps);
  const uint32_t warmUp = benchWarmUp(request.steps);
  auto before = std::chrono::steady_clock::now();
  for (uint32_t step = 0; step != warmUp + request.steps; ++step) {
    fillBenchColumns(request, step);
    forward_->step(columns_, {});
    auto now = std::chrono::steady_clock::now();
    if (step >= warmUp) {
      result.stepSeconds.push_back(
          std::chrono::duration<double>(now - before).count());
      result.experts.push_back(forward_->expertUses());
    }
    before = std::chrono::steady_clock::now();
  }
  return result;
}

/// Weights that a thread should have to read between two barriers, in bytes:
/// with less, threads mostly wait for each other, and for the system to run
/// them when the machine is busy.
constexpr uint64_t kShareBytes = 256 << 10;
/// Barriers of a layer.
constexpr uint64_t kLayerPhases = 5;

/// As many threads as may run at once, fewer for models whose layers are small.
unsigned threadsFor(const ModelConfig &m) {
  auto bytes = [&](MatrixKind kind) {
    MatrixShape shape = matrixShape(m, kind);
    return uint64_t(shape.rows) * shape.k * 2;
  };
  uint64_t layer = bytes(MatrixKind::kQkv) + bytes(MatrixKind::kAttnOut);
  layer += m.expertsPerToken *
           (bytes(MatrixKind::kGateUp) + bytes(MatrixKind::kDown));
  if (m.denseWidth)
    layer += bytes(MatrixKind::kDenseGateUp) + bytes(MatrixKind::kDenseDown);
  uint64_t useful = layer / kLayerPhases / kShareBytes;
  return unsigned(std::clamp<uint64_t>(useful, 1, availableThreads()));
}

absl::StatusOr<std::unique_ptr<Executor>>
create(const ModelConfig &model, const PlanTables &plan,
       std::span<const uint8_t> blob, HostArena generated,
       const LoadLimits &asked, const CpuOptions &options) {
  if (plan.deviceCount != 1)
    return absl::InvalidArgumentError(absl::StrFormat(
        "found a plan for %d devices, expected 1: the CPU runs whole models",
        plan.deviceCount));
  if (plan.maxBatch > kMaxColumns)
    return absl::InvalidArgumentError(
        absl::StrFormat("found a plan for batch %d, expected at most %d",
                        plan.maxBatch, kMaxColumns));
  if (blob.size() != plan.blobBytes)
    return absl::InvalidArgumentError(
        absl::StrFormat("found %d bytes of weights, expected %d as planned",
                        blob.size(), plan.blobBytes));
  absl::StatusOr<LoadLimits> limits =
      resolveLimits(asked, model, plan, sizeof(float));
  if (!limits.ok())
    return limits.status();
  absl::StatusOr<std::unique_ptr<Forward>> forward =
      Forward::create(model, plan, blob, *limits,
                      options.threads ? options.threads : threadsFor(model),
                      options.kernels ? *options.kernels : bestKernels());
  if (!forward.ok())
    return forward.status();
  return std::make_unique<CpuExecutor>(
      model, plan.maxBatch, *limits, std::move(*forward), std::move(generated));
}

/// Synthetic weights, generated where they will be read.
absl::StatusOr<HostArena> generateBlob(const Bundle &bundle) {
  absl::StatusOr<HostArena> blob = HostArena::map(bundle.plan().blobBytes);
  if (!blob.ok())
    return blob;
  uint64_t at = 0;
  std::unique_ptr<TensorSource> source =
      syntheticSource(bundle.model(), bundle.manifest().weights.seed);
  absl::Status status =
      packBlob(bundle.model(), bundle.plan(), *source,
               [&](std::span<const uint8_t> piece) {
                 std::memcpy(blob->data() + at, piece.data(), piece.size());
                 at += piece.size();
                 return absl::OkStatus();
               });
  if (!status.ok())
    return status;
  return blob;
}

} // namespace

absl::StatusOr<std::unique_ptr<Executor>>
createExecutor(const ModelConfig &model, const PlanTables &plan,
               std::span<const uint8_t> blob, const LoadLimits &limits,
               const CpuOptions &options) {
  return create(model, plan, blob, HostArena(), limits, options);
}

} // namespace grok::cpu

namespace grok {

absl::StatusOr<std::unique_ptr<Executor>>
createCpuExecutor(const Bundle &bundle, const LoadLimits &limits) {
  // A wrong limit is reported before weights are generated.
  if (absl::StatusOr<LoadLimits> checked =
          resolveLimits(limits, bundle.model(), bundle.plan(), sizeof(float));
      !checked.ok())
    return checked.status();
  switch (bundle.manifest().weights.kind) {
  case WeightsRecipe::Kind::kNone:
    return absl::FailedPreconditionError(
        absl::StrFormat("%s: found no weights, expected weights.blob; fill it "
                        "in with grokrun pack",
                        bundle.path()));
  case WeightsRecipe::Kind::kSynthetic:
    if (bundle.blob().empty()) {
      absl::StatusOr<cpu::HostArena> blob = cpu::generateBlob(bundle);
      if (!blob.ok())
        return blob.status();
      std::span<const uint8_t> bytes(blob->data(), blob->bytes());
      return cpu::create(bundle.model(), bundle.plan(), bytes, std::move(*blob),
                         limits, {});
    }
    break;
  case WeightsRecipe::Kind::kBlob:
    break;
  }
  std::span<const uint8_t> blob = bundle.blob();
  // Read ahead: otherwise the first request pays for every page.
  madvise(const_cast<uint8_t *>(blob.data()), blob.size(), MADV_WILLNEED);
  return cpu::create(bundle.model(), bundle.plan(), blob, cpu::HostArena(),
                     limits, {});
}

} // namespace grok
