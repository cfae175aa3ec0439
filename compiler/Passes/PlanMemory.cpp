// --plan-memory: ring, shared memory, arena and KV reserve.
#include <algorithm>

#include "mlir/IR/Builders.h"

#include "compiler/Passes/Passes.h"
#include "compiler/Passes/PlanTarget.h"
#include "ir/Plan/PlanFacts.h"

namespace grok {
#define GEN_PASS_DEF_PLANMEMORY
#include "compiler/Passes/Passes.h.inc"
} // namespace grok

using namespace mlir;
using namespace grok;
using namespace grok::plan;

namespace {

/// Small enough that the stream is even, large enough that the memory doesn't
/// notice.
constexpr uint32_t kChunkBytes = 16 << 10;
/// A ring of 96 KiB rides out a hand-over; a longer one serves little more.
constexpr uint32_t kMostStages = 12, kDesiredStages = 6;
/// Bytes on their way to a slot that keep the memory busy.
constexpr uint32_t kInFlightBytes = 64 << 10;
/// The stream is spaced for this share of the memory's rate: enough to be no
/// limit, and no bursts behind a wait.
constexpr double kPaceShare = 1.25;
static_assert(uint64_t(kMostStages) * kChunkBytes >=
                  2 * uint64_t(kKvPositions) * kMostHeadDim * 2,
              "the longest ring holds what any kernel waits for at once");
constexpr uint32_t kBlockSteps[] = {256, 192, 128, 64, 32, 16};
static_assert(kChunkBytes % kFragmentBytes == 0);

struct PlanMemory : grok::impl::PlanMemoryBase<PlanMemory> {
  using PlanMemoryBase::PlanMemoryBase;
  void runOnOperation() override;

private:
  bool hasKernel();
  LogicalResult check();
  LogicalResult checkHeads();
  FailureOr<StreamShape> chooseStream();
  uint32_t inFlight(uint32_t stages);
  uint32_t pace();
  uint32_t sharedBytes(const StreamShape &stream);
  void addStream(const StreamShape &stream);
  uint64_t addArena(const StreamShape &stream);
  LogicalResult checkDevice(uint64_t arenaBytes);
};

} // namespace

/// The CPU runs no decode kernel, and none of its limits are the CPU's.
bool PlanMemory::hasKernel() {
  return getOperation().find<TargetOp>().getSm() != 0;
}

LogicalResult PlanMemory::check() {
  DeviceOp device = getOperation();
  if (device.find<StreamOp>())
    return device.emitOpError("has its memory planned already");
  if (!device.find<PlacementOp>())
    return device.emitOpError(
        "has no banks placed; run --plan-place-banks first");
  return success();
}

/// What attention keeps of a kv head, whatever the ring. Sizes of shared memory
/// are computed in 32 bits after this.
LogicalResult PlanMemory::checkHeads() {
  DeviceOp device = getOperation();
  auto target = device.find<TargetOp>();
  ModelConfig model = sizesOf(device);
  auto qkv = *device.getBody().front().getOps<MatrixOp>().begin();
  if (model.headDim > kMostHeadDim)
    return qkv.emitError("found heads of ")
           << model.headDim << " dimensions, expected at most " << kMostHeadDim
           << ", which a block of " << target.getName()
           << " sums; compile for another target, such as cpu";
  uint64_t queries =
      uint64_t(model.numHeads / model.numKvHeads) * model.headDim * 4;
  if (queries > target.getSharedBytes())
    return qkv.emitError("found ")
           << model.numHeads / model.numKvHeads
           << " query heads for a kv head, whose queries take " << queries
           << " bytes of shared memory, expected at most the "
           << target.getSharedBytes() << " that a block of " << target.getName()
           << " has; compile for another target, such as cpu";
  return success();
}

/// The longest K block with which a ring of the desired length fits, but no
/// longer than a row of the residual stream, which is then staged once for all
/// tiles; then the longest ring. Without such a one, whatever fits.
FailureOr<StreamShape> PlanMemory::chooseStream() {
  DeviceOp device = getOperation();
  auto target = device.find<TargetOp>();
  const uint32_t row = ceilDiv(sizesOf(device).hiddenSize, kTileK),
                 longest = longestRow(device);
  uint32_t needed = 0, stagesNeeded = 0;
  for (uint32_t fewest : {kDesiredStages, 1u}) {
    for (uint32_t blockSteps : kBlockSteps) {
      const uint32_t *shorter = std::find(std::begin(kBlockSteps),
                                          std::end(kBlockSteps), blockSteps) +
                                1;
      bool longerThanNeeded = shorter != std::end(kBlockSteps) &&
                              *shorter >= row &&
                              sumsWholeBatches(*shorter, longest);
      if (longerThanNeeded || !sumsWholeBatches(blockSteps, longest))
        continue;
      for (uint32_t stages = kMostStages; stages >= fewest; --stages) {
        StreamShape stream{blockSteps, stages, kChunkBytes, 1};
        if (!hasKernel())
          return stream;
        DecodeShape shape = decodeShape(device, stream);
        if (canPairBlocks(shape, target.getSm()))
          stream.cluster = shape.cluster = 2;
        if (uint64_t(stages) * kChunkBytes < fewestRingBytes(shape))
          break;
        needed = sharedLayout(shape).total;
        stagesNeeded = stages;
        if (needed <= target.getSharedBytes())
          return stream;
      }
    }
  }
  return device.emitError("the plan needs at least ")
         << needed << " bytes of shared memory a block, for a ring of "
         << stagesNeeded << " chunks and buffers of "
         << device.find<BoundsOp>().getBatch() << " rows, but "
         << target.getName() << " has " << target.getSharedBytes();
}

/// Chunks that may be on their way to a slot: fewer leave the memory idle, more
/// only queue ahead of the hand-overs.
uint32_t PlanMemory::inFlight(uint32_t stages) {
  return std::min(kInFlightBytes / kChunkBytes, stages);
}

/// SM cycles between two chunks of a slot when all slots stream. Cut off at
/// what the kernel can count: so slow a memory is the limit by itself.
uint32_t PlanMemory::pace() {
  Target target = targetOf(getOperation().find<TargetOp>());
  double rate = target.streamBytesPerSecond(target.smCount) * kPaceShare;
  double cycles =
      kChunkBytes * double(target.smCount) / rate * target.clockMhz * 1e6;
  return uint32_t(std::min(cycles, double(mostPaceCycles(kChunkBytes))));
}

/// More than half of what a block can have, so that an SM never holds
/// two blocks. None without a kernel.
uint32_t PlanMemory::sharedBytes(const StreamShape &stream) {
  if (!hasKernel())
    return 0;
  auto target = getOperation().find<TargetOp>();
  uint32_t needed = sharedLayout(decodeShape(getOperation(), stream)).total;
  uint32_t half = uint32_t(target.getSharedBytes() / 2);
  return std::max(needed, half + 128 - half % 128);
}

void PlanMemory::addStream(const StreamShape &stream) {
  DeviceOp device = getOperation();
  OpBuilder b = OpBuilder::atBlockEnd(&device.getBody().front());
  StreamOp::create(b, device.getLoc(), stream.blockSteps, stream.ringStages,
                   stream.chunkBytes, inFlight(stream.ringStages), pace(),
                   sharedBytes(stream), (kWarps + 1) * 32, stream.cluster);
}

/// Bytes of the arena. Every region has a place of its own.
uint64_t PlanMemory::addArena(const StreamShape &stream) {
  DeviceOp device = getOperation();
  Location loc = device.getLoc();
  auto bounds = device.find<BoundsOp>();
  RegionList list = decodeRegions(decodeShape(device, stream));
  uint64_t reserve = alignUp(kvBytes(sizesOf(device), bounds.getBatch(),
                                     bounds.getSeq(), kvElementBytes(device)),
                             kKvReserveUnit);
  uint64_t kvOffset = 0;
  for (const RegionSize &region : list.regions)
    kvOffset += alignUp(region.bytes, kRegionAlign);

  OpBuilder b = OpBuilder::atBlockEnd(&device.getBody().front());
  ArenaOp::create(b, loc, kvOffset + reserve, reserve);
  uint64_t at = 0;
  for (const RegionSize &region : list.regions) {
    if (region.bytes)
      RegionOp::create(b, loc, region.name, at, region.bytes,
                       PhaseKind(region.firstPhase),
                       PhaseKind(region.lastPhase));
    at += alignUp(region.bytes, kRegionAlign);
  }
  RegionOp::create(b, loc, "kv", kvOffset, reserve, PhaseKind::Qkv,
                   PhaseKind::Head);
  return kvOffset + reserve;
}

LogicalResult PlanMemory::checkDevice(uint64_t arenaBytes) {
  DeviceOp device = getOperation();
  auto target = device.find<TargetOp>();
  uint64_t blob = device.find<PlacementOp>().getBlobBytes();
  uint64_t needed = blob + arenaBytes;
  if (needed <= target.getMemoryBytes())
    return success();
  auto report = [&](InFlightDiagnostic diagnostic) {
    diagnostic << "the plan needs " << needed
               << " bytes of device memory (weights " << blob << ", arena "
               << arenaBytes << "), but " << target.getName() << " has "
               << target.getMemoryBytes();
    return diagnostic;
  };
  if (allowOversize) {
    report(device.emitRemark());
    return success();
  }
  return report(device.emitError()) << "; allow it with --allow-oversize";
}

void PlanMemory::runOnOperation() {
  if (failed(check()) || (hasKernel() && failed(checkHeads())))
    return signalPassFailure();
  FailureOr<StreamShape> stream = chooseStream();
  if (failed(stream))
    return signalPassFailure();
  addStream(*stream);
  if (failed(checkDevice(addArena(*stream))))
    signalPassFailure();
}
