// Text that comes from a checkpoint's files, made fit for an error message.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace grok {

/// 'text', printable and not longer than a line or two whatever the file held.
std::string inQuotes(std::string_view text);

/// "[4, 2]".
std::string shapeText(std::span<const uint64_t> shape);

} // namespace grok
