// How many distinct experts the rows of a batch choose, when each chooses for
// itself.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace grok {

/// The probability of each number of distinct experts, from 0 on. A row chooses
/// expert e with probability shares[e]; with what is missing to 1 it needs
/// none.
std::vector<double> distinctByShares(std::span<const double> shares,
                                     uint32_t rows);

/// The same when a row chooses any `perRow` different ones of `kept` experts
/// and `dropped` others, which need no weights. `perRow` is at most their sum.
std::vector<double> distinctBySets(uint32_t kept, uint32_t dropped,
                                   uint32_t perRow, uint32_t rows);

} // namespace grok
