// Reading the keys of a config.json: several spellings of one key, null as
// absent, every error with its line.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "runtime/bundle/Json.h"

namespace grok {

/// Reads the object at `pointer` of a document. The first error is kept and
/// later reads return nothing, so callers read everything and ask once.
class ConfigReader {
public:
  using Names = std::initializer_list<const char *>;

  ConfigReader(const json::Document &document, std::string pointer);

  /// The first of `names` that is there and not null; all of them count as
  /// known. Two that are there with different values are an error.
  const nlohmann::json *find(Names names);
  /// The key under which find (or a read) found its value last; the first of
  /// the names if there was none.
  const std::string &foundKey() const { return key_; }

  /// Values, if the key is there. Integers must be written as integers; `low`
  /// and `high` are inclusive.
  std::optional<int64_t> integer(Names names, int64_t low, int64_t high);
  std::optional<double> number(Names names);
  std::optional<bool> boolean(Names names);
  std::optional<std::string> string(Names names);

  /// The same for keys that must be there.
  uint32_t requireInteger(Names names, int64_t low, int64_t high,
                          const std::string &meaning);
  double requireNumber(Names names, const std::string &meaning);

  /// Keys that are known to mean nothing for inference.
  void ignore(Names names);

  bool has(const char *name) const;
  bool ok() const { return status_.ok(); }
  /// "FILE:LINE: key 'x': found F, expected E" for the key of `name`.
  void fail(const std::string &name, const std::string &found,
            const std::string &expected);
  /// Keeps a status that is no success.
  void fail(absl::Status status);
  /// The first error, or one about a key that nobody asked for.
  absl::Status finish();

private:
  std::string pointerTo(const std::string &name) const;
  std::string place(const std::string &name) const;
  std::string path(const std::string &name) const;
  void wrongType(const nlohmann::json &value, const std::string &expected);
  void missing(Names names, const std::string &meaning);
  std::string nearest(const std::string &name) const;

  const json::Document &document_;
  std::string pointer_;
  const nlohmann::json *object_ = nullptr;
  std::string key_;
  std::set<std::string> known_;
  absl::Status status_;
};

} // namespace grok
