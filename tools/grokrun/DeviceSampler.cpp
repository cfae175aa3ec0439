#include "tools/grokrun/DeviceSampler.h"

#include <algorithm>
#include <cmath>

namespace grok::grokrun {
namespace {

/// Often enough to see clocks change, and rare enough not to be in the way.
constexpr auto kPeriod = std::chrono::milliseconds(50);
/// Readings whose memory is there from the beginning: half an hour of them.
constexpr size_t kExpected = 1 << 15;

} // namespace

DeviceSampler::DeviceSampler(const nvml::Gpu &gpu) : gpu_(gpu) {
  samples_.resize(kExpected); // touched, so that the process does not grow
  samples_.clear();
  thread_ = std::thread([this] { run(); });
}

DeviceSampler::~DeviceSampler() { stop().IgnoreError(); }

void DeviceSampler::read() {
  absl::StatusOr<nvml::Sample> sample = gpu_.sample();
  if (!sample.ok()) {
    status_ = sample.status();
    return;
  }
  std::chrono::duration<double> at = Clock::now() - begin_;
  samples_.push_back({at.count(), *sample});
}

void DeviceSampler::run() {
  std::unique_lock<std::mutex> lock(mutex_);
  do
    read();
  while (status_.ok() &&
         !wake_.wait_for(lock, kPeriod, [this] { return stopped_; }));
  if (status_.ok())
    read();
}

absl::StatusOr<std::vector<TimedSample>> DeviceSampler::stop() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopped_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable())
    thread_.join();
  if (!status_.ok())
    return status_;
  return std::move(samples_);
}

const TimedSample &closest(const std::vector<TimedSample> &samples,
                           double begin, double end) {
  const double middle = (begin + end) / 2;
  return *std::min_element(samples.begin(), samples.end(),
                           [&](const TimedSample &a, const TimedSample &b) {
                             return std::abs(a.at - middle) <
                                    std::abs(b.at - middle);
                           });
}

} // namespace grok::grokrun
