// Words for what the passes on routing report. Plain C++.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace grok {

/// "0-3, 8, 16-19" of ascending numbers; "none" of none.
std::string rangesText(std::span<const uint32_t> numbers);
/// The same, cut after `limit` ranges: "0, 2, 4 and 13 more".
std::string rangesText(std::span<const uint32_t> numbers, size_t limit);

/// "6.25 %" of a share of one.
std::string percentText(double share);

} // namespace grok
