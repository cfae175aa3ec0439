#include "tools/grokc/BankReport.h"

#include <map>

#include "compiler/Routing/Routing.h"
#include "runtime/bundle/PlanCheck.h"

namespace grok::grokc {
namespace {

uint32_t groupOf(const ModelConfig &model, uint32_t expert) {
  return model.hash ? expert / model.hash->expertsPerGroup : 0;
}

std::vector<ExpertBanks> expertBanks(const ModelConfig &model,
                                     const PlanTables &plan) {
  std::map<uint32_t, std::vector<uint64_t>> bytes;
  for (const PlanMatrix &m : plan.matrices) {
    if (!isOfExpert(m.kind))
      continue;
    std::vector<uint64_t> &banks = bytes[m.expert];
    banks.resize(plan.banks.size());
    for (const SlotExtent &s : m.slots)
      if (s.tileCount)
        banks[s.bank] += extentBytes(plan, m, s) * model.numLayers;
  }
  std::vector<ExpertBanks> out;
  for (auto &[expert, banks] : bytes)
    out.push_back({expert, groupOf(model, expert), std::move(banks)});
  return out;
}

std::vector<ClassBanks> classBanks(const ModelConfig &model,
                                   const std::vector<ExpertBanks> &experts,
                                   size_t banks) {
  if (!model.hash)
    return {};
  absl::StatusOr<HashAnalysis> analysis = analyzeHash(model);
  if (!analysis.ok() || uint64_t(1) << analysis->bits > kMaxListedClasses)
    return {};
  std::map<uint32_t, const ExpertBanks *> kept;
  for (const ExpertBanks &e : experts)
    kept[e.expert] = &e;
  std::vector<std::vector<uint32_t>> ofClass(size_t(1) << analysis->bits);
  for (uint32_t e = 0; e < model.numExperts; ++e)
    if (kept.count(e))
      for (uint32_t c : analysis->classesOfExpert[e])
        ofClass[c].push_back(e);
  std::map<std::vector<uint32_t>, std::vector<uint32_t>> classesOf;
  for (uint32_t c = 0; c < ofClass.size(); ++c)
    classesOf[ofClass[c]].push_back(c);
  std::vector<ClassBanks> out;
  for (const auto &[set, classes] : classesOf) {
    ClassBanks row{classes, set, std::vector<uint64_t>(banks)};
    for (uint32_t e : set)
      for (size_t b = 0; b < banks; ++b)
        row.bytes[b] += kept[e]->bytes[b];
    out.push_back(std::move(row));
  }
  return out;
}

/// Slots at which both matrices have an extent, in the same bank.
uint32_t sharedSlots(const PlanMatrix &a, const PlanMatrix &b) {
  uint32_t shared = 0;
  for (size_t s = 0; s < a.slots.size() && s < b.slots.size(); ++s)
    shared += a.slots[s].tileCount && b.slots[s].tileCount &&
              a.slots[s].bank == b.slots[s].bank;
  return shared;
}

std::vector<BankCollision> collisions(const PlanTables &plan,
                                      const std::vector<ExpertBanks> &experts) {
  std::vector<BankCollision> out;
  for (size_t i = 0; i < experts.size(); ++i)
    for (size_t j = i + 1; j < experts.size(); ++j) {
      if (experts[i].group != experts[j].group)
        continue;
      uint32_t slots = 0;
      for (MatrixKind kind : {MatrixKind::kGateUp, MatrixKind::kDown}) {
        const PlanMatrix *a = plan.findMatrix(kind, experts[i].expert);
        const PlanMatrix *b = plan.findMatrix(kind, experts[j].expert);
        if (a && b)
          slots = std::max(slots, sharedSlots(*a, *b));
      }
      if (slots)
        out.push_back(
            {experts[i].group, experts[i].expert, experts[j].expert, slots});
    }
  return out;
}

} // namespace

BankReport bankReport(const ModelConfig &model, const PlanTables &plan) {
  BankReport report;
  report.experts = expertBanks(model, plan);
  report.classes = classBanks(model, report.experts, plan.banks.size());
  report.collisions = collisions(plan, report.experts);
  return report;
}

} // namespace grok::grokc
