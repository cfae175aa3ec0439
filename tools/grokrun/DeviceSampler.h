// A GPU's clocks and temperature, read now and then while something else is
// measured.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/nvml/Nvml.h"

namespace grok::grokrun {

/// A reading and its time, in seconds from the sampler's beginning.
struct TimedSample {
  double at = 0;
  nvml::Sample sample;
};

/// Reads in a thread of its own, from its beginning to stop(), once a period
/// and at both ends.
class DeviceSampler {
public:
  using Clock = std::chrono::steady_clock;
  explicit DeviceSampler(const nvml::Gpu &gpu);
  ~DeviceSampler();
  Clock::time_point begin() const { return begin_; }
  /// The readings, in their order. An error if one of them failed.
  absl::StatusOr<std::vector<TimedSample>> stop();

private:
  void run();
  void read();

  const nvml::Gpu &gpu_;
  const Clock::time_point begin_ = Clock::now();
  std::vector<TimedSample> samples_;
  absl::Status status_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopped_ = false;
  std::thread thread_; // last: it uses all of the above
};

/// The reading that was closest to the middle of [begin, end]. There is one.
const TimedSample &closest(const std::vector<TimedSample> &samples,
                           double begin, double end);

} // namespace grok::grokrun
