// ZIP archives whose entries are stored as they are, so that they can be
// mapped. A library would read them; this says where they lie.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "absl/status/statusor.h"

namespace grok {

struct ZipEntry {
  uint64_t offset = 0, size = 0; // of the content, from the start of the file
};

/// The entries by name. InvalidArgument, naming `path`, the entry and what was
/// found and expected, unless all are stored without compression and
/// encryption, agree in both of the archive's records, and lie apart.
absl::StatusOr<std::map<std::string, ZipEntry>>
readZip(std::span<const uint8_t> file, const std::string &path);

} // namespace grok
