#include "ir/Plan/PlanDialect.h"

#include <cmath>

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

#include "runtime/bundle/DecodeMemory.h"
#include "runtime/bundle/KernelAbi.h"
#include "runtime/bundle/Prediction.h"
#include "runtime/bundle/PrefillMemory.h"
#include "runtime/bundle/Quantized.h"
#include "runtime/bundle/WeightLayout.h"

#include "ir/Plan/PlanDialect.cpp.inc"
#include "ir/Plan/PlanEnums.cpp.inc"

#define GET_OP_CLASSES
#include "ir/Plan/PlanOps.cpp.inc"

namespace grok::plan {

using mlir::failure;
using mlir::LogicalResult;
using mlir::success;

void PlanDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "ir/Plan/PlanOps.cpp.inc"
      >();
}

LogicalResult TargetOp::verify() {
  if (getSlots() == 0)
    return emitOpError("has no slots");
  if (getBankCount() == 0)
    return emitOpError("has no banks");
  if (getBankAlign() == 0 || getBankAlign() % kFragmentBytes != 0)
    return emitOpError("has bank alignment ")
           << getBankAlign() << ", expected a multiple of " << kFragmentBytes;
  if (getCurveSlots().size() != getCurveRate().size() ||
      getCurveSlots().empty())
    return emitOpError("has a bandwidth curve of ")
           << getCurveSlots().size() << " slot shares and "
           << getCurveRate().size()
           << " rates, expected as many, and at least one";
  if (getHandOverUs().size() != 2 || getLaunchUs().size() != 2)
    return emitOpError("expected two values for a hand-over (idle, streaming) "
                       "and for a launch (median, worst)");
  return success();
}

LogicalResult ShapeOp::verify() {
  if (!getVocab() || !getLayers() || !getHidden() || !getHeads() ||
      !getKvHeads() || !getHeadDim() || !getExpertWidth() ||
      !getExpertsPerToken())
    return emitOpError("has a size of 0, which only `dense_width` may be");
  if (getHeads() % getKvHeads() != 0)
    return emitOpError("has ")
           << getHeads() << " heads, expected a multiple of the "
           << getKvHeads() << " kv heads";
  return success();
}

LogicalResult BoundsOp::verify() {
  if (getBatch() == 0 || getBatch() > abi::kMaxBatch)
    return emitOpError("has batch ")
           << getBatch() << ", expected 1 to " << abi::kMaxBatch;
  if (getSeq() == 0)
    return emitOpError("has rows of 0 positions, expected at least 1");
  return success();
}

/// Ascending, each below `total`.
static bool isExpertList(llvm::ArrayRef<int32_t> list, uint32_t total) {
  int64_t previous = -1;
  for (int32_t expert : list) {
    if (expert <= previous || expert >= int64_t(total))
      return false;
    previous = expert;
  }
  return true;
}

LogicalResult ExpertsOp::verify() {
  if (getTotal() == 0)
    return emitOpError("has no experts");
  if (auto groups = getGroups();
      groups && (*groups == 0 || getTotal() % *groups != 0))
    return emitOpError("has ") << getTotal() << " experts in " << *groups
                               << " groups, expected groups of equal size";
  if (!isExpertList(getKept(), getTotal()) ||
      !isExpertList(getReached(), getTotal()))
    return emitOpError("expected ascending experts below ")
           << getTotal() << " in `kept` and `reached`";
  return success();
}

std::string MatrixOp::describe() {
  std::string text = stringifyStreamKind(getKind()).str();
  if (getExpert())
    text += " of expert " + std::to_string(*getExpert());
  return text;
}

uint64_t MatrixOp::extentBytes(uint32_t s) {
  auto bounds = (*this)->getParentOfType<DeviceOp>().find<BoundsOp>();
  return grok::extentBytes(Quantization(bounds.getCodes()),
                           uint32_t((*getCount())[s]), getSteps());
}

LogicalResult MatrixOp::verify() {
  bool ofExpert =
      getKind() == StreamKind::GateUp || getKind() == StreamKind::Down;
  if (ofExpert != getExpert().has_value())
    return emitOpError("of kind ")
           << stringifyStreamKind(getKind())
           << (ofExpert ? " needs an expert" : " has no expert");
  if (!getTiles() || !getSteps())
    return emitOpError("has no tiles or no steps");
  if (getBegin().has_value() != getCount().has_value() ||
      getBank().has_value() != getOffset().has_value())
    return emitOpError(
        "expected `begin` with `count`, and `banks` with `offsets`");
  if (getBank() && !getBegin())
    return emitOpError("has banks, but its tiles are not given to slots");
  return success();
}

LogicalResult StreamOp::verify() {
  if (getBlockSteps() == 0 || getBlockSteps() % kWarps != 0)
    return emitOpError("has K blocks of ")
           << getBlockSteps() << " steps, expected a multiple of " << kWarps;
  if (getChunkBytes() == 0 || getChunkBytes() % kFragmentBytes != 0)
    return emitOpError("has chunks of ")
           << getChunkBytes() << " bytes, expected a multiple of "
           << kFragmentBytes;
  if (getInFlight() == 0 || getInFlight() > getRingStages())
    return emitOpError("has ")
           << getInFlight() << " chunks in flight, "
           << "expected 1 to the ring's " << getRingStages();
  if (uint32_t most = mostPaceCycles(getChunkBytes()); getPace() > most)
    return emitOpError("has a pace of ")
           << getPace() << " cycles, expected at most " << most;
  if (getCluster() != 1 && getCluster() != 2)
    return emitOpError("has clusters of ")
           << getCluster() << " blocks, expected 1 or 2";
  if (getThreads() != (kWarps + 1) * 32)
    return emitOpError("has blocks of ")
           << getThreads() << " threads, expected " << (kWarps + 1) * 32 << " ("
           << kWarps << " consumer warps and a producer)";
  return success();
}

LogicalResult PrefillOp::verify() {
  if (getTokens() == 0 || getTokens() > kMostPrefillTokens)
    return emitOpError("has passes of ")
           << getTokens() << " tokens, expected 1 to " << kMostPrefillTokens;
  if (getTileTokens() == 0 || getTileTokens() > kMostTileTokens ||
      getTileTokens() % kTileTokenStep != 0)
    return emitOpError("has tiles of ")
           << getTileTokens() << " tokens, expected a multiple of "
           << kTileTokenStep << " up to " << kMostTileTokens;
  if (getStages() == 0 || getStages() > kMostPrefillStages)
    return emitOpError("has ")
           << getStages() << " stages, expected 1 to " << kMostPrefillStages;
  return success();
}

/// The terms of a case are numbers, none below 0, that add up to its time.
static LogicalResult verifyTerms(PredictionOp op, llvm::StringRef name,
                                 double us, mlir::DictionaryAttr terms) {
  double sum = 0;
  for (mlir::NamedAttribute term : terms) {
    auto value = llvm::dyn_cast<mlir::FloatAttr>(term.getValue());
    if (!value || !(value.getValueAsDouble() >= 0))
      return op.emitOpError("has term '")
             << term.getName().getValue() << "' of " << name << " "
             << term.getValue() << ", expected a number, at least 0";
    sum += value.getValueAsDouble();
  }
  if (!(std::abs(sum - us) <= kTermsTolerance * us))
    return op.emitOpError("has terms of ")
           << name << " that add up to " << sum << " us, expected " << us;
  return success();
}

LogicalResult PredictionOp::verify() {
  const double best = getBestUs().convertToDouble(),
               expected = getExpectedUs().convertToDouble(),
               worst = getWorstUs().convertToDouble(),
               experts = getExpectedExperts().convertToDouble();
  if (!(best >= 0) || !(expected >= best) || !(worst >= expected) ||
      !std::isfinite(worst))
    return emitOpError("has best ")
           << best << " us, expected " << expected << " us and worst " << worst
           << " us, expected 0 <= best <= expected <= worst, all finite";
  if (!(experts >= 0) || !std::isfinite(experts))
    return emitOpError("has a mean of ")
           << experts << " experts, expected at least 0";
  if (failed(verifyTerms(*this, "best", best, getBestTerms())) ||
      failed(verifyTerms(*this, "expected", expected, getExpectedTerms())))
    return failure();
  return verifyTerms(*this, "worst", worst, getWorstTerms());
}

} // namespace grok::plan
