// JSON with places: nlohmann's parser through its SAX interface, which never
// throws, keeps the line of every value, and rejects duplicate keys.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

namespace grok::json {

/// Leaves a tree empty. nlohmann's destructor takes memory to take a tree
/// apart, and ends the process where there is none; of an empty one it takes
/// none.
template <typename Json> void takeApart(Json &tree) {
  if (!tree.is_structured())
    return;
  for (Json &child : tree) // as deep as Limits allow
    takeApart(child);
  tree.clear();
}

/// Makes an object without members of `out`: a null that is given a member is
/// left broken where memory is short.
inline nlohmann::json &startObject(nlohmann::json &out) {
  return out = nlohmann::json::object();
}

struct Document {
  Document() = default;
  Document(Document &&) = default;
  Document &operator=(Document &&) = default;
  ~Document() { takeApart(root); }

  nlohmann::json root;
  std::string file;
  /// Line (from 1) of each object member's key, by JSON pointer
  /// ("/expert_routing/type"); array elements too.
  std::map<std::string, unsigned> lines;

  /// "config.json:12" for a pointer that is there, else "config.json".
  std::string place(std::string_view pointer) const;
};

struct Limits {
  unsigned depth = 64;
  bool lines =
      true; // off for large machine-written headers: `lines` stays empty
};

/// The first `limit` bytes of text that may be anything, for messages:
/// printable ASCII and not longer than a line or two.
std::string printable(std::string_view text, size_t limit = 200);

/// InvalidArgument "FILE:LINE:COLUMN: what was found, what was expected" on
/// malformed text, a NUL or a byte order mark, duplicate keys, invalid UTF-8,
/// NaN, trailing bytes or too deep nesting.
absl::StatusOr<Document> parse(std::string_view text, std::string_view file,
                               const Limits &limits = {});

} // namespace grok::json
