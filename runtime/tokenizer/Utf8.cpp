#include "runtime/tokenizer/Utf8.h"

#include <algorithm>
#include <cstdint>

namespace grok {
namespace {

/// Bytes that a character with this first byte has; 0: none begins so.
size_t lengthOf(uint8_t lead) {
  if (lead < 0x80)
    return 1;
  if (lead < 0xc2 || lead > 0xf4)
    return 0;
  return lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
}

/// Of the first character of `text`, how many bytes are as they may be.
size_t goodBytes(std::string_view text) {
  uint8_t lead = uint8_t(text[0]);
  size_t length = lengthOf(lead), good = length ? 1 : 0;
  // The second byte's range excludes overlong forms, surrogates and what is
  // above U+10FFFF.
  uint8_t low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
  uint8_t high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
  while (good && good < length && good < text.size()) {
    uint8_t byte = uint8_t(text[good]);
    if (byte < low || byte > high)
      break;
    low = 0x80;
    high = 0xbf;
    ++good;
  }
  return good;
}

} // namespace

size_t completeBytes(std::string_view text) {
  // A character has at most 4 bytes, so only the last 3 can be a beginning.
  for (size_t back = 1; back <= std::min<size_t>(3, text.size()); ++back) {
    std::string_view tail = text.substr(text.size() - back);
    if (lengthOf(uint8_t(tail[0])) > back && goodBytes(tail) == back)
      return text.size() - back;
  }
  return text.size();
}

size_t validBytes(std::string_view text) {
  size_t valid = 0;
  while (valid < text.size()) {
    std::string_view rest = text.substr(valid);
    size_t good = goodBytes(rest);
    if (good == 0 || good != lengthOf(uint8_t(rest[0])))
      break;
    valid += good;
  }
  return valid;
}

std::string replaceInvalid(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    size_t good = goodBytes(text);
    if (good && good == lengthOf(uint8_t(text[0])))
      out += text.substr(0, good);
    else
      out += kReplacement;
    text.remove_prefix(std::max<size_t>(good, 1));
  }
  return out;
}

} // namespace grok
