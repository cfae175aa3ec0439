#include "tools/cli/Text.h"

#include "absl/strings/str_cat.h"

namespace grok::cli {

std::string grouped(uint64_t number) {
  std::string out = absl::StrCat(number);
  for (size_t at = out.size(); at > 3;)
    out.insert(at -= 3, ",");
  return out;
}

} // namespace grok::cli
