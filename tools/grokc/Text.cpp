#include "tools/grokc/Text.h"

#include "absl/strings/str_cat.h"

namespace grok::grokc {

std::string ranges(const std::vector<uint32_t> &numbers) {
  constexpr size_t kLongest = 100;
  std::string out;
  for (size_t i = 0; i < numbers.size();) {
    size_t end = i;
    while (end + 1 < numbers.size() && numbers[end + 1] == numbers[end] + 1)
      ++end;
    if (out.size() > kLongest)
      return absl::StrCat(out, ", ... ", numbers.size(), " in all");
    absl::StrAppend(&out, i ? ", " : "", numbers[i]);
    if (end > i)
      absl::StrAppend(&out, "-", numbers[end]);
    i = end + 1;
  }
  return out.empty() ? "none" : out;
}

} // namespace grok::grokc
