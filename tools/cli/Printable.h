// Text with names of files or tensors, or a file's own words, in it, made fit
// for a terminal.
#pragma once

#include <string>
#include <string_view>

namespace grok::cli {

/// Of control characters only line ends stay; others become "\x1b".
std::string printable(std::string_view text);

/// Writes such text to standard error, as a handler of signals may.
void writePrintable(std::string_view text);

/// No control character stays: what is one line, or a part of one, stays that.
std::string printableLine(std::string_view text);

} // namespace grok::cli
