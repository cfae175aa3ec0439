// Text that arrives in pieces of any bytes, for places that want characters.
#pragma once

#include <string>
#include <string_view>

namespace grok {

/// U+FFFD: stands for what is no character.
inline constexpr std::string_view kReplacement = "\xef\xbf\xbd";

/// How many bytes of `text` are certain: what remains may become a character
/// with the bytes that follow.
size_t completeBytes(std::string_view text);

/// How many bytes of `text`, from its begin, are whole characters.
size_t validBytes(std::string_view text);

/// Text with U+FFFD in place of what is no UTF-8: one for each of the longest
/// beginnings of a character, or else for each byte, as Unicode recommends.
std::string replaceInvalid(std::string_view text);

} // namespace grok
