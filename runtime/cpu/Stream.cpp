// The CPU's streaming ceiling: all threads read memory and do nothing else.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>

#include "runtime/cpu/Forward.h"

namespace grok::cpu {
namespace {

/// Far more than the caches of a machine hold, and enough to last some tenths
/// of a second.
constexpr uint64_t kLeastBytes = 1ull << 30, kMostBytes = 4ull << 30;
constexpr unsigned kPasses = 5; // the first one warms up

/// A thread's part of the bytes, and what makes reading them necessary.
struct Reading {
  std::span<const uint8_t> bytes;
  unsigned threads;
  std::atomic<uint64_t> sum;
  std::span<const uint8_t> part(unsigned thread) const {
    uint64_t unit = bytes.size() / threads / 64 * 64;
    return bytes.subspan(thread * unit, unit);
  }
};

void readPart(void *context, unsigned thread) {
  Reading &reading = *static_cast<Reading *>(context);
  std::span<const uint8_t> part = reading.part(thread);
  std::array<uint64_t, 8> sums{}; // of a cache line
  for (uint64_t at = 0; at != part.size(); at += sizeof sums) {
    std::array<uint64_t, 8> line;
    std::memcpy(&line, part.data() + at, sizeof line);
    for (size_t i = 0; i != sums.size(); ++i)
      sums[i] += line[i];
  }
  uint64_t sum = 0;
  for (uint64_t s : sums)
    sum += s;
  reading.sum.fetch_add(sum, std::memory_order_relaxed);
}

/// Pages come from the thread that will read them, so that they lie near it.
void fillPart(void *context, unsigned thread) {
  Reading &reading = *static_cast<Reading *>(context);
  std::span<const uint8_t> part = reading.part(thread);
  std::memset(const_cast<uint8_t *>(part.data()), 1, part.size());
}

} // namespace

absl::StatusOr<double> Forward::streamRate() {
  HostArena own;
  Reading reading{blob_, pool_.threads(), 0};
  if (blob_.size() < kLeastBytes) {
    absl::StatusOr<HostArena> taken = HostArena::map(kLeastBytes);
    if (!taken.ok())
      return taken.status();
    own = *std::move(taken);
    reading.bytes = {own.data(), own.bytes()};
    pool_.run(fillPart, &reading);
  }
  if (reading.bytes.size() > kMostBytes)
    reading.bytes = reading.bytes.first(kMostBytes);
  std::vector<double> rates;
  for (unsigned pass = 0; pass != kPasses; ++pass) {
    auto begin = std::chrono::steady_clock::now();
    pool_.run(readPart, &reading);
    std::chrono::duration<double> took =
        std::chrono::steady_clock::now() - begin;
    if (pass)
      rates.push_back(double(reading.part(0).size()) * reading.threads /
                      took.count());
  }
  std::nth_element(rates.begin(), rates.begin() + rates.size() / 2,
                   rates.end());
  return rates[rates.size() / 2];
}

} // namespace grok::cpu
