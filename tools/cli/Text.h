// Small pieces of text that the tools share.
#pragma once

#include <cstdint>
#include <string>

namespace grok::cli {

/// "1,234,567".
std::string grouped(uint64_t number);

} // namespace grok::cli
