#include "tools/grokrun/Ids.h"

#include <charconv>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/bundle/InputFile.h"
#include "runtime/bundle/Json.h"

namespace grok::grokrun {
namespace {

constexpr std::string_view kSpace = " \t\r\n\v\f", kSeparators = ", \t\r\n\v\f";

/// Bytes of a word that a message shows.
constexpr size_t kMostShown = 40;

bool isList(const std::string &argument) {
  return argument.find_first_not_of("-0123456789, ") == std::string::npos;
}

/// "FILE:LINE" of a byte of a file's text that begins at line `first`; "--ids"
/// of a list.
std::string place(const std::string &file, size_t first, std::string_view text,
                  size_t at) {
  if (file.empty())
    return "--ids";
  for (char c : text.substr(0, at))
    first += c == '\n';
  return absl::StrCat(file, ":", first);
}

} // namespace

absl::StatusOr<std::vector<int32_t>>
parseIds(std::string_view text, const std::string &file, size_t line) {
  auto strayComma = [&](size_t at) {
    return absl::InvalidArgumentError(
        absl::StrCat(place(file, line, text, at),
                     ": found a ',' without an id on each side, expected ids "
                     "separated by one comma or white space"));
  };
  std::vector<int32_t> ids;
  size_t at = text.find_first_not_of(kSpace);
  while (at != std::string_view::npos) {
    if (text[at] == ',')
      return strayComma(at);
    size_t end = std::min(text.find_first_of(kSeparators, at), text.size());
    std::string_view word = text.substr(at, end - at);
    int32_t id = 0;
    auto [stop, error] =
        std::from_chars(word.data(), word.data() + word.size(), id);
    if (error != std::errc() || stop != word.data() + word.size() || id < 0)
      return absl::InvalidArgumentError(
          absl::StrCat(place(file, line, text, at), ": found '",
                       json::printable(word, kMostShown),
                       "', expected token ids, integers from 0 on"));
    ids.push_back(id);
    at = text.find_first_not_of(kSpace, end);
    if (at == std::string_view::npos || text[at] != ',')
      continue;
    size_t next = text.find_first_not_of(kSpace, at + 1);
    if (next == std::string_view::npos)
      return strayComma(at);
    at = next;
  }
  if (ids.empty())
    return absl::InvalidArgumentError(
        absl::StrCat(file.empty() ? "--ids" : file,
                     ": found no ids, expected at least one"));
  return ids;
}

absl::StatusOr<std::vector<int32_t>> readIds(const std::string &argument) {
  if (isList(argument)) {
    if (argument.starts_with(' ') || argument.ends_with(' '))
      return absl::InvalidArgumentError(
          absl::StrCat("--ids: found '", argument.substr(0, kMostShown),
                       "', expected an id at its beginning and its end"));
    return parseIds(argument, "", 1);
  }
  absl::StatusOr<std::string> text = readInputFile(argument, kMaxIdsBytes);
  if (!text.ok())
    return absl::Status(
        text.status().code(),
        absl::StrCat("--ids: ", std::string(text.status().message())));
  return parseIds(*text, argument, 1);
}

std::string joinIds(const std::vector<int32_t> &ids) {
  return absl::StrJoin(ids, ",");
}

} // namespace grok::grokrun
