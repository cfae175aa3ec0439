// The distributions of distinct experts, held against every choice of all rows.
#include "compiler/Routing/DistinctExperts.h"

#include <functional>
#include <numeric>
#include <set>

#include "gtest/gtest.h"

namespace grok {
namespace {

/// The sum over all ways in which `rows` rows choose, each one of `choices`
/// with its probability, by the number of distinct kept experts.
using Choice = std::pair<std::vector<uint32_t>, double>;
std::vector<double> oneByOne(const std::vector<Choice> &choices, uint32_t kept,
                             uint32_t rows) {
  std::vector<double> probability(kept + 1);
  std::function<void(uint32_t, std::set<uint32_t>, double)> choose =
      [&](uint32_t row, std::set<uint32_t> chosen, double likely) {
        if (row == rows) {
          probability[chosen.size()] += likely;
          return;
        }
        for (const auto &[experts, share] : choices) {
          std::set<uint32_t> more = chosen;
          for (uint32_t e : experts)
            if (e < kept)
              more.insert(e);
          choose(row + 1, more, likely * share);
        }
      };
  choose(0, {}, 1);
  return probability;
}

void expectSame(const std::vector<double> &found,
                const std::vector<double> &all) {
  for (size_t n = 0; n != all.size(); ++n)
    EXPECT_NEAR(n < found.size() ? found[n] : 0, all[n], 1e-12) << n;
  EXPECT_NEAR(std::accumulate(found.begin(), found.end(), 0.0), 1, 1e-12);
}

TEST(DistinctExperts, BySharesIsWhatEveryChoiceGives) {
  for (const std::vector<double> &shares : {std::vector<double>{1},
                                            {0.25, 0.25, 0.25, 0.25},
                                            {0.7, 0.2, 0.1},
                                            {0.5, 0.2},
                                            {}})
    for (uint32_t rows : {1u, 2u, 5u}) {
      std::vector<Choice> choices;
      double left = 1;
      for (uint32_t e = 0; e != shares.size(); ++e) {
        choices.push_back({{e}, shares[e]});
        left -= shares[e];
      }
      choices.push_back({{}, left});
      expectSame(distinctByShares(shares, rows),
                 oneByOne(choices, uint32_t(shares.size()), rows));
    }
}

TEST(DistinctExperts, BySetsIsWhatEveryChoiceGives) {
  for (auto [kept, dropped] : {std::pair{5u, 0u}, {4u, 1u}, {2u, 3u}})
    for (uint32_t rows : {1u, 2u, 4u}) {
      std::vector<Choice> choices;
      for (uint32_t a = 0; a != kept + dropped; ++a)
        for (uint32_t b = a + 1; b != kept + dropped; ++b)
          choices.push_back({{a, b}, 0.1});
      expectSame(distinctBySets(kept, dropped, 2, rows),
                 oneByOne(choices, kept, rows));
    }
}

} // namespace
} // namespace grok
