#include "compiler/Passes/RoutingText.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace grok {

std::string rangesText(std::span<const uint32_t> numbers, size_t limit) {
  std::string text;
  size_t ranges = 0;
  for (size_t i = 0; i < numbers.size(); ++ranges) {
    if (ranges == limit)
      return absl::StrCat(text, " and ", numbers.size() - i, " more");
    size_t end = i + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1)
      ++end;
    absl::StrAppend(&text, i == 0 ? "" : ", ", numbers[i]);
    if (end - i > 1)
      absl::StrAppend(&text, "-", numbers[end - 1]);
    i = end;
  }
  return text.empty() ? "none" : text;
}

std::string rangesText(std::span<const uint32_t> numbers) {
  return rangesText(numbers, std::numeric_limits<size_t>::max());
}

std::string percentText(double share) {
  return absl::StrFormat("%.2f %%", 100 * share);
}

} // namespace grok
