// Which experts a row can choose where: every id of the vocabulary at every
// position, not a sample of them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/bundle/ModelConfig.h"

namespace grok {

/// The experts that some id leads to at a position. Positions whose part of the
/// hash is alike are one class and share an answer.
class PositionReach {
public:
  struct Reach {
    std::vector<uint32_t> experts; // ascending
    std::vector<uint32_t> ids;     // how many lead to each of them
  };

  /// The classes before `positions` are few enough to be enumerated with every
  /// id, in about a second; otherwise a text says how many there are.
  static std::optional<std::string> tooMany(const ModelConfig &model,
                                            uint32_t positions);
  /// `model` has hash routing.
  explicit PositionReach(const ModelConfig &model);
  const Reach &at(uint32_t position);
  /// Of all positions before `positions`, ascending.
  std::vector<uint32_t> before(uint32_t positions);

private:
  /// The part of the hash that the position adds, and its offset of the index.
  using Class = std::pair<uint32_t, uint32_t>;

  const HashRouting hash_;
  const uint32_t numExperts_;
  const uint64_t period_; // of positions' classes
  uint32_t mask_ = 0;     // of the bits of the hash that decide
  /// What ids add to the hash, and how many do.
  std::vector<std::pair<uint32_t, uint32_t>> residues_;
  std::map<Class, Reach> known_;
};

} // namespace grok
