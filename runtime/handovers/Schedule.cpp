#include "runtime/handovers/Schedule.h"

#include <algorithm>
#include <numeric>

namespace grok::handovers {
namespace {

/// Picks between two orders of a kShuffle schedule.
constexpr uint32_t kShuffleEvery = 512;

/// All consumers, then all producers.
std::vector<uint32_t> consumersFirst(uint32_t slots) {
  std::vector<uint32_t> order(2 * slots);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

/// A slot's two processes after each other.
std::vector<uint32_t> slotBySlot(uint32_t slots) {
  std::vector<uint32_t> order;
  for (uint32_t s = 0; s != slots; ++s)
    order.insert(order.end(), {s, slots + s});
  return order;
}

/// A number below `bound`, the same on every machine.
uint32_t below(std::mt19937_64 &random, uint32_t bound) {
  return uint32_t(random() % bound);
}

} // namespace

std::vector<Schedule> extremeSchedules(uint32_t slots, uint32_t count) {
  const std::vector<uint32_t> order = slotBySlot(slots),
                              last = consumersFirst(slots);
  std::vector<uint32_t> back(order.rbegin(), order.rend()), ahead = last;
  std::rotate(ahead.begin(), ahead.begin() + slots, ahead.end());
  std::vector<Schedule> all = {
      {"in order", order},
      {"in reverse order", back},
      {"streams ahead", ahead},
      {"streams last", last},
      {"an op a turn", order, Schedule::Pick::kFirst, 1}};
  for (uint32_t i = 0; i != count; ++i) {
    const uint32_t slot =
        uint32_t(uint64_t(i) * (slots - 1) / std::max(count - 1, 1u));
    std::vector<uint32_t> first = {slot, slots + slot}, last;
    for (uint32_t process : order)
      if (process % slots != slot)
        last.push_back(process);
    first.insert(first.end(), last.begin(), last.end());
    last.insert(last.end(), {slot, slots + slot});
    std::string name = "slot " + std::to_string(slot);
    all.push_back({name + " first", first});
    all.push_back({name + " last", last});
  }
  return all;
}

Schedule randomSchedule(uint32_t slots, uint64_t seed) {
  std::mt19937_64 random(seed);
  Schedule schedule{"seed " + std::to_string(seed), slotBySlot(slots),
                    random() % 2 ? Schedule::Pick::kRandom
                                 : Schedule::Pick::kShuffle};
  constexpr uint32_t kTurns[] = {1, 3, 17, ~0u};
  schedule.turn = kTurns[below(random, 4)];
  schedule.seed = random();
  return schedule;
}

ReadySet::ReadySet(const Schedule &schedule)
    : schedule_(schedule), order_(schedule.order), rank_(order_.size()),
      ready_((order_.size() + 63) / 64), random_(schedule.seed) {
  if (schedule.pick == Schedule::Pick::kShuffle)
    shuffle();
  for (uint32_t r = 0; r != order_.size(); ++r)
    rank_[order_[r]] = r;
}

void ReadySet::set(uint32_t process, bool ready) {
  const uint32_t r = rank_[process];
  const uint64_t bit = uint64_t(1) << r % 64;
  ready_[r / 64] = ready ? ready_[r / 64] | bit : ready_[r / 64] & ~bit;
}

bool ReadySet::empty() const {
  return std::all_of(ready_.begin(), ready_.end(),
                     [](uint64_t word) { return word == 0; });
}

/// Fisher-Yates; std::shuffle differs between libraries.
void ReadySet::shuffle() {
  for (uint32_t i = uint32_t(order_.size()); i > 1; --i)
    std::swap(order_[i - 1], order_[below(random_, i)]);
}

uint32_t ReadySet::firstFrom(uint32_t rank) const {
  const size_t words = ready_.size();
  size_t word = rank / 64;
  uint64_t bits = ready_[word] & ~uint64_t(0) << rank % 64;
  for (size_t i = 0; bits == 0 && i != words; ++i) {
    word = (word + 1) % words;
    bits = ready_[word];
  }
  return uint32_t(word * 64 + size_t(__builtin_ctzll(bits)));
}

uint32_t ReadySet::pick() {
  if (schedule_.pick == Schedule::Pick::kShuffle &&
      ++picks_ % kShuffleEvery == 0) {
    std::vector<uint32_t> now;
    for (uint32_t process : order_)
      if (ready_[rank_[process] / 64] >> rank_[process] % 64 & 1)
        now.push_back(process);
    shuffle();
    std::fill(ready_.begin(), ready_.end(), 0);
    for (uint32_t r = 0; r != order_.size(); ++r)
      rank_[order_[r]] = r;
    for (uint32_t process : now)
      insert(process);
  }
  uint32_t from = schedule_.pick == Schedule::Pick::kRandom
                      ? below(random_, uint32_t(order_.size()))
                      : 0;
  return order_[firstFrom(from)];
}

} // namespace grok::handovers
