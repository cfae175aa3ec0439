#include "runtime/bundle/Json.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace grok::json {
namespace {

using Json = nlohmann::json;

/// What the counting iterators of one parse share: the parser copies iterators.
struct Counter {
  unsigned line = 1;
  bool atNewline = false; // the last character read was one
};

class CountingIterator {
public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char *;
  using reference = const char &;

  CountingIterator(const char *at, Counter *counter)
      : at_(at), counter_(counter) {}
  reference operator*() const { return *at_; }
  CountingIterator &operator++() {
    counter_->atNewline = *at_ == '\n';
    counter_->line += counter_->atNewline;
    ++at_;
    return *this;
  }
  CountingIterator operator++(int) {
    CountingIterator old = *this;
    ++*this;
    return old;
  }
  bool operator==(const CountingIterator &other) const {
    return at_ == other.at_;
  }
  bool operator!=(const CountingIterator &other) const {
    return at_ != other.at_;
  }

private:
  const char *at_;
  Counter *counter_;
};

std::string escapePointer(std::string_view key) {
  std::string out;
  for (char c : key)
    out += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  return out;
}

/// nlohmann's message without its own numbering and place.
std::string bareMessage(const std::string &what) {
  if (size_t column = what.find(", column "); column != what.npos) {
    size_t colon = what.find(": ", column);
    if (colon != what.npos)
      return what.substr(colon + 2);
  }
  size_t bracket = what.find("] ");
  return bracket == what.npos ? what : what.substr(bracket + 2);
}

/// Builds the document; every handler returns false to stop.
class Builder {
public:
  Builder(std::string_view text, Document &document, const Limits &limits,
          const Counter &counter)
      : text_(text), document_(document), limits_(limits), counter_(counter) {}

  bool null() { return value(Json()); }
  bool boolean(bool v) { return value(Json(v)); }
  bool number_integer(int64_t v) { return number(Json(v)); }
  bool number_unsigned(uint64_t v) { return number(Json(v)); }
  bool number_float(double v, const std::string &) { return number(Json(v)); }
  bool string(std::string &v) { return value(Json(std::move(v))); }
  bool binary(Json::binary_t &) { return false; } // JSON text holds none
  bool start_object(size_t) { return open(Json::object()); }
  bool start_array(size_t) { return open(Json::array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool key(std::string &key) {
    Json &object = *stack_.back().node;
    std::string pointer =
        absl::StrCat(stack_.back().pointer, "/", escapePointer(key));
    auto [member, isNew] = object.emplace(key, Json());
    if (!isNew) {
      std::string first;
      if (auto it = document_.lines.find(pointer); it != document_.lines.end())
        first = absl::StrCat(" (the first is in line ", it->second, ")");
      error_ = absl::InvalidArgumentError(
          absl::StrCat(document_.file, ":", counter_.line, ": key '",
                       printable(key), "': found a second time", first,
                       ", expected once in an object; remove one of them"));
      return false;
    }
    if (limits_.lines)
      document_.lines.emplace(pointer, counter_.line);
    target_ = &*member;
    targetPointer_ = std::move(pointer);
    return true;
  }

  template <typename Exception>
  bool parse_error(size_t position, const std::string &, const Exception &e) {
    // The position counts the characters read, the offending one included.
    std::string_view before =
        text_.substr(0, std::min(position ? position - 1 : 0, text_.size()));
    auto line = 1 + std::count(before.begin(), before.end(), '\n');
    size_t lineStart = before.rfind('\n');
    size_t column =
        before.size() - (lineStart == before.npos ? 0 : lineStart + 1) + 1;
    error_ = absl::InvalidArgumentError(
        absl::StrCat(document_.file, ":", line, ":", column,
                     ": malformed JSON: ", printable(bareMessage(e.what()))));
    return false;
  }

  absl::Status error() const { return error_; }

private:
  struct Open {
    Json *node;
    std::string pointer;
  };

  /// Line of the value whose last character was read; a number ends only when
  /// the character after it has been read as well.
  unsigned line(bool isNumber) const {
    return counter_.line - (isNumber && counter_.atNewline);
  }

  Json *place(Json &&v, bool isNumber) {
    if (stack_.empty()) {
      document_.root = std::move(v);
      targetPointer_.clear();
      return &document_.root;
    }
    Open &parent = stack_.back();
    if (parent.node->is_object()) {
      *target_ = std::move(v);
      return target_;
    }
    targetPointer_ =
        limits_.lines ? absl::StrCat(parent.pointer, "/", parent.node->size())
                      : std::string();
    if (limits_.lines)
      document_.lines.emplace(targetPointer_, line(isNumber));
    parent.node->push_back(std::move(v));
    return &parent.node->back();
  }

  bool value(Json &&v) {
    place(std::move(v), false);
    return true;
  }
  bool number(Json &&v) {
    place(std::move(v), true);
    return true;
  }
  bool open(Json &&v) {
    if (stack_.size() >= limits_.depth) {
      error_ = absl::InvalidArgumentError(absl::StrCat(
          document_.file, ":", counter_.line, ": found nesting deeper than ",
          limits_.depth, " levels, expected no more than that"));
      return false;
    }
    Json *node = place(std::move(v), false);
    stack_.push_back({node, targetPointer_});
    return true;
  }
  bool close() {
    stack_.pop_back();
    return true;
  }

  std::string_view text_;
  Document &document_;
  const Limits &limits_;
  const Counter &counter_;
  std::vector<Open> stack_;
  Json *target_ = nullptr; // value of the member whose key was read last
  std::string targetPointer_;
  absl::Status error_;
};

/// What nlohmann's parser passes over silently: it skips a byte order mark and
/// takes a NUL for the end of the text.
absl::Status checkBytes(std::string_view text, const std::string &file) {
  constexpr std::string_view kMark = "\xef\xbb\xbf";
  if (text.substr(0, kMark.size()) == kMark)
    return absl::InvalidArgumentError(
        absl::StrCat(file, ":1:1: found a byte order mark, expected JSON; save "
                           "the file as UTF-8 without one"));
  size_t nul = text.find('\0');
  if (nul == text.npos)
    return absl::OkStatus();
  std::string_view before = text.substr(0, nul);
  size_t lineStart = before.rfind('\n') + 1; // 0 without a newline
  return absl::InvalidArgumentError(absl::StrCat(
      file, ":", 1 + std::count(before.begin(), before.end(), '\n'), ":",
      nul - lineStart + 1,
      ": found a NUL byte, expected JSON in UTF-8, which has none; the file is "
      "damaged or in another encoding"));
}

} // namespace

std::string printable(std::string_view text, size_t limit) {
  std::string out;
  for (unsigned char c : text.substr(0, limit)) {
    if (c >= 0x20 && c < 0x7f)
      out += char(c);
    else
      absl::StrAppend(&out, "<", absl::Hex(c, absl::kZeroPad2), ">");
  }
  return text.size() > limit ? out + "..." : out;
}

std::string Document::place(std::string_view pointer) const {
  auto it = lines.find(std::string(pointer));
  return it == lines.end() ? file : absl::StrCat(file, ":", it->second);
}

absl::StatusOr<Document> parse(std::string_view text, std::string_view file,
                               const Limits &limits) {
  Document document;
  document.file = std::string(file);
  if (absl::Status status = checkBytes(text, document.file); !status.ok())
    return status;
  Counter counter;
  Builder builder(text, document, limits, counter);
  CountingIterator begin(text.data(), &counter);
  CountingIterator end(text.data() + text.size(), &counter);
  if (!Json::sax_parse(begin, end, &builder)) {
    if (!builder.error().ok())
      return builder.error();
    return absl::InvalidArgumentError(
        absl::StrCat(document.file, ": malformed JSON"));
  }
  return document;
}

} // namespace grok::json
