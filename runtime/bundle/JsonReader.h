// Reading the members of a JSON object with every error placed: wrong types,
// missing and unknown keys.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "runtime/bundle/Json.h"

namespace grok::json {

/// Reads the object at a pointer of a document. The first error is kept and
/// later reads do nothing, so callers read everything and ask once.
class ObjectReader {
public:
  /// `pointer` names the object ("" is the root).
  ObjectReader(const Document &document, std::string pointer);

  void u32(const std::string &key, uint32_t &out);
  void u64(const std::string &key, uint64_t &out);
  void i64(const std::string &key, int64_t &out);
  void number(const std::string &key, double &out);
  void boolean(const std::string &key, bool &out);
  void string(const std::string &key, std::string &out);
  /// One of a few words.
  template <typename Enum>
  void choice(const std::string &key, Enum &out,
              const std::vector<std::pair<std::string_view, Enum>> &words) {
    std::vector<std::string_view> names;
    for (const auto &[name, value] : words)
      names.push_back(name);
    if (int index = choiceIndex(key, names); index >= 0)
      out = words[size_t(index)].second;
  }

  /// The member, which must be there; null after an error.
  const nlohmann::json *member(const std::string &key);
  /// The member, or null if it is absent or JSON null.
  const nlohmann::json *optional(const std::string &key);
  std::string pointerTo(std::string_view key) const;
  std::string place(std::string_view key) const;

  bool ok() const { return status_.ok(); }
  /// "FILE:LINE: key 'x': found F, expected E".
  void fail(std::string_view key, std::string_view found,
            std::string_view expected);
  void fail(absl::Status status);
  /// The first error, or an error about a key that nobody asked for.
  absl::Status finish();

private:
  int choiceIndex(const std::string &key,
                  const std::vector<std::string_view> &names);

  const Document &document_;
  std::string pointer_;
  const nlohmann::json *object_ = nullptr;
  std::set<std::string> asked_;
  absl::Status status_;
};

/// A value as it stands in a file, cut to a line and printable.
std::string shown(const nlohmann::json &value);
/// A value as an error message shows it, not longer than a few words.
std::string describe(const nlohmann::json &value);

} // namespace grok::json
