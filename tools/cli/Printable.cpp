#include "tools/cli/Printable.h"

#include <unistd.h>

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

/// Calls `put` with pieces of the text, those of control characters replaced.
/// Takes no memory.
template <typename Put>
void escapeControls(std::string_view text, bool keepLines, const Put &put) {
  constexpr char kDigits[] = "0123456789abcdef";
  while (!text.empty()) {
    const size_t control =
        keepLines && text.front() == '\n' ? 0 : controlBytes(text);
    for (unsigned char c : text.substr(0, control)) {
      const char escaped[] = {'\\', 'x', kDigits[c >> 4], kDigits[c & 15]};
      put(std::string_view(escaped, sizeof(escaped)));
    }
    const size_t plain = control == 0;
    put(text.substr(0, plain));
    text.remove_prefix(control + plain);
  }
}

std::string escaped(std::string_view text, bool keepLines) {
  std::string out;
  escapeControls(text, keepLines,
                 [&](std::string_view piece) { out += piece; });
  return out;
}

} // namespace

std::string printable(std::string_view text) {
  return escaped(text, /*keepLines=*/true);
}

void writePrintable(std::string_view text) {
  escapeControls(text, /*keepLines=*/true, [](std::string_view piece) {
    [[maybe_unused]] ssize_t written =
        ::write(STDERR_FILENO, piece.data(), piece.size());
  });
}

std::string printableLine(std::string_view text) {
  return escaped(text, /*keepLines=*/false);
}

} // namespace grok::cli
