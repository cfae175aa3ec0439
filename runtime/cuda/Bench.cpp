// What CudaExecutor measures: decode steps, the streaming ceiling, when each
// slot does what, and when a request's ids were known. Memory for all but the
// last is taken for the run and given back after.
#include <algorithm>
#include <chrono>

#include "absl/strings/str_format.h"
#include "runtime/bundle/DecodeMemory.h"
#include "runtime/cuda/CudaExecutor.h"
#include "runtime/cuda/TraceSpans.h"

#define RETURN_IF_ERROR(expression)                                            \
  if (absl::Status status_ = (expression); !status_.ok())                      \
  return status_

namespace grok::cuda {
namespace {

/// What grok_stream reads at least, so that neither the caches nor the launch
/// count; and what a sample of its time reads together.
constexpr uint64_t kLeastStreamBytes = 4ull << 30, kSampleBytes = 64ull << 30;
constexpr uint32_t kStreamSamples = 9;
/// Steps of a trace at most: its entries stay below a gigabyte.
constexpr uint32_t kMaxTraceSteps = 64;

template <class T>
absl::StatusOr<DeviceBuffer> takeZeros(const DriverApi &api, uint64_t count) {
  absl::StatusOr<DeviceBuffer> taken =
      DeviceBuffer::allocate(api, count * sizeof(T));
  if (!taken.ok())
    return taken;
  GROK_CUDA_RETURN_IF_ERROR(api, memsetD8, taken->address(), 0, taken->bytes());
  return taken;
}

template <class T>
absl::StatusOr<std::vector<T>> copyBack(const DriverApi &api,
                                        const DeviceBuffer &buffer) {
  std::vector<T> values(buffer.bytes() / sizeof(T));
  GROK_CUDA_RETURN_IF_ERROR(api, copyToHost, values.data(), buffer.address(),
                            buffer.bytes());
  return values;
}

/// Every step was noted, and none before the one that it follows.
absl::Status checkRecords(std::span<const abi::StepRecord> records) {
  uint64_t before = 1;
  for (size_t step = 0; step != records.size(); ++step) {
    uint64_t end = records[step].endNanoseconds;
    if (end < before)
      return absl::InternalError(absl::StrFormat(
          "the decode kernel reports that step %d ended at %d ns, expected at "
          "least %d",
          step, end, before));
    before = end;
  }
  return absl::OkStatus();
}

/// The steps after the first `warmUp` ones.
void appendSteps(const std::vector<abi::StepRecord> &records, uint32_t warmUp,
                 BenchResult &result) {
  for (size_t i = warmUp; i != records.size(); ++i) {
    uint64_t took = records[i].endNanoseconds - records[i - 1].endNanoseconds;
    result.stepSeconds.push_back(double(took) * 1e-9);
    result.experts.push_back(records[i].experts);
  }
}

/// Entries of a slot in one step: three a phase of each layer, and of the head
/// and the choice.
uint32_t traceEntriesOfStep(const ModelConfig &model) {
  return 3 * (model.numLayers * (kNumPhases - 1) + 2);
}

} // namespace

/// Memory that nobody has written may hold anything, NaN too.
absl::Status CudaExecutor::clearKv(uint32_t rows, uint32_t positions) {
  const uint32_t element = kvElementBytes(plan_.activations);
  const uint64_t stride = kvBytes(model_, 1, limits_.maxSeq, element);
  for (uint32_t row = 0; row != rows; ++row)
    GROK_CUDA_RETURN_IF_ERROR(api_, memsetD8,
                              arena_.address() + region("kv") + row * stride, 0,
                              kvBytes(model_, 1, positions, element));
  return absl::OkStatus();
}

absl::StatusOr<abi::DecodeParams>
CudaExecutor::startBench(const BenchRequest &request) {
  RETURN_IF_ERROR(validateBench(request, maxBatch(), maxSeq()));
  RETURN_IF_ERROR(begin());
  RETURN_IF_ERROR(clearKv(request.rows, request.context));
  abi::DecodeParams params = paramsOf(
      turnOf({}, std::vector<RowProgress>(
                     request.rows,
                     {request.context - 1, request.context, request.context})));
  params.benchSteps = request.steps;
  params.benchSeed = request.seed;
  return params;
}

uint32_t CudaExecutor::mostBenchSteps() const {
  return std::min(benchLaunchSteps_,
                  (kEpochLimit - 1) / (model_.numLayers + 1));
}

/// Steps of one launch, and what the kernel noted of them.
absl::StatusOr<std::vector<abi::StepRecord>>
CudaExecutor::benchLaunch(abi::DecodeParams &params, Function kernel) {
  absl::StatusOr<DeviceBuffer> steps =
      takeZeros<abi::StepRecord>(api_, params.benchSteps);
  if (!steps.ok())
    return steps.status();
  params.steps = steps->as<abi::StepRecord>();
  RETURN_IF_ERROR(launch(params, kernel));
  absl::StatusOr<std::vector<abi::StepRecord>> records =
      copyBack<abi::StepRecord>(api_, *steps);
  if (!records.ok())
    return records;
  RETURN_IF_ERROR(checkRecords(*records));
  return records;
}

absl::StatusOr<BenchResult> CudaExecutor::bench(const BenchRequest &request) {
  absl::StatusOr<abi::DecodeParams> params = startBench(request);
  if (!params.ok())
    return params.status();
  const uint32_t warmUp = benchWarmUp(request.steps);
  BenchResult result;
  while (result.stepSeconds.size() < request.steps) {
    uint32_t left = request.steps - uint32_t(result.stepSeconds.size());
    params->benchSteps = warmUp + std::min(left, mostBenchSteps() - warmUp);
    absl::StatusOr<std::vector<abi::StepRecord>> records =
        benchLaunch(*params, decode_);
    if (!records.ok())
      return records.status();
    appendSteps(*records, warmUp, result);
    params->benchSeed += abi::kMaxBatch; // other ids in the next launch
  }
  return result;
}

/// The device's timer and the host's clock meet where the turn ends: its last
/// step ended when the host saw it end, but for the microseconds of seeing it.
absl::Status CudaExecutor::noteDecodeTimes(const std::vector<RowProgress> &rows,
                                           Clock::time_point begin,
                                           BatchResult &result) {
  std::vector<uint32_t> chosen(rows.size()); // ids of the turn
  uint32_t steps = 0;
  for (size_t b = 0; b != rows.size(); ++b) {
    chosen[b] = uint32_t(result.newIds[b].size() - result.newSeconds[b].size());
    // The turn's last step computes a prompt's last id or chooses an id.
    steps = std::max(steps, rows[b].known + std::max(chosen[b], 1u) - 1 -
                                rows[b].next);
  }
  if (steps == 0)
    return absl::OkStatus();
  const std::span records(stepRecords_.host<const abi::StepRecord>(), steps);
  RETURN_IF_ERROR(checkRecords(records));
  const double end = std::chrono::duration<double>(turnEnd_ - begin).count();
  for (size_t b = 0; b != rows.size(); ++b)
    for (uint32_t i = 0; i != chosen[b]; ++i) {
      uint32_t step = rows[b].known + i - 1 - rows[b].next;
      uint64_t before =
          records.back().endNanoseconds - records[step].endNanoseconds;
      result.newSeconds[b].push_back(end - double(before) * 1e-9);
    }
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> CudaExecutor::deviceBytesInUse() {
  RETURN_IF_ERROR(context_.makeCurrent());
  size_t available = 0, total = 0;
  GROK_CUDA_RETURN_IF_ERROR(api_, memGetInfo, &available, &total);
  return total - available;
}

absl::StatusOr<std::string> CudaExecutor::pciBusId() const {
  char address[32] = {};
  GROK_CUDA_RETURN_IF_ERROR(api_, deviceGetPciBusId, address, sizeof address,
                            context_.device());
  return address;
}

absl::StatusOr<double> CudaExecutor::streamingCeiling() {
  RETURN_IF_ERROR(begin());
  absl::StatusOr<Function> kernel = module_.function("grok_stream");
  if (!kernel.ok())
    return kernel.status();
  GROK_CUDA_RETURN_IF_ERROR(api_, functionSetAttribute, *kernel,
                            kFunctionDynamicShared, int(sharedLimit_));
  absl::StatusOr<DeviceBuffer> sink = takeZeros<uint32_t>(api_, 1), own;
  if (!sink.ok())
    return sink.status();
  const DeviceBuffer *data = &weights_;
  if (weights_.bytes() < kLeastStreamBytes) {
    own = DeviceBuffer::allocate(api_, kLeastStreamBytes);
    if (!own.ok())
      return own.status();
    data = &*own;
  }
  abi::StreamParams params{data->as<const uint8_t>(),
                           data->bytes() / smCount_ / kFragmentBytes *
                               kFragmentBytes,
                           sink->as<uint32_t>()};
  return streamRate(*kernel, params);
}

/// Bytes a second of launches back to back, the median of some samples.
absl::StatusOr<double> CudaExecutor::streamRate(Function kernel,
                                                abi::StreamParams &params) {
  uint64_t bytes = params.bytesPerBlock * smCount_;
  uint64_t launches = (kSampleBytes + bytes - 1) / bytes;
  void *arguments[] = {&params};
  std::vector<double> rates;
  for (uint32_t sample = 0; sample <= kStreamSamples; ++sample) {
    auto begin = std::chrono::steady_clock::now();
    for (uint64_t i = 0; i != launches; ++i)
      GROK_CUDA_RETURN_IF_ERROR(api_, launchKernel, kernel, smCount_, 1, 1,
                                plan_.threads, 1, 1, sharedLimit_, nullptr,
                                arguments, nullptr);
    GROK_CUDA_RETURN_IF_ERROR(api_, contextSynchronize);
    std::chrono::duration<double> took =
        std::chrono::steady_clock::now() - begin;
    if (sample) // the first one warms up
      rates.push_back(double(bytes * launches) / took.count());
  }
  std::nth_element(rates.begin(), rates.begin() + kStreamSamples / 2,
                   rates.end());
  return rates[kStreamSamples / 2];
}

absl::StatusOr<std::vector<TraceSpan>>
CudaExecutor::trace(const BenchRequest &request) {
  if (tracePtx_.empty())
    return absl::FailedPreconditionError(
        absl::StrFormat("%s: found no trace.ptx, expected it; compile the "
                        "model with grokc compile --trace",
                        path_));
  if (request.steps > kMaxTraceSteps)
    return absl::InvalidArgumentError(
        absl::StrFormat("steps of a trace: found %d, expected 1 to %d",
                        request.steps, kMaxTraceSteps));
  absl::StatusOr<abi::DecodeParams> params = startBench(request);
  if (!params.ok())
    return params.status();
  absl::StatusOr<ModuleOwner> module =
      ModuleOwner::load(api_, tracePtx_, path_ + "/trace.ptx");
  if (!module.ok())
    return module.status();
  absl::StatusOr<Function> kernel = module->function("grok_decode");
  if (!kernel.ok())
    return kernel.status();
  GROK_CUDA_RETURN_IF_ERROR(api_, functionSetAttribute, *kernel,
                            kFunctionDynamicShared, int(sharedLimit_));
  return traceLaunch(*params, *kernel);
}

absl::StatusOr<std::vector<TraceSpan>>
CudaExecutor::traceLaunch(abi::DecodeParams &params, Function kernel) {
  params.traceEntries = params.benchSteps * traceEntriesOfStep(model_);
  absl::StatusOr<DeviceBuffer> entries = takeZeros<abi::TraceEntry>(
      api_, uint64_t(plan_.slots) * params.traceEntries);
  if (!entries.ok())
    return entries.status();
  absl::StatusOr<DeviceBuffer> counts = takeZeros<uint32_t>(api_, plan_.slots);
  if (!counts.ok())
    return counts.status();
  params.trace = entries->as<abi::TraceEntry>();
  params.traceCounts = counts->as<uint32_t>();
  RETURN_IF_ERROR(benchLaunch(params, kernel).status());
  absl::StatusOr<std::vector<abi::TraceEntry>> noted =
      copyBack<abi::TraceEntry>(api_, *entries);
  if (!noted.ok())
    return noted.status();
  absl::StatusOr<std::vector<uint32_t>> lengths =
      copyBack<uint32_t>(api_, *counts);
  if (!lengths.ok())
    return lengths.status();
  return traceSpans(*noted, *lengths);
}

} // namespace grok::cuda
