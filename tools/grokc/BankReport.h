// Which bytes of a blob lie in which bank, and which experts that run together
// share one. Everything is read from the plan's extents, nothing from the
// policy that placed them.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/bundle/PlanTables.h"

namespace grok::grokc {

/// Bytes of an expert's matrices in each bank, all layers.
struct ExpertBanks {
  uint32_t expert = 0, group = 0;
  std::vector<uint64_t> bytes;
};

/// Hash classes that lead to the same kept experts, and the bytes of those in
/// each bank. Several experts if the position decides between them; none if
/// what the classes lead to is dropped.
struct ClassBanks {
  std::vector<uint32_t> classes, experts;
  std::vector<uint64_t> bytes;
};

/// Two experts of one group of which `slots` slots read matrices of the same
/// kind from the same bank.
struct BankCollision {
  uint32_t group = 0, first = 0, second = 0, slots = 0;
};

struct BankReport {
  std::vector<ExpertBanks> experts; // kept ones, ascending
  std::vector<ClassBanks>
      classes; // empty without hash routing, or with too many classes to list
  std::vector<BankCollision> collisions;
};

/// Experts run together if they are of one group; with a learned router all
/// are.
BankReport bankReport(const ModelConfig &model, const PlanTables &plan);

} // namespace grok::grokc
