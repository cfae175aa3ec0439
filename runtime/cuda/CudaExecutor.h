// Runs a bundle's kernels through the CUDA driver. Everything is loaded and all
// memory taken at creation.
#pragma once

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/Executor.h"
#include "runtime/bundle/KernelAbi.h"
#include "runtime/cuda/Prefill.h"
#include "runtime/cuda/Resources.h"

namespace grok::cuda {

class CudaExecutor final : public Executor {
public:
  /// Unavailable without such a GPU; FailedPrecondition if the bundle does not
  /// fit it, ResourceExhausted if its memory is too small; Internal if the
  /// driver fails. Whatever was taken by then is given back.
  static absl::StatusOr<std::unique_ptr<CudaExecutor>>
  create(const DriverApi &api, const Bundle &bundle, const LoadLimits &limits,
         int ordinal);
  ~CudaExecutor() override;

  absl::StatusOr<BatchResult> run(const BatchRequest &request) override;
  absl::Status stayResident() override;
  absl::StatusOr<BenchResult> bench(const BenchRequest &request) override;
  absl::StatusOr<double> streamingCeiling() override;
  absl::StatusOr<double> matrixRate() override;
  absl::StatusOr<std::vector<TraceSpan>>
  trace(const BenchRequest &request) override;
  uint32_t maxBatch() const override { return plan_.maxBatch; }
  uint32_t maxSeq() const override { return limits_.maxSeq; }
  uint32_t knownIdsPerStep() const override {
    return std::max(plan_.prefill.tokens, 1u);
  }
  std::string deviceName() const override { return name_; }
  bool onCpu() const override { return false; }
  uint64_t memoryBytes() const override { return memoryBytes_; }
  absl::StatusOr<uint64_t> deviceBytesInUse() override;
  absl::StatusOr<std::string> pciBusId() const override;

private:
  using Clock = std::chrono::steady_clock;
  /// Before an epoch that a word carries would come again, the words are
  /// cleared and counting starts again.
  static constexpr uint32_t kEpochLimit = 1u << abi::kPackedEpochBits;

  friend class CudaExecutorPeer; // tests: epochs near their limit, short
                                 // launches

  CudaExecutor(const DriverApi &api, ContextOwner context, const Bundle &bundle,
               const LoadLimits &limits)
      : api_(api), context_(std::move(context)), path_(bundle.path()),
        model_(bundle.model()), plan_(bundle.plan()), limits_(limits),
        takesTurns_(bundle.manifest().formatVersion >= kTurnsFormatVersion) {}

  absl::Status load(const Bundle &bundle);
  absl::Status checkDevice(const Bundle &bundle);
  absl::Status checkMemory(uint64_t needed);
  absl::Status takeMemory();
  absl::Status loadKernels(const Bundle &bundle);
  absl::Status loadTables();
  absl::Status loadWeights(const Bundle &bundle);
  absl::Status clearWords();

  /// How far a row of the request in progress is.
  struct RowProgress {
    uint32_t next;  // first position that is not computed yet
    uint32_t known; // ids there are
    uint32_t limit; // ids to end with
    bool done() const { return next == known; }
  };
  abi::DecodeParams paramsOf(const abi::Turn &turn) const;
  abi::Turn turnOf(const BatchRequest &request,
                   const std::vector<RowProgress> &rows) const;
  /// Epochs that a turn, or a launch of so many bench steps, uses at most.
  uint64_t epochsOf(const abi::Turn &turn, uint32_t benchSteps = 0) const;
  /// One launch; afterwards the status record holds the rows' lengths.
  absl::Status launch(abi::DecodeParams &params, Function kernel);
  absl::Status checkTurn(const abi::Turn &turn) const;
  // A kernel that stays (Resident.cpp).
  bool needsLaunch(const BatchRequest &request,
                   const std::vector<RowProgress> &rows) const;
  absl::Status post(const BatchRequest &request, abi::Turn turn);
  void send(abi::Turn turn);
  absl::Status awaitReport(uint32_t number);
  absl::Status awaitTurn(const abi::Turn &turn);
  absl::Status leave();
  /// For what is no request: the context is current, and no kernel stays.
  absl::Status begin();
  abi::PrefillParams prefillParams(const BatchRequest &request) const;
  /// Takes the rows' known ids through the prefill kernels, pass by pass, and
  /// appends the first new id of each row.
  absl::Status prefill(const BatchRequest &request,
                       std::vector<RowProgress> &rows,
                       std::vector<std::vector<int32_t>> &ids);
  absl::Status prefillHeads(const BatchRequest &request,
                            abi::PrefillParams params,
                            std::span<const abi::PrefillToken> tokens,
                            const std::vector<RowProgress> &rows);
  absl::Status runAtOnce(const BatchRequest &request,
                         const std::vector<RowProgress> &rows,
                         std::vector<std::vector<int32_t>> &ids);
  absl::Status launchTurn(const BatchRequest &request, const abi::Turn &turn);
  absl::Status runByPosition(const BatchRequest &request,
                             std::vector<RowProgress> rows,
                             std::vector<std::vector<int32_t>> &ids);
  /// Appends to newSeconds when each id was known that the last turn chose,
  /// for a run that began at `begin`; `rows` as it was asked for.
  absl::Status noteDecodeTimes(const std::vector<RowProgress> &rows,
                               Clock::time_point begin, BatchResult &result);
  absl::Status clearKv(uint32_t rows, uint32_t positions);
  /// The parameters of bench launches, over a KV cache that is cleared.
  absl::StatusOr<abi::DecodeParams> startBench(const BenchRequest &request);
  absl::StatusOr<std::vector<abi::StepRecord>>
  benchLaunch(abi::DecodeParams &params, Function kernel);
  uint32_t mostBenchSteps() const;
  absl::StatusOr<double> streamRate(Function kernel, abi::StreamParams &params);
  absl::StatusOr<std::vector<TraceSpan>> traceLaunch(abi::DecodeParams &params,
                                                     Function kernel);
  absl::Status copyIds(uint32_t row, uint32_t first, std::vector<int32_t> &ids,
                       uint32_t count);
  absl::Status takeIds(uint32_t row, uint32_t first, std::vector<int32_t> &ids,
                       uint32_t count);
  absl::Status copyIdsToDevice(const BatchRequest &request);
  abi::StatusRecord &status() const {
    return *statusRecord_.host<abi::StatusRecord>();
  }
  /// Ids of a row by their position, as the device and the host hand them over.
  int32_t *hostIds(uint32_t row) const {
    return hostIds_.host<int32_t>() + uint64_t(row) * (plan_.maxSeq + 1);
  }
  uint64_t region(const char *name) const {
    return plan_.findRegion(name)->offset;
  }

  const DriverApi &api_;
  ContextOwner context_; // before everything that lives in it
  const std::string path_;
  const ModelConfig model_;
  const PlanTables plan_;
  const LoadLimits limits_;
  const bool takesTurns_; // the decode kernel knows of what is in host memory
  std::string name_;
  uint32_t smCount_ = 0, sharedLimit_ = 0;
  uint64_t arenaBytes_ = 0, memoryBytes_ = 0;
  ModuleOwner module_;
  Function decode_ = nullptr, fill_ = nullptr;
  std::unique_ptr<Prefill> prefill_; // null: the bundle has none
  std::string tracePtx_;             // empty: the bundle has none
  DeviceBuffer weights_, arena_, extents_, embedding_, slotOfSm_, forwarded_;
  uint32_t smTableEntries_ = 0;
  MappedBuffer statusRecord_, mailbox_;
  MappedBuffer hostIds_;      // [maxBatch][maxSeq + 1]
  MappedBuffer stepRecords_;  // [maxSeq], of a turn
  Clock::time_point turnEnd_; // of the last turn, as the host saw it
  std::vector<float> logits_;
  std::optional<uint32_t> absentSlot_;   // only to try the watchdog
  uint32_t epoch_ = 0, turn_ = 0;        // the last ones
  bool resident_ = false;                // kernels stay
  uint32_t stayingRows_ = 0;             // of one that does; 0: none
  uint32_t benchLaunchSteps_ = 1u << 20; // at most; keeps their records small
};

} // namespace grok::cuda
