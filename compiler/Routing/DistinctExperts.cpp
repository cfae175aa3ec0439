#include "compiler/Routing/DistinctExperts.h"

#include <algorithm>
#include <numeric>

namespace grok {
namespace {

double choose(uint32_t n, uint32_t k) {
  if (k > n)
    return 0;
  double ways = 1;
  for (uint32_t i = 1; i <= k; ++i)
    ways = ways * (n - k + i) / i;
  return ways;
}

} // namespace

/// The terms of the multinomial distribution, an expert after the other:
/// placed[r][n] is what r rows on n of the experts so far add up to, each m
/// rows of one expert as share^m / m!.
std::vector<double> distinctByShares(std::span<const double> shares,
                                     uint32_t rows) {
  const uint32_t most = std::min<uint32_t>(rows, uint32_t(shares.size()));
  std::vector<std::vector<double>> placed(rows + 1,
                                          std::vector<double>(most + 1));
  placed[0][0] = 1;
  auto place = [&](double share, uint32_t distinct) {
    std::vector<std::vector<double>> next = placed;
    for (uint32_t r = 0; r <= rows; ++r)
      for (uint32_t n = 0; n + distinct <= most; ++n) {
        double term = placed[r][n];
        for (uint32_t m = 1; r + m <= rows; ++m) {
          term *= share / m;
          next[r + m][n + distinct] += term;
        }
      }
    placed = std::move(next);
  };
  for (double share : shares)
    place(share, 1);
  place(std::max(0.0, 1 - std::accumulate(shares.begin(), shares.end(), 0.0)),
        0);
  double orders = 1; // of the rows
  for (uint32_t r = 2; r <= rows; ++r)
    orders *= r;
  std::vector<double> probability = placed[rows];
  for (double &p : probability)
    p *= orders;
  return probability;
}

/// Row after row: of n distinct ones so far, a row adds j that are new.
std::vector<double> distinctBySets(uint32_t kept, uint32_t dropped,
                                   uint32_t perRow, uint32_t rows) {
  const uint32_t most = std::min(kept, rows * perRow);
  std::vector<double> probability(most + 1);
  probability[0] = 1;
  for (uint32_t r = 0; r != rows; ++r) {
    std::vector<double> next(most + 1);
    for (uint32_t n = 0; n <= most; ++n)
      for (uint32_t j = 0; j <= perRow && n + j <= most; ++j)
        next[n + j] += probability[n] * choose(kept - n, j) *
                       choose(n + dropped, perRow - j) /
                       choose(kept + dropped, perRow);
    probability = std::move(next);
  }
  return probability;
}

} // namespace grok
