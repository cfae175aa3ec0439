#include "runtime/checkpoint/Messages.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace grok {

std::string inQuotes(std::string_view text) {
  constexpr size_t kLimit = 160;
  std::string_view shown = text.substr(0, kLimit);
  std::string escaped =
      absl::CHexEscape(absl::string_view(shown.data(), shown.size()));
  return absl::StrCat("'", escaped, shown.size() < text.size() ? "..." : "",
                      "'");
}

std::string shapeText(std::span<const uint64_t> shape) {
  constexpr size_t kLimit = 8;
  auto shown = shape.subspan(0, std::min(shape.size(), kLimit));
  return absl::StrCat("[", absl::StrJoin(shown, ", "),
                      shown.size() < shape.size() ? ", ...]" : "]");
}

} // namespace grok
