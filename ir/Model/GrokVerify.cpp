// What a single operation can get wrong by itself. Whole models are checked in
// ModelStructure.cpp.
#include "ir/Model/GrokDialect.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace grok::ir;

/// Checks that `what`, a tensor of operation `op`, is `width` wide.
static LogicalResult checkWidth(Operation *op, StringRef what, Value value,
                                uint64_t width, const Twine &because) {
  if (uint64_t(widthOf(value)) == width)
    return success();
  return op->emitOpError(what) << " is " << widthOf(value) << " wide; expected "
                               << width << " (" << because << ")";
}

static LogicalResult checkHeads(Operation *op, uint32_t heads, uint32_t kvHeads,
                                uint32_t headDim) {
  if (heads % kvHeads != 0)
    return op->emitOpError("has ")
           << heads << " heads and " << kvHeads
           << " kv_heads; expected heads to be a multiple of kv_heads";
  if (headDim % 2 != 0)
    return op->emitOpError("has head_dim ")
           << headDim << "; expected an even number";
  return success();
}

LogicalResult QkvOp::verify() {
  if (failed(checkHeads(*this, getHeads(), getKvHeads(), getHeadDim())) ||
      failed(checkWidth(*this, "result q", getQ(),
                        uint64_t(getHeads()) * getHeadDim(),
                        "heads * head_dim")))
    return failure();
  return checkWidth(*this, "result k", getK(),
                    uint64_t(getKvHeads()) * getHeadDim(),
                    "kv_heads * head_dim");
}

LogicalResult RopeOp::verify() {
  if (getHeadDim() % 2 != 0)
    return emitOpError("has head_dim ")
           << getHeadDim() << "; expected an even number";
  if (widthOf(getInput()) % getHeadDim() != 0)
    return emitOpError("operand is ")
           << widthOf(getInput()) << " wide; expected a multiple of head_dim "
           << getHeadDim();
  return success();
}

LogicalResult AttentionOp::verify() {
  if (failed(checkHeads(*this, getHeads(), getKvHeads(), getHeadDim())) ||
      failed(checkWidth(*this, "operand q", getQ(),
                        uint64_t(getHeads()) * getHeadDim(),
                        "heads * head_dim")) ||
      failed(checkWidth(*this, "operand k", getK(),
                        uint64_t(getKvHeads()) * getHeadDim(),
                        "kv_heads * head_dim")))
    return failure();
  // log2(1) is zero, and positions are divided by it.
  if (getTemperatureLength() && *getTemperatureLength() < 2)
    return emitOpError("has temperature_length ")
           << *getTemperatureLength() << "; expected at least 2";
  return success();
}

LogicalResult HashRouteOp::verify() {
  uint64_t experts = uint64_t(getGroups()) * getExpertsPerGroup();
  RoutingType type = getRouting().getType();
  if (type.getPerToken() != 1 || type.getExperts() != experts)
    return emitOpError("has type ")
           << type << "; expected 1 of groups * experts_per_group, which is "
           << experts;
  if (uint64_t(getIndexMask()) >= getExpertsPerGroup())
    return emitOpError("has index_mask ")
           << getIndexMask() << "; expected less than experts_per_group "
           << getExpertsPerGroup() << ", so that an index stays in its group";
  return success();
}

LogicalResult TopkRouteOp::verify() {
  if (getK() > getExperts())
    return emitOpError("has k ")
           << getK() << "; expected at most the number of experts, "
           << getExperts();
  RoutingType type = getRouting().getType();
  if (type.getPerToken() != getK() || type.getExperts() != getExperts())
    return emitOpError("has type ")
           << type << "; expected " << getK() << " of " << getExperts();
  return success();
}

/// Ascending, without repetition, each a number of an expert.
static LogicalResult checkExpertList(ExpertsOp op, StringRef name,
                                     ArrayRef<int32_t> list) {
  for (auto [i, expert] : llvm::enumerate(list)) {
    if (expert < 0 || uint32_t(expert) >= op.getExperts())
      return op.emitOpError() << name << " names expert " << expert
                              << "; expected 0 to " << op.getExperts() - 1;
    if (i > 0 && list[i - 1] >= expert)
      return op.emitOpError() << name << " has " << expert << " after "
                              << list[i - 1] << "; expected ascending order";
  }
  return success();
}

LogicalResult ExpertsOp::verify() {
  if (getRouting().getType().getExperts() != getExperts())
    return emitOpError("has ")
           << getExperts() << " experts and a routing of type "
           << getRouting().getType() << "; expected the same number";
  if (getKept()) {
    if (getKept()->empty())
      return emitOpError("keeps no expert; expected at least one");
    if (failed(checkExpertList(*this, "kept", *getKept())))
      return failure();
  }
  if (!getUnreachable())
    return success();
  if (failed(checkExpertList(*this, "unreachable", *getUnreachable())))
    return failure();
  ArrayRef<int32_t> unreachable = *getUnreachable();
  for (int32_t expert : unreachable)
    if (isKept(expert))
      return emitOpError("expert ") << expert
                                    << " is both kept and unreachable; "
                                       "expected unreachable experts to be "
                                    << "dropped";
  return success();
}

llvm::SmallVector<uint32_t> ExpertsOp::keptExperts() {
  if (getKept())
    return llvm::SmallVector<uint32_t>(getKept()->begin(), getKept()->end());
  return llvm::to_vector(llvm::seq<uint32_t>(0, getExperts()));
}

bool ExpertsOp::isKept(uint32_t expert) {
  return !getKept() || llvm::binary_search(*getKept(), int32_t(expert));
}

bool ExpertsOp::isUnreachable(uint32_t expert) {
  return getUnreachable() &&
         llvm::binary_search(*getUnreachable(), int32_t(expert));
}
