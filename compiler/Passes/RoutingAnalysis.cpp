// --grok-routing-analysis: remarks on what can be known of the routing before
// any request.
#include "compiler/Passes/Passes.h"
#include "compiler/Passes/RoutingText.h"
#include "compiler/Routing/Routing.h"
#include "ir/Model/ModelStructure.h"

namespace grok {
#define GEN_PASS_DEF_ROUTINGANALYSIS
#include "compiler/Passes/Passes.h.inc"
} // namespace grok

using namespace mlir;
using namespace grok;

/// Ranges of hash classes that a remark lists.
static constexpr size_t kListedRanges = 8;

static void reportReach(ir::HashRouteOp route, const HashAnalysis &analysis) {
  std::vector<uint32_t> unreachable;
  for (uint32_t e = 0; e < analysis.expertOutcomes.size(); ++e)
    if (!analysis.reachable(e))
      unreachable.push_back(e);
  route.emitRemark("hash routing reaches ")
      << analysis.reachableExperts() << " of " << analysis.expertOutcomes.size()
      << " experts; unreachable: " << rangesText(unreachable);
}

static void reportGroups(ir::HashRouteOp route, const LoadSummary &load) {
  for (auto [group, share] : llvm::enumerate(load.groupShare))
    route.emitRemark("group ")
        << group << " takes " << percentText(share) << " of uniform tokens";
}

static void reportExperts(ir::HashRouteOp route, const HashAnalysis &analysis,
                          const LoadSummary &load) {
  for (auto [expert, share] : llvm::enumerate(load.expertShare)) {
    if (!analysis.reachable(expert))
      continue;
    InFlightDiagnostic remark = route.emitRemark("expert ");
    remark << expert << " takes " << percentText(share) << " of uniform tokens";
    const std::vector<uint32_t> &classes = analysis.classesOfExpert[expert];
    if (!classes.empty())
      remark << "; in it meet hash classes "
             << rangesText(classes, kListedRanges) << " of "
             << (uint64_t(1) << analysis.bits);
  }
}

namespace {

struct RoutingAnalysis : grok::impl::RoutingAnalysisBase<RoutingAnalysis> {
  void runOnOperation() override;
};

} // namespace

void RoutingAnalysis::runOnOperation() {
  markAllAnalysesPreserved();
  ir::ModelOp model = getOperation();
  FailureOr<ir::ModelParts> parts = ir::matchModel(model);
  if (failed(parts))
    return signalPassFailure();
  if (parts->topkRoute) {
    parts->topkRoute.emitRemark(
        "the router is learned: every expert can be reached, and its load is "
        "known only when it is measured");
    return;
  }
  ModelConfig config = ir::configOf(model, *parts);
  absl::StatusOr<HashAnalysis> analysis = analyzeHash(config);
  if (!analysis.ok()) {
    parts->hashRoute.emitRemark("reach is not known: ")
        << std::string(analysis.status().message());
    return;
  }
  LoadSummary load = summarizeLoad(config, analysis->expertOutcomes);
  reportReach(parts->hashRoute, *analysis);
  reportGroups(parts->hashRoute, load);
  reportExperts(parts->hashRoute, *analysis, load);
  for (const std::string &warning : skewWarnings(config, load))
    parts->hashRoute.emitWarning(warning);
}
