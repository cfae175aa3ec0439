// GGUF: a header with metadata and tensor infos, then the tensors' bytes.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/checkpoint/StoredTensor.h"

namespace grok {

struct GgufTensor {
  std::string name;
  ElementType type;
  StoredTensor::Coding coding;
  std::vector<uint64_t> shape; // the rows' length last, as elsewhere
  uint64_t begin = 0, end = 0; // bytes from the start of the file
};

struct GgufHeader {
  std::string architecture;              // general.architecture
  std::map<std::string, double> numbers; // metadata that is one number or flag
  std::map<std::string, std::string> texts;
  std::set<std::string> arrays; // keys of metadata that is a list
  std::vector<GgufTensor> tensors;
};

/// InvalidArgument, naming `path` and the key or tensor, unless the header is
/// well formed, every count fits the bytes that are there, names are single,
/// and the tensors lie in the file apart from each other.
absl::StatusOr<GgufHeader> parseGguf(std::span<const uint8_t> file,
                                     const std::string &path);

} // namespace grok
