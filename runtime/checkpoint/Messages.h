// Text that comes from a checkpoint's files, made fit for a message.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace grok {

/// 'text', printable and not longer than a line or two whatever the file held.
std::string inQuotes(std::string_view text);

/// "[4, 2]".
std::string shapeText(std::span<const uint64_t> shape);

/// How many there are, and the first few.
struct Listing {
  static constexpr size_t kShown = 10;
  void add(std::string text);

  uint64_t count = 0;
  std::vector<std::string> first;
};

/// NotFound with the names of a directory's missing files, of which there is
/// one at least. `where`: what was found, what was expected, and the remedy.
absl::Status missingFiles(const std::string &directory, const Listing &names,
                          const std::string &where);

} // namespace grok
