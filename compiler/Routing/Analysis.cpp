#include <algorithm>
#include <bit>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compiler/Routing/Routing.h"

namespace grok {
namespace {

/// How many of the positions 0 .. count - 1 are `residue` modulo `period`.
uint64_t positionsWith(uint32_t residue, uint64_t period, uint64_t count) {
  return count > residue ? (count - residue - 1) / period + 1 : 0;
}

} // namespace

uint32_t decidingBits(const HashRouting &h) {
  if (!std::has_single_bit(h.numGroups))
    return h.hashBits;
  uint32_t index =
      h.indexMask ? h.indexShift + uint32_t(std::bit_width(h.indexMask)) : 0;
  uint32_t group = uint32_t(std::countr_zero(h.numGroups));
  return std::min(h.hashBits, std::max(index, group));
}

uint32_t decidingOffset(const HashRouting &h) {
  return h.positionOffsetMask &
         uint32_t(std::bit_ceil(uint64_t(h.indexMask) + 1) - 1);
}

uint32_t HashAnalysis::reachableExperts() const {
  return uint32_t(std::count_if(expertOutcomes.begin(), expertOutcomes.end(),
                                [](uint64_t n) { return n != 0; }));
}

absl::StatusOr<HashAnalysis> analyzeHash(const ModelConfig &model) {
  if (!model.hash)
    return absl::InvalidArgumentError("found a learned router, expected hash "
                                      "routing: only a hash can be enumerated");
  const HashRouting &h = *model.hash;
  HashAnalysis a;
  a.bits = decidingBits(h);
  // An id's product takes every multiple of 2^tied equally often, so the low
  // `tied` bits are the position's alone; none are if the multiplier is odd.
  uint32_t tied =
      std::min<uint32_t>(a.bits, uint32_t(std::countr_zero(h.tokenMultiplier)));
  // Positions act through their low bits only: those of the offset that the
  // index keeps, and the tied ones.
  uint32_t positionBits =
      std::max<uint32_t>(uint32_t(std::bit_width(decidingOffset(h))), tied);
  if (a.bits > kMaxHashBits || positionBits + a.bits - tied > kMaxHashBits + 4)
    return absl::FailedPreconditionError(
        absl::StrCat("found ", a.bits, " hash bits and ", positionBits,
                     " position bits that decide the expert, expected at most ",
                     kMaxHashBits, " and 4, which can be enumerated"));
  a.expertOutcomes.assign(model.numExperts, 0);
  bool list = (uint64_t(1) << a.bits) <= kMaxListedClasses;
  a.classesOfExpert.resize(model.numExperts);
  uint64_t period = uint64_t(1) << positionBits;
  for (uint32_t p = 0; p < period && p < model.maxPositions; ++p) {
    uint64_t weight = positionsWith(p, period, model.maxPositions);
    uint32_t first =
        (p * h.positionMultiplier) & uint32_t((uint64_t(1) << tied) - 1);
    for (uint64_t v = first; v < uint64_t(1) << a.bits;
         v += uint64_t(1) << tied) {
      uint32_t expert = h.expertOf(uint32_t(v), p);
      a.expertOutcomes[expert] += weight;
      a.outcomes += weight;
      if (list)
        a.classesOfExpert[expert].push_back(uint32_t(v));
    }
  }
  for (std::vector<uint32_t> &classes : a.classesOfExpert) {
    std::sort(classes.begin(), classes.end());
    classes.erase(std::unique(classes.begin(), classes.end()), classes.end());
  }
  return a;
}

LoadSummary summarizeLoad(const ModelConfig &model,
                          std::span<const uint64_t> load) {
  LoadSummary s;
  uint32_t groups = model.hash ? model.hash->numGroups : 1;
  uint32_t perGroup = model.numExperts / groups;
  double total = 0;
  for (uint64_t n : load)
    total += double(n);
  s.expertShare.assign(model.numExperts, 0);
  s.groupShare.assign(groups, 0);
  for (uint32_t e = 0; e < model.numExperts && total > 0; ++e) {
    s.expertShare[e] = double(load[e]) / total;
    s.groupShare[e / perGroup] += s.expertShare[e];
  }
  auto busiest = [](const std::vector<double> &share) {
    return uint32_t(std::max_element(share.begin(), share.end()) -
                    share.begin());
  };
  s.busiestExpert = busiest(s.expertShare);
  s.busiestGroup = busiest(s.groupShare);
  s.expertSkew = s.expertShare[s.busiestExpert] * model.numExperts;
  s.groupSkew = s.groupShare[s.busiestGroup] * groups;
  return s;
}

std::vector<std::string> skewWarnings(const ModelConfig &model,
                                      const LoadSummary &s) {
  std::vector<std::string> out;
  if (s.expertSkew > kSkewWarning)
    out.push_back(absl::StrFormat("expert %d takes %.1f %% of the tokens, %.1f "
                                  "times the mean of all %d experts",
                                  s.busiestExpert,
                                  100 * s.expertShare[s.busiestExpert],
                                  s.expertSkew, model.numExperts));
  if (s.groupSkew > kSkewWarning)
    out.push_back(absl::StrFormat("group %d takes %.1f %% of the tokens, %.1f "
                                  "times the mean of all %d groups",
                                  s.busiestGroup,
                                  100 * s.groupShare[s.busiestGroup],
                                  s.groupSkew, uint32_t(s.groupShare.size())));
  return out;
}

absl::StatusOr<std::vector<uint64_t>> countLoad(const ModelConfig &model,
                                                std::span<const int64_t> ids) {
  if (!model.hash)
    return absl::InvalidArgumentError(
        "found a learned router, expected hash routing: what a learned router "
        "chooses is measured by running it");
  std::vector<uint64_t> load(model.numExperts, 0);
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || ids[i] >= int64_t(model.vocabSize))
      return absl::InvalidArgumentError(absl::StrCat(
          "id ", i, " of the sequence: found ", ids[i],
          ", expected an id of the vocabulary, 0 .. ", model.vocabSize - 1));
    uint32_t position = uint32_t(i);
    ++load[model.hash->expertOf(model.hash->hash(uint32_t(ids[i]), position),
                                position)];
  }
  return load;
}

} // namespace grok
