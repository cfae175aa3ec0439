// The words of all epochs: who writes and who reads them.
#pragma once

#include <map>
#include <vector>

#include "absl/functional/function_ref.h"
#include "runtime/handovers/Program.h"

namespace grok::handovers {

/// Some words, and the op that hands them over.
struct Written {
  uint64_t begin, end;
  OpRef by;
};

/// What is handed over in one epoch.
class EpochWords {
public:
  void add(WordRange range, OpRef by) {
    written_.push_back({range.begin, range.end, by});
  }
  /// Puts everything in order; the later of two that overlap, or null.
  const Written *sort();
  const std::vector<Written> &all() const { return written_; }
  /// Calls use(Written) for all that overlap `range`. Returns the first word of
  /// it that nobody writes, or range.end.
  uint64_t find(WordRange range,
                absl::FunctionRef<void(const Written &)> use) const;

private:
  std::vector<Written> written_;
};

/// What the words hold, epoch after epoch.
class WordMemory {
public:
  /// Calls use(op) for each op whose words, or a part of them, the new ones
  /// overwrite.
  void write(const Written &words, absl::FunctionRef<void(OpRef)> use);

private:
  std::map<uint64_t, Written> held_; // by begin; they do not overlap
};

} // namespace grok::handovers
