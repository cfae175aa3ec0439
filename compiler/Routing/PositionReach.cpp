#include "compiler/Routing/PositionReach.h"

#include <algorithm>

#include "compiler/Routing/Routing.h"

namespace grok {

PositionReach::PositionReach(const ModelConfig &model)
    : hash_(*model.hash), numExperts_(model.numExperts) {
  const uint32_t bits = decidingBits(hash_);
  mask_ = bits >= 32 ? ~0u : (1u << bits) - 1;
  for (uint32_t id = 0; id != model.vocabSize; ++id)
    residues_.push_back((id * hash_.tokenMultiplier) & mask_);
  std::sort(residues_.begin(), residues_.end());
  residues_.erase(std::unique(residues_.begin(), residues_.end()),
                  residues_.end());
}

const std::vector<uint32_t> &PositionReach::at(uint32_t position) {
  const Class key = {(position * hash_.positionMultiplier) & mask_,
                     position & decidingOffset(hash_)};
  auto [found, isNew] = known_.try_emplace(key);
  if (!isNew)
    return found->second;
  std::vector<bool> reached(numExperts_);
  for (uint32_t residue : residues_)
    reached[hash_.expertOf((residue + key.first) & mask_, position)] = true;
  for (uint32_t e = 0; e != numExperts_; ++e)
    if (reached[e])
      found->second.push_back(e);
  return found->second;
}

std::vector<uint32_t> PositionReach::before(uint32_t positions) {
  std::vector<bool> reached(numExperts_);
  for (uint32_t position = 0; position != positions; ++position)
    for (uint32_t e : at(position))
      reached[e] = true;
  std::vector<uint32_t> all;
  for (uint32_t e = 0; e != numExperts_; ++e)
    if (reached[e])
      all.push_back(e);
  return all;
}

} // namespace grok
