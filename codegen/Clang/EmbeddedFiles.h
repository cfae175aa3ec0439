// The headers that the compiler carries: the device library and what it shares
// with the runtime.
#pragma once

#include <span>
#include <string_view>

namespace grok::codegen {

struct EmbeddedFile {
  std::string_view path; // in the source tree
  std::string_view text;
};

std::span<const EmbeddedFile> embeddedFiles();

} // namespace grok::codegen
