// Small pieces of text that the tables share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace grok::grokc {

/// "0-3, 8, 10" for ascending numbers; "none" for no numbers. Cut after a
/// line's worth of them.
std::string ranges(const std::vector<uint32_t> &numbers);

} // namespace grok::grokc
