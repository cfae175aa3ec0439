// Files that a person names, or that lie beside those: configs, target
// descriptions, tokenizers, ids, histograms, requests. A bundle's own are read
// by FileIO.h.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace grok {

/// What a description of a model, a part or its use may have: such files have a
/// few KB.
inline constexpr uint64_t kMaxTextBytes = uint64_t(16) << 20;
/// Of a tokenizer; Grok-2's has 10 MB.
inline constexpr uint64_t kMaxTokenizerBytes = uint64_t(256) << 20;
/// Of a list of ids.
inline constexpr uint64_t kMaxIdsBytes = uint64_t(1) << 32;

/// OK if `path` is, or leads to, a regular file; never waits for anybody.
/// fileError if it cannot be looked at, InvalidArgument if it is anything else:
/// a pipe or a terminal may never end, a device has no size.
absl::Status checkInputFile(const std::string &path);

/// The bytes of such a file; InvalidArgument if it has more than `limit`.
absl::StatusOr<std::string> readInputFile(const std::string &path,
                                          uint64_t limit);

} // namespace grok
