// Token ids on the command line: a list, or a file of them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace grok::grokrun {

/// `argument` is "1,2,3" or the name of a file that holds integers separated by
/// commas or white space. InvalidArgument "--ids: ..." or "FILE:LINE: ..." for
/// anything else than integers from 0 to 2^31 - 1, and for none at all.
absl::StatusOr<std::vector<int32_t>> readIds(const std::string &argument);

/// Ids separated by commas or white space; `text` begins at `line` of `file`.
absl::StatusOr<std::vector<int32_t>>
parseIds(std::string_view text, const std::string &file, size_t line);

/// "1,2,3".
std::string joinIds(const std::vector<int32_t> &ids);

} // namespace grok::grokrun
