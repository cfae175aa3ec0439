// What can be chosen at each position, held against all ids one by one.
#include "compiler/Routing/PositionReach.h"

#include <algorithm>
#include <map>
#include <set>

#include "gtest/gtest.h"

namespace grok {
namespace {

ModelConfig modelOf(uint32_t vocab, const HashRouting &hash) {
  ModelConfig model;
  model.vocabSize = vocab;
  model.hash = hash;
  model.numExperts = hash.numGroups * hash.expertsPerGroup;
  model.expertsPerToken = 1;
  return model;
}

std::vector<uint32_t> oneByOne(const ModelConfig &model, uint32_t first,
                               uint32_t end) {
  std::set<uint32_t> experts;
  for (uint32_t p = first; p != end; ++p)
    for (uint32_t id = 0; id != model.vocabSize; ++id)
      experts.insert(model.hash->expertOf(model.hash->hash(id, p), p));
  return {experts.begin(), experts.end()};
}

struct Named {
  const char *name;
  uint32_t vocab;
  HashRouting hash;
};

class PositionReachTest : public testing::TestWithParam<Named> {};

TEST_P(PositionReachTest, EveryPosition) {
  const ModelConfig model = modelOf(GetParam().vocab, GetParam().hash);
  PositionReach reach(model);
  for (uint32_t p = 0; p != 200; ++p)
    ASSERT_EQ(reach.at(p).experts, oneByOne(model, p, p + 1))
        << "position " << p;
  EXPECT_EQ(reach.before(50), oneByOne(model, 0, 50));
}

TEST_P(PositionReachTest, CountsTheIds) {
  const ModelConfig model = modelOf(GetParam().vocab, GetParam().hash);
  PositionReach reach(model);
  for (uint32_t p : {0u, 1u, 77u, 199u}) {
    std::map<uint32_t, uint32_t> ids;
    for (uint32_t id = 0; id != model.vocabSize; ++id)
      ++ids[model.hash->expertOf(model.hash->hash(id, p), p)];
    std::vector<uint32_t> counts;
    for (auto [expert, count] : ids)
      counts.push_back(count);
    ASSERT_EQ(reach.at(p).ids, counts) << "position " << p;
  }
}

/// Positions repeat what those before them reach: two thousand million take no
/// longer than one period.
TEST(PositionReach, AnyNumberOfPositions) {
  const ModelConfig model =
      modelOf(512, {4, 8, 2654435761, 123456789, 6, 4, 7, 7});
  EXPECT_FALSE(PositionReach::tooMany(model, 0x7fffffff));
  EXPECT_EQ(PositionReach(model).before(0x7fffffff), oneByOne(model, 0, 64));
}

/// Neither of these counts is too many by itself.
TEST(PositionReach, TooManyPairs) {
  const HashRouting everyBit = {3, 4, 2654435761, 99, 32, 20, 3, 0};
  EXPECT_FALSE(PositionReach::tooMany(modelOf(1 << 17, everyBit), 1 << 13));
  EXPECT_TRUE(PositionReach::tooMany(modelOf(1 << 18, everyBit), 1 << 13));
  EXPECT_TRUE(PositionReach::tooMany(modelOf(1 << 17, everyBit), 1 << 14));
  const HashRouting manyExperts = {1, 65535, 1, 1, 32, 0, 65534, 0};
  EXPECT_TRUE(PositionReach::tooMany(modelOf(64, manyExperts), 1 << 13));
}

// groups, experts of a group, multipliers of id and position, hash bits, shift,
// mask, mask of the position's offset
INSTANTIATE_TEST_SUITE_P(
    Hashes, PositionReachTest,
    testing::Values(
        Named{"reference", 512, {4, 8, 2654435761, 123456789, 6, 4, 7, 0}},
        Named{"offset", 512, {4, 8, 2654435761, 123456789, 6, 4, 7, 7}},
        Named{"few ids", 5, {4, 8, 2654435761, 123456789, 6, 4, 7, 0}},
        Named{"even multiplier", 512, {4, 8, 40, 3, 6, 1, 7, 0}},
        Named{"position alone", 64, {4, 8, 0, 7, 5, 2, 7, 0}},
        Named{"offset that carries", 3, {2, 8, 1, 2, 8, 1, 6, 3}},
        Named{"all bits", 40, {3, 4, 2654435761, 99, 32, 20, 3, 0}}),
    [](const auto &info) {
      std::string name = info.param.name;
      std::replace(name.begin(), name.end(), ' ', '_');
      return name;
    });

} // namespace
} // namespace grok
