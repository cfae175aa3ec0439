// A request of one caller, and its answer.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"

namespace grok::service {

using Clock = std::chrono::steady_clock;

inline double secondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// `seconds`: 0 or more. More than 31 years are as good as these.
inline Clock::time_point after(Clock::time_point begin, double seconds) {
  constexpr double kMost = 1e9;
  return begin + std::chrono::duration_cast<Clock::duration>(
                     std::chrono::duration<double>(std::min(seconds, kMost)));
}

/// Since the request was received, in seconds.
struct Times {
  double started = 0;  // it got a row of the batch; 0: it never did
  double firstId = 0;  // its first new id was there; 0: there was none
  double answered = 0; // everything
};

struct Answer {
  /// Ok, or why there are fewer ids than asked for: Cancelled,
  /// DeadlineExceeded, or what the executor said.
  absl::Status status;
  std::vector<int32_t> ids; // new ones, the one that ended them included
  bool stopped = false;     // by one of the stop ids
  Times times;
};

struct Request {
  std::vector<int32_t> ids;     // the prompt, at least one
  uint32_t maxNew = 0;          // ids to generate at most
  std::vector<int32_t> stopIds; // each ends the answer
  float temperature = 0;        // 0: greedy
  uint64_t seed = 0;            // of the sampling noise
  std::optional<Clock::time_point> deadline;
  /// From when its times count; nothing: when it is submitted.
  std::optional<Clock::time_point> received;
  /// Called with every new id as soon as it is there, if set.
  std::function<void(std::span<const int32_t> ids)> onIds;
  /// Called once, after the last onIds.
  std::function<void(Answer answer)> onAnswer;
};

/// The answer's status at a deadline.
absl::Status deadlineExceeded(size_t newIds, uint32_t wanted);

/// A request with its place among those that were accepted.
struct Accepted {
  uint64_t number = 0; // > 0, ascending
  Clock::time_point at;
  Request request;
};

} // namespace grok::service
