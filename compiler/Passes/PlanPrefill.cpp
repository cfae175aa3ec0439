// --plan-prefill: the passes that take prompts.
#include <algorithm>

#include "mlir/IR/Builders.h"

#include "compiler/Passes/Passes.h"
#include "ir/Plan/PlanFacts.h"

namespace grok {
#define GEN_PASS_DEF_PLANPREFILL
#include "compiler/Passes/Passes.h.inc"
} // namespace grok

using namespace mlir;
using namespace grok;
using namespace grok::plan;

namespace {

/// More hide no more of the memory's latency.
constexpr uint32_t kDesiredStages = 4;

struct PlanPrefill : grok::impl::PlanPrefillBase<PlanPrefill> {
  using PlanPrefillBase::PlanPrefillBase;
  void runOnOperation() override;

private:
  LogicalResult check();
  LogicalResult checkWeights();
  bool wanted();
  FailureOr<PrefillTile> chooseTile();
  uint64_t addRegions(const PrefillShape &shape);
  LogicalResult checkDevice(uint64_t prefillBytes);
};

} // namespace

LogicalResult PlanPrefill::check() {
  DeviceOp device = getOperation();
  if (device.find<PrefillOp>())
    return device.emitOpError("has its prefill planned already");
  if (!device.find<ArenaOp>())
    return device.emitOpError("has no memory planned; run --plan-memory first");
  return success();
}

LogicalResult PlanPrefill::checkWeights() {
  DeviceOp device = getOperation();
  CodeKind codes = device.find<BoundsOp>().getCodes();
  if (codes == CodeKind::None)
    return success();
  return device.emitError("found weights of ")
         << stringifyCodeKind(codes)
         << ", expected 16-bit ones, which alone prefill multiplies; compile "
            "with --max-prefill 0";
}

bool PlanPrefill::wanted() {
  DeviceOp device = getOperation();
  if (maxPrefill == 0 || device.find<TargetOp>().getSm() == 0)
    return false;
  ModelConfig model = sizesOf(device);
  uint32_t group = model.numHeads / model.numKvHeads;
  if (attentionHolds(model.headDim, group))
    return true;
  device.emitRemark("found ")
      << group << " query heads of " << model.headDim
      << " dimensions for a kv head, more than the attention of prefill holds: "
         "prompts go through the decode kernel";
  return false;
}

/// As many stages as fit, at least two: one is loaded while one is used.
FailureOr<PrefillTile> PlanPrefill::chooseTile() {
  DeviceOp device = getOperation();
  auto target = device.find<TargetOp>();
  auto bounds = device.find<BoundsOp>();
  PrefillTile tile;
  tile.tokens = uint32_t(std::min<uint64_t>(
      maxPrefill, uint64_t(bounds.getBatch()) * bounds.getSeq()));
  bool wide =
      target.getSm() >= 90 && bounds.getActivations() == OperandKind::Single;
  tile.tileTokens = wide ? kMostTileTokens : kTileTokenStep;
  uint64_t needed = 0;
  for (tile.stages = kDesiredStages; tile.stages >= 2; --tile.stages) {
    needed = productSharedBytes(prefillShape(device, tile));
    if (needed <= uint64_t(target.getSharedBytes())) {
      tile.sharedBytes = uint32_t(needed);
      return tile;
    }
  }
  return device.emitError("prefill needs ")
         << needed << " bytes of shared memory a block, but "
         << target.getName() << " has " << target.getSharedBytes()
         << "; compile with --max-prefill 0";
}

/// Before the KV cache, which moves up. Bytes that they take.
uint64_t PlanPrefill::addRegions(const PrefillShape &shape) {
  DeviceOp device = getOperation();
  RegionOp kv;
  for (RegionOp region : device.getBody().front().getOps<RegionOp>())
    kv = region; // the last one
  const uint64_t begin = kv.getOffset();
  uint64_t at = begin;
  OpBuilder b(kv);
  for (const RegionSize &region : prefillRegions(shape).regions) {
    if (region.bytes)
      RegionOp::create(b, device.getLoc(), region.name, at, region.bytes,
                       PhaseKind(region.firstPhase),
                       PhaseKind(region.lastPhase));
    at += alignUp(region.bytes, kRegionAlign);
  }
  kv.setOffset(at);
  auto arena = device.find<ArenaOp>();
  arena.setBytes(arena.getBytes() + (at - begin));
  return at - begin;
}

LogicalResult PlanPrefill::checkDevice(uint64_t prefillBytes) {
  DeviceOp device = getOperation();
  auto target = device.find<TargetOp>();
  uint64_t blob = device.find<PlacementOp>().getBlobBytes(),
           arena = device.find<ArenaOp>().getBytes();
  // Without it the plan does not fit either, and plan-memory has said so.
  if (blob + arena <= uint64_t(target.getMemoryBytes()) ||
      blob + arena - prefillBytes > uint64_t(target.getMemoryBytes()))
    return success();
  auto report = [&](InFlightDiagnostic diagnostic) {
    diagnostic << "prefill adds " << prefillBytes
               << " bytes to the plan, which then needs " << blob + arena
               << " of device memory, but " << target.getName() << " has "
               << target.getMemoryBytes();
    return diagnostic;
  };
  if (allowOversize) {
    report(device.emitRemark());
    return success();
  }
  return report(device.emitError())
         << "; lower --max-prefill, or allow it with --allow-oversize";
}

void PlanPrefill::runOnOperation() {
  if (failed(check()))
    return signalPassFailure();
  if (!wanted())
    return;
  if (failed(checkWeights()))
    return signalPassFailure();
  FailureOr<PrefillTile> tile = chooseTile();
  if (failed(tile))
    return signalPassFailure();
  DeviceOp device = getOperation();
  uint64_t bytes = addRegions(prefillShape(device, *tile));
  OpBuilder b(device.find<ArenaOp>());
  PrefillOp::create(b, device.getLoc(), tile->tokens, tile->tileTokens,
                    tile->stages, tile->sharedBytes);
  if (failed(checkDevice(bytes)))
    signalPassFailure();
}
