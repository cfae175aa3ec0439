// --grok-prune-experts: drops the least used part of the experts, by a
// measured histogram or by the exact reach of the hash.
#include "compiler/Passes/PruneExperts.h"
#include "compiler/Passes/RoutingText.h"
#include "compiler/Routing/Routing.h"
#include "ir/Model/ModelStructure.h"
#include "mlir/IR/Builders.h"
#include "runtime/bundle/InputFile.h"

namespace grok {
#define GEN_PASS_DEF_PRUNEEXPERTS
#include "compiler/Passes/Passes.h.inc"
} // namespace grok

using namespace mlir;
using namespace grok;

namespace {

struct PruneExperts : grok::impl::PruneExpertsBase<PruneExperts> {
  using PruneExpertsBase::PruneExpertsBase;
  PruneExperts(double ratioOption, std::vector<uint64_t> counts)
      : given(std::move(counts)) {
    ratio = ratioOption;
  }
  PruneExperts(const PruneExperts &other) = default;
  void runOnOperation() override;

private:
  FailureOr<std::vector<uint64_t>> readHistogram(const ModelConfig &config);

  std::optional<std::vector<uint64_t>> given;
};

} // namespace

std::unique_ptr<Pass>
grok::createPruneExpertsFor(double ratio, std::vector<uint64_t> histogram) {
  return std::make_unique<PruneExperts>(ratio, std::move(histogram));
}

/// The counts at hand, or of the option's file; none without either.
FailureOr<std::vector<uint64_t>>
PruneExperts::readHistogram(const ModelConfig &config) {
  if (given)
    return *given;
  if (histogram.empty())
    return std::vector<uint64_t>();
  absl::StatusOr<std::string> text = readInputFile(histogram, kMaxTextBytes);
  if (!text.ok())
    return emitError(getOperation().getLoc(), "histogram: ")
           << std::string(text.status().message());
  absl::StatusOr<std::vector<uint64_t>> counts =
      parseHistogram(*text, histogram.getValue(), config);
  if (!counts.ok())
    return emitError(getOperation().getLoc(),
                     std::string(counts.status().message()));
  return *std::move(counts);
}

void PruneExperts::runOnOperation() {
  ir::ModelOp model = getOperation();
  FailureOr<ir::ModelParts> parts = ir::matchModel(model);
  if (failed(parts))
    return signalPassFailure();
  ModelConfig config = ir::configOf(model, *parts);
  FailureOr<std::vector<uint64_t>> counts = readHistogram(config);
  if (failed(counts))
    return signalPassFailure();
  absl::StatusOr<PruningChoice> choice = choosePruned(config, ratio, *counts);
  ir::ExpertsOp experts = parts->experts;
  if (!choice.ok()) {
    experts.emitError(std::string(choice.status().message()));
    return signalPassFailure();
  }
  if (choice->dropped.empty())
    return;

  SmallVector<int32_t> kept;
  for (uint32_t e : experts.keptExperts())
    if (!llvm::binary_search(choice->dropped, e))
      kept.push_back(int32_t(e));
  experts.setKeptAttr(Builder(&getContext()).getDenseI32ArrayAttr(kept));
  experts.emitRemark("prunes ")
      << choice->dropped.size() << " of " << experts.getExperts()
      << " experts: " << rangesText(choice->dropped) << "; keeps "
      << rangesText(experts.keptExperts()) << "; "
      << percentText(choice->touchedShare)
      << (config.hash ? " of the tokens lose their expert"
                      : " of the chosen experts are lost");
}
