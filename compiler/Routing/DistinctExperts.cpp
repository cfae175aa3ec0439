#include "compiler/Routing/DistinctExperts.h"

#include <algorithm>
#include <numeric>

namespace grok {
namespace {

/// What is less likely than this beside the likeliest is taken as impossible:
/// of many experts only so the numbers stay few.
constexpr double kImpossible = 1e-18;

/// The probabilities of `first`, `first` + 1, ...
struct Distribution {
  uint32_t first = 0;
  std::vector<double> probability;
};

/// Of so many new ones among `drawn` different ones of `fresh` new ones and
/// `old` others: hypergeometric. From the likeliest number outwards by the
/// ratios of neighbours, which no factorial overflows.
Distribution hypergeometric(uint32_t fresh, uint32_t old, uint32_t drawn) {
  auto ratio = [&](uint32_t j) { // of j + 1 to j
    return double(fresh - j) * double(drawn - j) /
           (double(j + 1) * (double(old) - drawn + j + 1));
  };
  const uint32_t least = drawn > old ? drawn - old : 0,
                 most = std::min(fresh, drawn),
                 mode = std::clamp(
                     uint32_t((double(fresh) + 1) * (double(drawn) + 1) /
                              (double(fresh) + old + 2)),
                     least, most);
  std::vector<double> below, above{1};
  for (uint32_t j = mode; j != most && above.back() > kImpossible; ++j)
    above.push_back(above.back() * ratio(j));
  double p = 1;
  for (uint32_t j = mode; j != least && p > kImpossible; --j)
    below.push_back(p /= ratio(j - 1));
  Distribution result{mode - uint32_t(below.size()), {}};
  result.probability.assign(below.rbegin(), below.rend());
  result.probability.insert(result.probability.end(), above.begin(),
                            above.end());
  const double sum = std::accumulate(result.probability.begin(),
                                     result.probability.end(), 0.0);
  for (double &each : result.probability)
    each /= sum;
  return result;
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
  const auto most = uint32_t(std::min<uint64_t>(kept, uint64_t(rows) * perRow));
  std::vector<double> probability(most + 1);
  probability[0] = 1;
  for (uint32_t r = 0; r != rows; ++r) {
    std::vector<double> next(most + 1);
    for (uint32_t n = 0; n <= most; ++n) {
      if (probability[n] <= kImpossible)
        continue;
      const Distribution added = hypergeometric(kept - n, n + dropped, perRow);
      for (size_t i = 0; i != added.probability.size(); ++i)
        next[n + added.first + i] += probability[n] * added.probability[i];
    }
    probability = std::move(next);
  }
  return probability;
}

} // namespace grok
