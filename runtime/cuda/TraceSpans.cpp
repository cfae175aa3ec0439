#include "runtime/cuda/TraceSpans.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_format.h"
#include "runtime/bundle/DecodeMemory.h"

namespace grok::cuda {
namespace {

using abi::TraceEntry;
using abi::TracePoint;
using Entries = std::span<const TraceEntry>;

/// Nanoseconds since `origin` of every entry of a slot. The nanosecond timer
/// may tick as rarely as once a microsecond, so a line through all its readings
/// against the cycle counter says when an entry really was.
std::vector<double> timesOf(Entries entries, uint64_t origin) {
  std::vector<double> cycles, times;
  uint64_t cycle = 0;
  double meanCycle = 0, meanTime = 0;
  for (size_t i = 0; i != entries.size(); ++i) {
    // The counter's low half wraps within seconds, phases take less.
    cycle += i ? uint32_t(entries[i].clock - entries[i - 1].clock) : 0;
    cycles.push_back(double(cycle));
    times.push_back(double(entries[i].nanoseconds - origin));
    meanCycle += cycles[i] / double(entries.size());
    meanTime += times[i] / double(entries.size());
  }
  double squares = 0, products = 0;
  for (size_t i = 0; i != entries.size(); ++i) {
    squares += (cycles[i] - meanCycle) * (cycles[i] - meanCycle);
    products += (cycles[i] - meanCycle) * (times[i] - meanTime);
  }
  if (products <= 0) // the timer did not tick
    return times;
  for (size_t i = 0; i != entries.size(); ++i)
    times[i] = meanTime + (cycles[i] - meanCycle) * products / squares;
  return times;
}

/// Puts a slot's entries together.
class SlotReader {
public:
  SlotReader(uint32_t slot, Entries entries, uint64_t origin,
             std::vector<TraceSpan> &spans)
      : slot_(slot), entries_(entries), times_(timesOf(entries, origin)),
        spans_(spans) {}

  absl::Status read() {
    for (size_t i = 0; i != entries_.size(); ++i)
      if (!take(entries_[i], times_[i] * 1e-9))
        return unexpected(i);
    return open_ ? unexpected(entries_.size()) : absl::OkStatus();
  }

private:
  /// False if the entry cannot follow the one before.
  bool take(const TraceEntry &entry, double at) {
    bool begins = entry.point == uint8_t(TracePoint::kBegin);
    if (begins == open_ || entry.phase > kNumPhases)
      return false;
    if (begins) {
      spans_.push_back({slot_, entry.layer, entry.phase, at, at, at});
      ready_ = false;
      open_ = true;
      return true;
    }
    TraceSpan &span = spans_.back();
    bool ready = entry.point == uint8_t(TracePoint::kReady);
    if (span.layer != entry.layer || span.phase != entry.phase ||
        (!ready && entry.point != uint8_t(TracePoint::kEnd)))
      return false;
    // A phase of several parts waits for each; the first wait is shown.
    if (ready && !ready_)
      span.ready = at;
    if (!ready)
      span.end = at;
    ready_ = open_ = ready;
    return true;
  }

  absl::Status unexpected(size_t i) const {
    if (i == entries_.size())
      return absl::InternalError(absl::StrFormat(
          "the trace of slot %d stops inside a phase after %d entries", slot_,
          i));
    const TraceEntry &entry = entries_[i];
    return absl::InternalError(absl::StrFormat(
        "the trace of slot %d: found point %d of phase %d in layer %d at entry "
        "%d, expected %s",
        slot_, entry.point, entry.phase, entry.layer, i,
        open_ ? "the phase that has begun to go on" : "a phase to begin"));
  }

  const uint32_t slot_;
  const Entries entries_;
  const std::vector<double> times_;
  std::vector<TraceSpan> &spans_;
  bool open_ = false, ready_ = false;
};

/// The entries that each slot has.
absl::StatusOr<std::vector<Entries>>
entriesOfSlots(Entries entries, std::span<const uint32_t> counts) {
  size_t most = entries.size() / counts.size();
  std::vector<Entries> slots;
  for (size_t slot = 0; slot != counts.size(); ++slot) {
    if (counts[slot] > most)
      return absl::InternalError(
          absl::StrFormat("the trace of slot %d: found %d entries, expected at "
                          "most %d",
                          slot, counts[slot], most));
    slots.push_back(entries.subspan(slot * most, counts[slot]));
  }
  return slots;
}

} // namespace

absl::StatusOr<std::vector<TraceSpan>>
traceSpans(Entries entries, std::span<const uint32_t> counts) {
  absl::StatusOr<std::vector<Entries>> slots = entriesOfSlots(entries, counts);
  if (!slots.ok())
    return slots.status();
  uint64_t origin = UINT64_MAX;
  for (Entries slot : *slots)
    for (const TraceEntry &entry : slot)
      origin = std::min(origin, entry.nanoseconds);
  std::vector<TraceSpan> spans;
  for (uint32_t slot = 0; slot != slots->size(); ++slot)
    if (absl::Status status =
            SlotReader(slot, (*slots)[slot], origin, spans).read();
        !status.ok())
      return status;
  double first = std::numeric_limits<double>::infinity();
  for (const TraceSpan &span : spans)
    first = std::min(first, span.begin);
  for (TraceSpan &span : spans)
    for (double *at : {&span.begin, &span.ready, &span.end})
      *at -= first;
  return spans;
}

} // namespace grok::cuda
