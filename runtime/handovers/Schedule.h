// In which order the processes get to run.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace grok::handovers {

/// Of the processes that can run, picks the next.
struct Schedule {
  enum class Pick {
    kFirst,  // the first in `order`
    kRandom, // any
    kShuffle // the first in `order`, which is drawn anew every so often
  };
  std::string name;
  std::vector<uint32_t> order; // processes, each once
  Pick pick = Pick::kFirst;
  uint32_t turn = ~0u; // ops, or chunks of the ring, until the next pick
  uint64_t seed = 0;
};

/// The extreme ones: in order of the slots and against it, streams as far
/// ahead as the ring allows and only when nothing else can run, one op a turn,
/// and for `count` slots spread over all of them, each first and each last.
std::vector<Schedule> extremeSchedules(uint32_t slots, uint32_t count);

/// One of the random ones; it depends on nothing but the seed.
Schedule randomSchedule(uint32_t slots, uint64_t seed);

/// The processes that can run.
class ReadySet {
public:
  explicit ReadySet(const Schedule &schedule);
  void insert(uint32_t process) { set(process, true); }
  void erase(uint32_t process) { set(process, false); }
  bool empty() const;
  /// Not empty.
  uint32_t pick();

private:
  void set(uint32_t process, bool ready);
  void shuffle();
  /// The first ready rank from `rank` on, around.
  uint32_t firstFrom(uint32_t rank) const;

  const Schedule &schedule_;
  std::vector<uint32_t> order_, rank_;
  std::vector<uint64_t> ready_; // a bit a rank
  std::mt19937_64 random_;
  uint32_t picks_ = 0;
};

} // namespace grok::handovers
