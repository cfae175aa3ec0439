#include <cctype>
#include <charconv>

#include "absl/strings/str_cat.h"
#include "compiler/Routing/Routing.h"
#include "runtime/bundle/Json.h"

namespace grok {
namespace {

bool separates(char c) {
  return c == ',' || std::isspace(static_cast<unsigned char>(c));
}

constexpr size_t kMostShown = 40; // bytes of a word in a message

} // namespace

absl::StatusOr<std::vector<int64_t>> parseIds(std::string_view text,
                                              std::string_view file) {
  std::vector<int64_t> ids;
  unsigned line = 1;
  // Line of a comma that waits for the id after it; 0: none.
  unsigned commaLine = 0;
  auto strayComma = [&](unsigned where) {
    return absl::InvalidArgumentError(
        absl::StrCat(std::string(file), ":", where,
                     ": found a ',' without an id on each side, expected ids "
                     "separated by one comma or white space"));
  };
  for (size_t at = 0; at < text.size();) {
    if (separates(text[at])) {
      if (text[at] == ',') {
        if (ids.empty() || commaLine)
          return strayComma(line);
        commaLine = line;
      }
      line += text[at++] == '\n';
      continue;
    }
    size_t end = at;
    while (end < text.size() && !separates(text[end]))
      ++end;
    int64_t id = 0;
    auto [stop, error] =
        std::from_chars(text.data() + at, text.data() + end, id);
    if (error != std::errc() || stop != text.data() + end)
      return absl::InvalidArgumentError(absl::StrCat(
          std::string(file), ":", line, ": found '",
          json::printable(text.substr(at, end - at), kMostShown),
          "', expected integers separated by commas or white space"));
    ids.push_back(id);
    commaLine = 0;
    at = end;
  }
  if (commaLine)
    return strayComma(commaLine);
  return ids;
}

} // namespace grok
