// What taking a batch's prompts cannot do without, whoever does it: the
// floating-point operations, and the bytes that are read and written once.
#pragma once

#include <span>
#include <vector>

#include "runtime/bundle/PlanTables.h"
#include "runtime/common/StepWork.h"

namespace grok {

/// Operations of a prefill by what they belong to: two a product and sum.
struct PrefillFlops {
  double projections = 0; // qkv and attn_out
  double attention = 0;   // causal: scores and weighted values
  double experts = 0, denseMlp = 0;
  double router = 0;
  double head = 0; // of each row's last position
  double total() const {
    return projections + attention + experts + denseMlp + router + head;
  }
};

struct PrefillWork {
  PrefillFlops flops;
  StepBytes bytes;
  /// Distinct experts, summed over the layers: counted with hash routing, all
  /// kept ones with a learned router.
  double experts = 0;
};

/// Every row's ids from position 0 on, and one id chosen for each.
PrefillWork prefillWork(const ModelConfig &model, const PlanTables &plan,
                        std::span<const std::vector<int32_t>> rows,
                        uint32_t kvElementBytes);

} // namespace grok
