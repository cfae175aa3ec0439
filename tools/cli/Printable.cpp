#include "tools/cli/Printable.h"

#include "absl/strings/str_format.h"

namespace grok::cli {
namespace {

/// The bytes of the control character at the start; 0: it is none. C1 is
/// U+0080 to U+009F.
size_t controlBytes(std::string_view text) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x20 || byte(0) == 0x7f)
    return 1;
  return text.size() > 1 && byte(0) == 0xc2 && byte(1) >= 0x80 && byte(1) < 0xa0
             ? 2
             : 0;
}

std::string escapeControls(std::string_view text, bool keepLines) {
  std::string out;
  while (!text.empty()) {
    const size_t control =
        keepLines && text.front() == '\n' ? 0 : controlBytes(text);
    for (unsigned char c : text.substr(0, control))
      absl::StrAppendFormat(&out, "\\x%02x", c);
    if (control == 0)
      out += text.front();
    text.remove_prefix(control ? control : 1);
  }
  return out;
}

} // namespace

std::string printable(std::string_view text) {
  return escapeControls(text, /*keepLines=*/true);
}

std::string printableLine(std::string_view text) {
  return escapeControls(text, /*keepLines=*/false);
}

} // namespace grok::cli
