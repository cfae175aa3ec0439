#include "tools/grokrun/RequestBench.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "runtime/bundle/Sampling.h"
#include "tools/cli/Signals.h"

namespace grok::grokrun {
namespace {

absl::Status check(const RequestBenchOptions &o, const Executor &executor) {
  // Every request's and every id's time is kept.
  constexpr uint32_t kMostRequests = 100'000;
  // The first that is wrong counts: what follows builds on it.
  absl::Status status =
      checkCount("batch", o.rows, executor.maxBatch(), ", the compiled batch");
  status.Update(checkCount("prompt tokens", o.promptTokens,
                           executor.maxSeq() - 1,
                           ", the length in use less a new id"));
  status.Update(checkCount("new tokens", o.newTokens,
                           executor.maxSeq() - o.promptTokens,
                           ", the length in use less the prompt"));
  status.Update(checkCount("requests", o.requests, kMostRequests, ""));
  return status;
}

absl::StatusOr<uint64_t> residentBytes() {
  std::ifstream statm("/proc/self/statm");
  uint64_t size = 0, resident = 0;
  if (!(statm >> size >> resident))
    return absl::UnavailableError(
        "/proc/self/statm: found no number of resident pages");
  return resident * uint64_t(sysconf(_SC_PAGESIZE));
}

/// The batch of request `index`. Its rows' ids are in place already. Seeds and
/// requests that are near each other share no prompt.
void drawPrompts(const RequestBenchOptions &o, uint32_t index, uint32_t vocab,
                 BatchRequest &request) {
  const uint64_t seed = sampling::noiseKey(o.seed, index);
  for (uint32_t row = 0; row != o.rows; ++row)
    for (uint32_t position = 0; position != o.promptTokens; ++position)
      request.rows[row].ids[position] =
          sampling::benchToken(seed, position, row, vocab);
}

class Bench {
public:
  Bench(const Bundle &bundle, Executor &executor,
        const RequestBenchOptions &options)
      : bundle_(bundle), executor_(executor), options_(options) {}

  absl::StatusOr<RequestBenchResult> run();

private:
  absl::Status openGpu();
  absl::Status lockClocks();
  absl::Status prepare();
  absl::Status measure();
  absl::Status one(uint32_t index);
  absl::Status noteMemory();
  void note(uint32_t index, const BatchResult &result,
            DeviceSampler::Clock::time_point began);

  const Bundle &bundle_;
  Executor &executor_;
  const RequestBenchOptions &options_;
  BatchRequest request_;
  RequestBenchResult result_;
  DeviceSampler::Clock::time_point begin_;
  std::unique_ptr<nvml::Gpu> gpu_;         // null: result_.noSamples says why
  std::optional<DeferredSignals> signals_; // while the clocks are locked
  std::unique_ptr<nvml::ClockLock> lock_;  // given back before the signals
};

absl::Status Bench::prepare() {
  request_.wantTimes = true;
  request_.prefillTokens = options_.passTokens;
  request_.rows.assign(
      options_.rows,
      {std::vector<int32_t>(options_.promptTokens), 0, options_.newTokens});
  result_.warmUp = requestWarmUp(options_.requests);
  // Filled in place, so that the process does not grow while it is measured.
  result_.requests.resize(options_.requests);
  result_.idSeconds.resize(uint64_t(options_.requests) *
                           (options_.newTokens - 1));
  for (uint32_t i = 0; i != result_.warmUp; ++i) {
    drawPrompts(options_, options_.requests + i, bundle_.model().vocabSize,
                request_);
    if (absl::Status s = executor_.run(request_).status(); !s.ok())
      return s;
  }
  return absl::OkStatus();
}

absl::Status Bench::noteMemory() {
  absl::StatusOr<uint64_t> resident = residentBytes();
  if (!resident.ok())
    return resident.status();
  result_.resident.note(*resident);
  if (executor_.onCpu())
    return absl::OkStatus();
  absl::StatusOr<uint64_t> device = executor_.deviceBytesInUse();
  if (!device.ok())
    return device.status();
  if (!result_.device)
    result_.device.emplace();
  result_.device->note(*device);
  return absl::OkStatus();
}

void Bench::note(uint32_t index, const BatchResult &result,
                 DeviceSampler::Clock::time_point began) {
  RequestTime &time = result_.requests[index];
  time.at = std::chrono::duration<double>(began - begin_).count();
  time.seconds = result.seconds;
  for (const std::vector<double> &row : result.newSeconds)
    time.firstSeconds = std::max(time.firstSeconds, row.front());
  const std::vector<double> &known = result.newSeconds.front();
  for (uint32_t i = 1; i != options_.newTokens; ++i)
    result_.idSeconds[uint64_t(index) * (options_.newTokens - 1) + i - 1] =
        known[i] - known[i - 1];
}

absl::Status Bench::one(uint32_t index) {
  if (DeferredSignals::pending())
    return absl::CancelledError("interrupted");
  drawPrompts(options_, index, bundle_.model().vocabSize, request_);
  const auto began = DeviceSampler::Clock::now();
  absl::StatusOr<BatchResult> result = executor_.run(request_);
  if (!result.ok())
    return result.status();
  note(index, *result, began);
  return noteMemory();
}

absl::Status Bench::openGpu() {
  absl::StatusOr<std::string> address = executor_.pciBusId();
  if (!address.ok())
    return address.status();
  absl::StatusOr<std::unique_ptr<nvml::Gpu>> gpu = nvml::Gpu::open(*address);
  if (gpu.ok())
    gpu_ = *std::move(gpu);
  return gpu.status();
}

absl::Status Bench::lockClocks() {
  signals_.emplace();
  absl::StatusOr<std::unique_ptr<nvml::ClockLock>> lock =
      nvml::ClockLock::take(*gpu_, *options_.lockMhz);
  if (lock.ok())
    lock_ = *std::move(lock);
  return lock.status();
}

absl::Status Bench::measure() {
  std::optional<DeviceSampler> sampler;
  if (gpu_)
    sampler.emplace(*gpu_);
  begin_ = sampler ? sampler->begin() : DeviceSampler::Clock::now();
  if (absl::Status s = noteMemory(); !s.ok())
    return s;
  for (uint32_t i = 0; i != options_.requests; ++i)
    if (absl::Status s = one(i); !s.ok())
      return s;
  if (!sampler)
    return absl::OkStatus();
  absl::StatusOr<std::vector<TimedSample>> samples = sampler->stop();
  if (samples.ok())
    result_.samples = *std::move(samples);
  else // times without clocks are still times
    result_.noSamples = std::string(samples.status().message());
  return absl::OkStatus();
}

absl::StatusOr<RequestBenchResult> Bench::run() {
  absl::Status ready = openGpu();
  result_.noSamples = std::string(ready.message());
  if (options_.lockMhz) {
    if (ready.ok())
      ready = lockClocks();
    if (!ready.ok())
      return absl::Status(
          ready.code(),
          absl::StrCat("--lock-clocks: ", std::string(ready.message())));
  }
  for (absl::Status (Bench::*step)() : {&Bench::prepare, &Bench::measure})
    if (absl::Status s = (this->*step)(); !s.ok())
      return s;
  if (lock_)
    if (absl::Status s = lock_->release(); !s.ok())
      return s;
  return std::move(result_);
}

} // namespace

void MemoryUse::note(uint64_t bytes) {
  before = most == 0 ? bytes : before;
  most = std::max(most, bytes);
  after = bytes;
}

uint32_t requestWarmUp(uint32_t requests) {
  constexpr uint32_t kFewest = 3, kMost = 20;
  return std::clamp(requests / 50, kFewest, kMost);
}

absl::StatusOr<RequestBenchResult>
benchRequests(const Bundle &bundle, Executor &executor,
              const RequestBenchOptions &options) {
  if (absl::Status s = check(options, executor); !s.ok())
    return s;
  return Bench(bundle, executor, options).run();
}

} // namespace grok::grokrun
