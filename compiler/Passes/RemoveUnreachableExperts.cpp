// --grok-remove-unreachable-experts: leaves out the weights that no position
// can ask for.
#include "compiler/Passes/Passes.h"
#include "compiler/Passes/RoutingText.h"
#include "compiler/Routing/Routing.h"
#include "ir/Model/ModelStructure.h"
#include "mlir/IR/Builders.h"

namespace grok {
#define GEN_PASS_DEF_REMOVEUNREACHABLEEXPERTS
#include "compiler/Passes/Passes.h.inc"
} // namespace grok

using namespace mlir;
using namespace grok;

static std::vector<uint32_t> unreachableExperts(const HashAnalysis &analysis) {
  std::vector<uint32_t> experts;
  for (uint32_t e = 0; e < analysis.expertOutcomes.size(); ++e)
    if (!analysis.reachable(e))
      experts.push_back(e);
  return experts;
}

/// Takes `dropped` out of what `experts` keeps.
static void drop(ir::ExpertsOp experts, const std::vector<uint32_t> &dropped) {
  Builder builder(experts.getContext());
  SmallVector<int32_t> kept;
  for (uint32_t e : experts.keptExperts())
    if (!llvm::binary_search(dropped, e))
      kept.push_back(int32_t(e));
  experts.setKeptAttr(builder.getDenseI32ArrayAttr(kept));
  experts.setUnreachableAttr(builder.getDenseI32ArrayAttr(
      SmallVector<int32_t>(dropped.begin(), dropped.end())));
}

namespace {

struct RemoveUnreachableExperts
    : grok::impl::RemoveUnreachableExpertsBase<RemoveUnreachableExperts> {
  using RemoveUnreachableExpertsBase::RemoveUnreachableExpertsBase;
  void runOnOperation() override;
};

} // namespace

void RemoveUnreachableExperts::runOnOperation() {
  ir::ModelOp model = getOperation();
  FailureOr<ir::ModelParts> parts = ir::matchModel(model);
  if (failed(parts))
    return signalPassFailure();
  if (!parts->hashRoute)
    return;
  absl::StatusOr<HashAnalysis> analysis =
      analyzeHash(ir::configOf(model, *parts));
  ir::ExpertsOp experts = parts->experts;
  if (!analysis.ok()) {
    experts.emitRemark("no expert is removed, since reach is not known: ")
        << std::string(analysis.status().message());
    return;
  }
  std::vector<uint32_t> unreachable = unreachableExperts(*analysis);
  if (unreachable.empty())
    return;
  experts.emitRemark(keep ? "keeps " : "removes ")
      << unreachable.size() << " of " << experts.getExperts()
      << " experts, which the hash cannot reach: " << rangesText(unreachable);
  if (!keep)
    drop(experts, unreachable);
}
