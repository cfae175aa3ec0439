#include "compiler/Routing/PositionReach.h"

#include <algorithm>
#include <bit>

#include "absl/strings/str_cat.h"
#include "compiler/Routing/Routing.h"

namespace grok {
namespace {

/// Pairs of an id's and a position's part of the hash, and of a position's and
/// an expert.
constexpr uint64_t kMostOutcomes = 1 << 30, kMostReached = 1 << 26;

/// Positions that are apart by it are alike to the hash.
uint64_t periodOf(const HashRouting &hash) {
  return uint64_t(1) << std::max(
             decidingBits(hash),
             uint32_t(std::bit_width(decidingOffset(hash))));
}

} // namespace

std::optional<std::string> PositionReach::tooMany(const ModelConfig &model,
                                                  uint32_t positions) {
  const uint64_t classes = std::min<uint64_t>(positions, periodOf(*model.hash)),
                 ids = std::min<uint64_t>(
                     model.vocabSize, uint64_t(1) << decidingBits(*model.hash));
  if (classes * ids <= kMostOutcomes &&
      classes * model.numExperts <= kMostReached)
    return std::nullopt;
  return absl::StrCat("found ", classes, " positions that ", ids,
                      " ids lead to ", model.numExperts,
                      " experts from, expected at most ", kMostOutcomes,
                      " pairs of position and id and ", kMostReached,
                      " of position and expert, which can be enumerated");
}

PositionReach::PositionReach(const ModelConfig &model)
    : hash_(*model.hash), numExperts_(model.numExperts),
      period_(periodOf(hash_)) {
  const uint32_t bits = decidingBits(hash_);
  mask_ = bits >= 32 ? ~0u : (1u << bits) - 1;
  std::vector<uint32_t> residues;
  for (uint32_t id = 0; id != model.vocabSize; ++id)
    residues.push_back((id * hash_.tokenMultiplier) & mask_);
  std::sort(residues.begin(), residues.end());
  for (uint32_t residue : residues) {
    if (residues_.empty() || residues_.back().first != residue)
      residues_.emplace_back(residue, 0);
    ++residues_.back().second;
  }
}

const PositionReach::Reach &PositionReach::at(uint32_t position) {
  const Class key = {(position * hash_.positionMultiplier) & mask_,
                     position & decidingOffset(hash_)};
  auto [found, isNew] = known_.try_emplace(key);
  if (!isNew)
    return found->second;
  std::vector<uint32_t> ids(numExperts_);
  for (auto [residue, count] : residues_)
    ids[hash_.expertOf((residue + key.first) & mask_, position)] += count;
  for (uint32_t e = 0; e != numExperts_; ++e)
    if (ids[e]) {
      found->second.experts.push_back(e);
      found->second.ids.push_back(ids[e]);
    }
  return found->second;
}

std::vector<uint32_t> PositionReach::before(uint32_t positions) {
  std::vector<bool> reached(numExperts_);
  const auto end = uint32_t(std::min<uint64_t>(positions, period_));
  for (uint32_t position = 0; position != end; ++position)
    for (uint32_t e : at(position).experts)
      reached[e] = true;
  std::vector<uint32_t> all;
  for (uint32_t e = 0; e != numExperts_; ++e)
    if (reached[e])
      all.push_back(e);
  return all;
}

} // namespace grok
