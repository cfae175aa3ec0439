// A regular expression that cuts text into pieces before merging.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace grok {

class SplitPattern {
public:
  /// InvalidArgument with the place in the pattern if it is none.
  static absl::StatusOr<SplitPattern> compile(const std::string &pattern);

  /// Calls `visit` for every piece in order. The pieces together are the text:
  /// what the pattern does not match, and what is no UTF-8, is a piece too.
  absl::Status
  split(std::string_view text,
        const std::function<void(std::string_view piece)> &visit) const;

private:
  std::shared_ptr<void> code_; // pcre2_code
};

} // namespace grok
