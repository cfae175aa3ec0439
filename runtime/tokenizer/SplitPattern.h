// A regular expression that cuts text into pieces before merging.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace grok {

/// What is left of the steps that cutting one text into pieces may take. They
/// are counted, not timed: a text is refused everywhere or nowhere.
class SplitBudget {
public:
  explicit SplitBudget(size_t bytes) : left_(kFixed + kPerByte * bytes) {}

  /// False once more was taken than there was.
  bool take(uint64_t steps) {
    left_ -= std::min(steps, left_);
    return left_ != 0;
  }

private:
  /// Released patterns take at most 40 steps a byte.
  static constexpr uint64_t kFixed = 10'000'000, kPerByte = 200;
  uint64_t left_;
};

class SplitPattern {
public:
  /// Known: it takes time as the text is long, and its steps aren't counted,
  /// which takes as long again.
  enum class Trust { Unknown, Known };

  /// InvalidArgument with the place in the pattern if it is none.
  static absl::StatusOr<SplitPattern> compile(const std::string &pattern,
                                              Trust trust = Trust::Unknown);

  /// Calls `visit` for every piece in order. The pieces together are the text:
  /// what the pattern does not match, and what is no UTF-8, is a piece too.
  /// `budget` is that of all that is cut up for one text.
  absl::Status
  split(std::string_view text, SplitBudget &budget,
        const std::function<void(std::string_view piece)> &visit) const;

private:
  struct Code;
  std::shared_ptr<const Code> code_;
};

} // namespace grok
