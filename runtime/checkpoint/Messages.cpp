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

void Listing::add(std::string text) {
  ++count;
  if (first.size() < kShown)
    first.push_back(std::move(text));
}

absl::Status missingFiles(const std::string &directory, const Listing &names,
                          const std::string &where) {
  std::string others;
  if (names.count > 1)
    others =
        absl::StrCat(", and ", names.count - 1, " more (",
                     absl::StrJoin(std::span(names.first).subspan(1), ", "),
                     names.count > names.first.size() ? ", ...)" : ")");
  return absl::NotFoundError(absl::StrCat(directory, "/", names.first[0],
                                          ": file is missing", others, ": ",
                                          where));
}

} // namespace grok
