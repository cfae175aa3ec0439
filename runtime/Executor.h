// The seam between the C API (and grokrun) and the two executors.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/bundle/Bundle.h"

namespace grok {

/// One row of a batch. The executor keeps a KV cache per row: `start` positions
/// of it are already there (0: a new request), ids[start ..] are computed.
struct RowRequest {
  std::vector<int32_t> ids; // every known id of the row, from position 0
  uint32_t start = 0;       // < ids.size()
  uint32_t maxNew = 0;      // ids to generate at most
  /// Known ids from this position on go through the decode kernel, as all do in
  /// a bundle without prefill. The CPU computes every position alike.
  uint32_t decodeFrom = ~0u;
  /// The row takes no part: it has no ids, and its KV cache stays as it is.
  bool idle = false;
};

/// Whether a request may have it: 0 is greedy. Beyond these bounds a logit over
/// the temperature is no float32 any more, or nothing but the noise counts.
constexpr bool isTemperature(double value) {
  return value == 0 || (value >= 1e-6f && value <= 1e6f);
}
inline constexpr const char *kTemperatureExpected =
    "0 (greedy) or a number from 1e-06 to 1e+06";

struct BatchRequest {
  std::vector<RowRequest> rows; // row i uses KV row i; 1 .. maxBatch
  /// Known ids that a prefill pass takes at most; 0: as many as it was compiled
  /// for. No bit of a result depends on it.
  uint32_t prefillTokens = 0;
  int64_t eosId = -1;    // stop after it; -1: never
  float temperature = 0; // isTemperature
  uint64_t seed = 0;
  /// Called for every computed position with float32 logits [vocab], if set:
  /// row, position, logits. Slower: each is copied from the device, and decode
  /// runs position by position.
  std::function<absl::Status(uint32_t row, uint32_t position,
                             std::span<const float> logits)>
      onLogits;
  /// Called for every computed position with the experts chosen (ascending,
  /// config indices; dropped ones included), if set. CPU executor only; others
  /// return Unimplemented.
  std::function<void(uint32_t row, uint32_t position, uint32_t layer,
                     std::span<const uint32_t> experts)>
      onRouting;
  /// Asks for newSeconds. Not together with onLogits, whose copies would be
  /// what is measured.
  bool wantTimes = false;
};

struct BatchResult {
  std::vector<std::vector<int32_t>> newIds; // per row, the end id included
  double seconds = 0;                       // wall time of the run
  /// When each new id was known, seconds from the beginning of the run: [row]
  /// [new id], if they were asked for.
  std::vector<std::vector<double>> newSeconds;
};

/// A benchmark of decode steps: every step computes position `context` - 1 of
/// every row, with ids that the executor draws from `seed` once the step before
/// has chosen its tokens.
struct BenchRequest {
  uint32_t rows = 1;    // 1 .. maxBatch
  uint32_t context = 1; // positions that the step attends to, 1 .. maxSeq
  uint32_t steps = 1;
  uint64_t seed = 0;
};

struct BenchResult {
  std::vector<double> stepSeconds; // [steps], those after benchWarmUp(steps)
  /// Distinct experts of each step, summed over the layers.
  std::vector<uint32_t> experts; // [steps]
};

/// When a slot began a phase, had what it waited for, and was done; seconds
/// from the first of all.
struct TraceSpan {
  uint32_t slot, layer, phase; // phase kNumPhases: choosing the step's tokens
  double begin, ready, end;
};

/// Limits that the environment may lower at load (system.md, memory that never
/// moves).
struct LoadLimits {
  uint32_t maxSeq = 0;  // 0: GROK_MAX_SEQ_LEN, else the compiled length
  uint64_t kvBytes = 0; // 0: GROK_KV_CACHE_BUFFER_MB, else the compiled reserve
};

class Executor {
public:
  virtual ~Executor() = default;
  virtual absl::StatusOr<BatchResult> run(const BatchRequest &request) = 0;
  /// From the next run on the decode kernel stays on the device and takes runs
  /// without a launch, until one needs another kernel. Nobody else's kernels
  /// run there meanwhile. Unimplemented on the CPU.
  virtual absl::Status stayResident() {
    return absl::UnimplementedError(
        "found the CPU, expected a GPU: only there a launch stands in a "
        "request's way");
  }
  /// Runs decode steps for their times, over a KV cache of zeros: rows begin at
  /// position 0 again afterwards.
  virtual absl::StatusOr<BenchResult> bench(const BenchRequest &request) = 0;
  /// Bytes a second that the device streams when the compute behind the stream
  /// only reads them: the ceiling of any decode step.
  virtual absl::StatusOr<double> streamingCeiling() = 0;
  /// Floating-point operations a second of the device's matrix units in the
  /// shape of a prefill product's tile, without loads. FailedPrecondition for a
  /// bundle without prefill; Unimplemented on the CPU.
  virtual absl::StatusOr<double> matrixRate() = 0;
  /// The spans of a few steps, by the bundle's traced kernel.
  /// FailedPrecondition without one (grokc compile --trace); Unimplemented on
  /// the CPU.
  virtual absl::StatusOr<std::vector<TraceSpan>>
  trace(const BenchRequest &request) = 0;
  virtual uint32_t maxBatch() const = 0;
  virtual uint32_t maxSeq() const = 0;
  /// Known ids of a row that are computed together, in little more than the
  /// time of one.
  virtual uint32_t knownIdsPerStep() const = 0;
  virtual std::string deviceName() const = 0;
  /// The CPU keeps KV entries in float32, whatever the plan says.
  virtual bool onCpu() const = 0;
  /// Device (or host) bytes that the executor holds; constant after load.
  virtual uint64_t memoryBytes() const = 0;
  /// Bytes of the device's memory that are taken, by whomever. Unimplemented on
  /// the CPU.
  virtual absl::StatusOr<uint64_t> deviceBytesInUse() = 0;
  /// The device's address on the PCI bus, "00000000:3b:00.0", by which other
  /// libraries know it. Unimplemented on the CPU.
  virtual absl::StatusOr<std::string> pciBusId() const = 0;
};

/// Checks ids, lengths and row count against the executor's limits; both
/// executors call it first.
absl::Status validateRequest(const BatchRequest &request,
                             const ModelConfig &model, uint32_t maxBatch,
                             uint32_t maxSeq);

/// Steps that a bench runs before those that count: caches, clocks and the
/// weights' stream settle.
constexpr uint32_t benchWarmUp(uint32_t steps) {
  constexpr uint32_t kFewest = 20, kMost = 1000;
  return std::clamp(steps / 50, kFewest, kMost);
}

/// Ok for 1 to `most`; else InvalidArgument "WHAT: found ..., expected 1 to
/// MOSTWHY".
absl::Status checkCount(const char *what, uint32_t found, uint32_t most,
                        const char *why);

/// Checks rows, context and steps against the executor's limits; both executors
/// call it first.
absl::Status validateBench(const BenchRequest &request, uint32_t maxBatch,
                           uint32_t maxSeq);

/// The limits after both environment variables, or the error with the numbers.
absl::StatusOr<LoadLimits> resolveLimits(const LoadLimits &asked,
                                         const ModelConfig &model,
                                         const PlanTables &plan,
                                         uint32_t kvElementBytes);

absl::StatusOr<std::unique_ptr<Executor>>
createCpuExecutor(const Bundle &bundle, const LoadLimits &limits);
/// `device`: ordinal of the CUDA device.
absl::StatusOr<std::unique_ptr<Executor>>
createCudaExecutor(const Bundle &bundle, const LoadLimits &limits, int device);
/// A target description (the JSON text of a targets/ file) of the CUDA device
/// that is there. Unavailable without a driver or such a device.
absl::StatusOr<std::string> probeCudaTarget(int device);

} // namespace grok
