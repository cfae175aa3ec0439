#include "runtime/handovers/Words.h"

#include <algorithm>

namespace grok::handovers {

const Written *EpochWords::sort() {
  std::sort(
      written_.begin(), written_.end(),
      [](const Written &a, const Written &b) { return a.begin < b.begin; });
  for (size_t i = 1; i < written_.size(); ++i)
    if (written_[i].begin < written_[i - 1].end)
      return &written_[i];
  return nullptr;
}

uint64_t EpochWords::find(WordRange range,
                          absl::FunctionRef<void(const Written &)> use) const {
  auto at = std::upper_bound(
      written_.begin(), written_.end(), range.begin,
      [](uint64_t word, const Written &w) { return word < w.end; });
  uint64_t next = range.begin;
  for (; next < range.end && at != written_.end() && at->begin <= next; ++at) {
    use(*at);
    next = at->end;
  }
  return std::min(next, range.end);
}

void WordMemory::write(const Written &words,
                       absl::FunctionRef<void(OpRef)> use) {
  auto at = held_.upper_bound(words.begin);
  if (at != held_.begin() && std::prev(at)->second.end > words.begin)
    --at;
  while (at != held_.end() && at->second.begin < words.end) {
    Written old = at->second;
    use(old.by);
    at = held_.erase(at);
    if (old.begin < words.begin)
      held_.emplace(old.begin, Written{old.begin, words.begin, old.by});
    if (old.end > words.end)
      at = held_.emplace(words.end, Written{words.end, old.end, old.by}).first;
  }
  held_.emplace(words.begin, words);
}

} // namespace grok::handovers
