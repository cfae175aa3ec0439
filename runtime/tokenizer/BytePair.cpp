#include "runtime/tokenizer/BytePair.h"

#include <algorithm>
#include <optional>
#include <queue>
#include <tuple>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "runtime/bundle/JsonReader.h"

namespace grok {
namespace {

/// The pattern of word_split "V1": contractions, letters with one character in
/// front, single digits, other symbols, line ends, blanks.
constexpr const char *kPatternV1 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|)"
    R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

std::string inQuotes(std::string_view text) {
  return absl::StrCat(
      "'", absl::CHexEscape(absl::string_view(text.data(), text.size())), "'");
}

} // namespace

/// Reads and checks the file.
class BytePairReader {
public:
  BytePairReader(const nlohmann::json &root, const std::string &file,
                 uint32_t vocabulary)
      : root_(root), file_(file), vocabulary_(vocabulary) {}

  absl::StatusOr<BytePairTokenizer> read() {
    for (auto step :
         {&BytePairReader::readSize, &BytePairReader::readRegular,
          &BytePairReader::readSpecial, &BytePairReader::readAllowed,
          &BytePairReader::readPattern})
      if (absl::Status status = (this->*step)(); !status.ok())
        return status;
    return std::move(out_);
  }

private:
  absl::Status error(const std::string &where, const std::string &found,
                     const std::string &expected) const {
    return absl::InvalidArgumentError(
        absl::StrCat(file_, ": ", where, ": found ", found, ", expected ",
                     expected, "; download the file again"));
  }
  const nlohmann::json *find(const char *key) const {
    auto it = root_.is_object() ? root_.find(key) : root_.end();
    return it == root_.end() ? nullptr : &*it;
  }
  static std::string key(const char *name) {
    return absl::StrCat("key '", name, "'");
  }

  absl::Status readSize() {
    size_ = vocabulary_;
    const nlohmann::json *size = find("vocab_size");
    if (!size)
      return absl::OkStatus();
    if (!size->is_number_unsigned() || *size > vocabulary_)
      return absl::InvalidArgumentError(
          absl::StrCat(file_, ": key 'vocab_size': found ", json::shown(*size),
                       ", expected at most the model's ", vocabulary_,
                       "; tokenizer and model are not of one release"));
    size_ = size->get<uint32_t>();
    return absl::OkStatus();
  }

  static std::optional<std::string> bytesOf(const nlohmann::json &list) {
    std::string bytes;
    if (!list.is_array() || list.empty())
      return std::nullopt;
    for (const nlohmann::json &byte : list) {
      if (!byte.is_number_unsigned() || byte > 255u)
        return std::nullopt;
      bytes += char(byte.get<unsigned>());
    }
    return bytes;
  }

  /// A list of {"bytes": [...], "token": ID}.
  template <typename Visit>
  absl::Status forEachToken(const char *name, Visit visit) {
    const nlohmann::json *list = find(name);
    if (!list || !list->is_array())
      return error(key(name), list ? list->type_name() : "nothing",
                   "a list of tokens");
    for (size_t i = 0; i < list->size(); ++i) {
      const nlohmann::json &item = (*list)[i];
      std::string where = absl::StrCat(key(name), ", entry ", i);
      if (!item.is_object() || !item.contains("bytes") ||
          !item.contains("token"))
        return error(where, item.is_object() ? "other keys" : item.type_name(),
                     "an object with bytes and token");
      std::optional<std::string> bytes = bytesOf(item["bytes"]);
      if (!bytes)
        return error(where, "no such list under 'bytes'",
                     "one or more numbers of 0 to 255");
      const nlohmann::json &token = item["token"];
      if (!token.is_number_unsigned() || token >= size_)
        return error(where, absl::StrCat("token ", json::shown(token)),
                     absl::StrCat("an id below ", size_));
      auto id = token.get<uint32_t>();
      if (!taken_.insert(id).second)
        return error(where, absl::StrCat("token ", id, " a second time"),
                     "ids that are single");
      if (absl::Status status = visit(where, std::move(*bytes), int32_t(id));
          !status.ok())
        return status;
    }
    return absl::OkStatus();
  }

  absl::Status readRegular() {
    // A model may have more ids than the tokenizer: they have no text.
    out_.bytes_.assign(vocabulary_, nullptr);
    absl::Status status =
        forEachToken("regular_tokens", [&](const std::string &where,
                                           std::string bytes, int32_t id) {
          auto [it, isNew] = out_.ranks_.emplace(std::move(bytes), id);
          if (!isNew)
            return error(where, absl::StrCat("the bytes of token ", it->second),
                         "bytes of its own");
          out_.longest_ = std::max(out_.longest_, it->first.size());
          // The map's nodes stay where they are.
          out_.bytes_[size_t(id)] = &it->first;
          return absl::OkStatus();
        });
    for (int byte = 0; byte < 256 && status.ok(); ++byte)
      if (!out_.ranks_.count(std::string(1, char(byte))))
        status = error(key("regular_tokens"),
                       absl::StrCat("no token of the byte ", byte),
                       "one of every byte, so that any text has tokens");
    return status;
  }

  absl::Status readSpecial() {
    return forEachToken("special_tokens", [&](const std::string &where,
                                              std::string bytes, int32_t id) {
      if (out_.special_.emplace(bytes, id).second)
        return absl::OkStatus();
      return error(where, absl::StrCat(inQuotes(bytes), " a second time"),
                   "texts that are single");
    });
  }

  /// Texts, or lists of their bytes.
  absl::Status readAllowed() {
    const char *name = "default_allowed_special";
    const nlohmann::json *list = find(name);
    if (!list || list->is_null())
      return absl::OkStatus();
    if (!list->is_array())
      return error(key(name), list->type_name(), "a list of special tokens");
    for (const nlohmann::json &item : *list) {
      std::optional<std::string> text =
          item.is_string() ? item.get<std::string>() : bytesOf(item);
      if (!text || !out_.special_.count(*text))
        return error(key(name),
                     text ? inQuotes(*text) : std::string(item.type_name()),
                     "one of special_tokens");
      out_.longest_ = std::max(out_.longest_, text->size());
      out_.allowed_.insert(*text);
    }
    return absl::OkStatus();
  }

  absl::Status readPattern() {
    const nlohmann::json *word = find("word_split"), *own = find("pat_str");
    if (!word || !word->is_string() || *word != "V1")
      return error(key("word_split"), word ? json::shown(*word) : "nothing",
                   "\"V1\", the only one that is known");
    if (own && own->is_null())
      own = nullptr;
    if (own && !own->is_string())
      return error(key("pat_str"), own->type_name(), "a regular expression");
    const std::string text = own ? own->get<std::string>() : kPatternV1;
    absl::StatusOr<SplitPattern> pattern = SplitPattern::compile(
        text, text == kPatternV1 ? SplitPattern::Trust::Known
                                 : SplitPattern::Trust::Unknown);
    if (!pattern.ok())
      return absl::InvalidArgumentError(
          absl::StrCat(file_, ": key 'pat_str': ", pattern.status().message(),
                       "; download the file again"));
    out_.pattern_ = *std::move(pattern);
    out_.file_ = file_;
    return absl::OkStatus();
  }

  const nlohmann::json &root_;
  const std::string &file_;
  uint32_t vocabulary_, size_ = 0;
  std::set<uint32_t> taken_;
  BytePairTokenizer out_;
};

absl::StatusOr<BytePairTokenizer>
BytePairTokenizer::parse(std::string_view text, const std::string &file,
                         uint32_t vocabulary) {
  json::Limits limits;
  limits.lines = false; // a vocabulary has a million values
  absl::StatusOr<json::Document> document = json::parse(text, file, limits);
  if (!document.ok())
    return document.status();
  return fromJson(document->root, file, vocabulary);
}

absl::StatusOr<BytePairTokenizer>
BytePairTokenizer::fromJson(const nlohmann::json &root, const std::string &file,
                            uint32_t vocabulary) {
  return BytePairReader(root, file, vocabulary).read();
}

/// Merges the neighbours whose union has the lowest rank, the leftmost of equal
/// ones first, until no union is a token.
void BytePairTokenizer::encodePiece(std::string_view piece,
                                    std::vector<int32_t> &out) const {
  if (auto whole = ranks_.find(std::string(piece)); whole != ranks_.end()) {
    out.push_back(whole->second);
    return;
  }
  constexpr size_t kNone = SIZE_MAX;
  struct Part {
    size_t end;           // it begins at its own index
    size_t before, after; // the neighbours' indices
  };
  std::vector<Part> parts(piece.size());
  for (size_t i = 0; i < parts.size(); ++i)
    parts[i] = {i + 1, i ? i - 1 : kNone, i + 1 < parts.size() ? i + 1 : kNone};
  // Rank, begin of the left part, end of the right one: an entry is out of date
  // when the parts between no longer are these two.
  using Merge = std::tuple<int32_t, size_t, size_t>;
  std::priority_queue<Merge, std::vector<Merge>, std::greater<>> queue;
  auto propose = [&](size_t left) {
    if (left == kNone || parts[left].after == kNone)
      return;
    size_t end = parts[parts[left].after].end;
    auto it = ranks_.find(std::string(piece.substr(left, end - left)));
    if (it != ranks_.end())
      queue.emplace(it->second, left, end);
  };
  for (size_t i = 0; i < parts.size(); ++i)
    propose(i);
  while (!queue.empty()) {
    auto [rank, left, end] = queue.top();
    queue.pop();
    size_t right = parts[left].after;
    if (parts[left].end == 0 || right == kNone || parts[right].end != end)
      continue;
    parts[left].end = end;
    parts[left].after = parts[right].after;
    if (parts[right].after != kNone)
      parts[parts[right].after].before = left;
    parts[right].end = 0; // gone
    propose(parts[left].before);
    propose(left);
  }
  for (size_t i = 0; i != kNone; i = parts[i].after)
    out.push_back(ranks_.at(std::string(piece.substr(i, parts[i].end - i))));
}

absl::Status BytePairTokenizer::encodePlain(std::string_view text,
                                            SplitBudget &budget,
                                            std::vector<int32_t> &out) const {
  absl::Status status = pattern_.split(
      text, budget, [&](std::string_view piece) { encodePiece(piece, out); });
  if (!status.ok())
    return absl::InvalidArgumentError(
        absl::StrCat(file_, ": key 'pat_str': ", status.message(),
                     "; download the file again"));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int32_t>>
BytePairTokenizer::encodePlain(std::string_view text) const {
  SplitBudget budget(text.size());
  std::vector<int32_t> out;
  if (absl::Status status = encodePlain(text, budget, out); !status.ok())
    return status;
  return out;
}

absl::StatusOr<std::vector<int32_t>>
BytePairTokenizer::encode(std::string_view text) const {
  // Where each special token that is allowed comes next. Looked for again only
  // once it is behind, so that one that is rare isn't looked for at every
  // other.
  struct Special {
    const std::string *text;
    size_t at;
  };
  std::vector<Special> specials;
  for (const std::string &special : allowed_)
    specials.push_back({&special, text.find(special)});
  SplitBudget budget(text.size()); // one for all between special tokens
  std::vector<int32_t> out;
  size_t done = 0;
  while (true) {
    // The first one; the longest of those there.
    Special found{nullptr, text.npos};
    for (Special &special : specials) {
      if (special.at < done)
        special.at = text.find(*special.text, done);
      if (special.at < found.at || (special.at == found.at && found.text &&
                                    special.text->size() > found.text->size()))
        found = special;
    }
    if (absl::Status status =
            encodePlain(text.substr(done, found.at - done), budget, out);
        !status.ok())
      return status;
    if (!found.text)
      return out;
    out.push_back(special_.at(*found.text));
    done = found.at + found.text->size();
  }
}

absl::StatusOr<std::string>
BytePairTokenizer::decode(std::span<const int32_t> ids) const {
  std::string out;
  for (int32_t id : ids) {
    if (id < 0 || size_t(id) >= bytes_.size())
      return absl::InvalidArgumentError(
          absl::StrCat("found id ", id, ", expected 0 to ", bytes_.size() - 1));
    if (const std::string *bytes = bytes_[size_t(id)])
      out += *bytes;
  }
  return out;
}

int32_t BytePairTokenizer::special(const std::string &text) const {
  auto it = special_.find(text);
  return it == special_.end() ? -1 : it->second;
}

} // namespace grok
