// --plan-assign-slots: gives every tile of every matrix to one slot.
#include <algorithm>
#include <map>
#include <numeric>

#include "mlir/IR/Builders.h"

#include "compiler/Passes/Passes.h"
#include "ir/Plan/PlanFacts.h"

namespace grok {
#define GEN_PASS_DEF_ASSIGNSLOTS
#include "compiler/Passes/Passes.h.inc"
} // namespace grok

using namespace mlir;
using namespace grok;
using namespace grok::plan;

namespace {

/// Bytes that each slot has been given in a layer so far.
using Load = std::vector<uint64_t>;

struct AssignSlots : grok::impl::AssignSlotsBase<AssignSlots> {
  using AssignSlotsBase::AssignSlotsBase;
  void runOnOperation() override;

private:
  FailureOr<SlotPolicy> readPolicy();
  void reportIdle(SlotPolicy policy);
  void assign(MatrixOp matrix, SlotPolicy policy, Load &load);
  void assignAll(SlotPolicy policy);
  void addPresence();
};

} // namespace

FailureOr<SlotPolicy> AssignSlots::readPolicy() {
  DeviceOp device = getOperation();
  std::optional<SlotPolicy> parsed = symbolizeSlotPolicy(policy);
  if (!parsed)
    return device.emitError("option 'policy': found '")
           << policy << "', expected 'all' or 'group'";
  if (*parsed == SlotPolicy::All)
    return *parsed;
  auto experts = device.find<ExpertsOp>();
  uint32_t slots = device.find<TargetOp>().getSlots();
  if (!experts.getGroups())
    return experts.emitError("policy 'group' needs expert groups, but a model "
                             "with a learned router has none; use 'all'");
  if (*experts.getGroups() > slots)
    return experts.emitError("policy 'group' needs a slot for each of ")
           << *experts.getGroups() << " groups, but "
           << device.find<TargetOp>().getName() << " has " << slots;
  return *parsed;
}

void AssignSlots::reportIdle(SlotPolicy policy) {
  DeviceOp device = getOperation();
  auto experts = device.find<ExpertsOp>();
  uint32_t slots = device.find<TargetOp>().getSlots();
  if (policy == SlotPolicy::All)
    return;
  uint32_t groups = *experts.getGroups();
  uint32_t used = groupSlots(slots, groups, groups - 1).end;
  if (used == slots)
    return;
  auto remark = device.emitRemark();
  if (used + 1 == slots)
    remark << "slot " << used << " is";
  else
    remark << "slots " << used << " to " << slots - 1 << " are";
  remark << " idle for experts: " << slots << " slots are no multiple of "
         << groups << " groups";
}

/// Contiguous ranges in slot order; the slots with the fewest bytes so far, in
/// `load`, get a tile more.
void AssignSlots::assign(MatrixOp matrix, SlotPolicy policy, Load &load) {
  Range allowed = allowedSlots(getOperation(), matrix, policy);
  uint32_t width = allowed.end - allowed.begin;
  std::vector<uint32_t> order(width);
  std::iota(order.begin(), order.end(), allowed.begin);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return std::tie(load[a], a) < std::tie(load[b], b);
  });
  SmallVector<int32_t> begin(load.size()), count(load.size());
  for (uint32_t i = 0; i < width; ++i)
    count[order[i]] =
        int32_t(matrix.getTiles() / width + (i < matrix.getTiles() % width));
  int32_t next = 0;
  for (uint32_t s = allowed.begin; s < allowed.end; ++s) {
    begin[s] = count[s] ? next : 0;
    next += count[s];
  }
  matrix.setBegin(begin);
  matrix.setCount(count);
  for (uint32_t s = allowed.begin; s < allowed.end; ++s)
    load[s] += matrix.extentBytes(s);
}

/// Dense matrices first, since every token needs them; then the experts beside
/// them, so that the tiles that don't divide evenly go to other slots than
/// those of the experts before: a batch uses many. The head is not part of a
/// layer. A slot sums a row's experts and dense MLP where it stands, so all
/// their outputs are dealt alike.
void AssignSlots::assignAll(SlotPolicy policy) {
  DeviceOp device = getOperation();
  Load load(device.find<TargetOp>().getSlots());
  std::map<uint32_t, MatrixOp> outputs; // by first slot of those allowed
  auto deal = [&](MatrixOp matrix) {
    if (matrix.getKind() == StreamKind::Head) {
      Load step(load.size());
      return assign(matrix, policy, step);
    }
    if (matrix.getKind() != StreamKind::Down &&
        matrix.getKind() != StreamKind::DenseDown)
      return assign(matrix, policy, load);
    auto [it, first] =
        outputs.try_emplace(allowedSlots(device, matrix, policy).begin, matrix);
    if (first)
      return assign(matrix, policy, load);
    matrix.setBegin(*it->second.getBegin());
    matrix.setCount(*it->second.getCount());
  };
  auto matrices = device.getBody().front().getOps<MatrixOp>();
  auto isInput = [](MatrixOp m) {
    return !isExpertMatrix(m.getKind()) && m.getKind() != StreamKind::DenseDown;
  };
  for (MatrixOp matrix : matrices)
    if (isInput(matrix))
      deal(matrix);
  for (MatrixOp matrix : matrices)
    if (!isInput(matrix))
      deal(matrix);
}

/// A slot that owns no tile of attn_out or of an expert's down matrix may hand
/// nothing over in a layer; then presence words keep the others from running a
/// layer ahead of it.
void AssignSlots::addPresence() {
  DeviceOp device = getOperation();
  bool needed =
      llvm::any_of(device.getBody().front().getOps<MatrixOp>(), [](MatrixOp m) {
        return (m.getKind() == StreamKind::AttnOut ||
                m.getKind() == StreamKind::Down) &&
               llvm::is_contained(*m.getCount(), 0);
      });
  if (!needed)
    return;
  Builder b(&getContext());
  auto append = [&](ArrayAttr list) {
    SmallVector<Attribute> names(list.begin(), list.end());
    names.push_back(b.getStringAttr("presence"));
    return b.getArrayAttr(names);
  };
  for (PhaseOp phase : device.getBody().front().getOps<PhaseOp>()) {
    if (phase.getKind() == PhaseKind::Down)
      phase.setWritesAttr(append(phase.getWrites()));
    if (phase.getKind() == PhaseKind::Qkv || phase.getKind() == PhaseKind::Head)
      phase.setReadsAttr(append(phase.getReads()));
  }
  OpBuilder builder(&getContext());
  SmallVector<EdgeOp> outputs;
  for (EdgeOp edge : device.getBody().front().getOps<EdgeOp>())
    if (edge.getBuffer() == "y_moe")
      outputs.push_back(edge);
  for (EdgeOp edge : outputs) {
    builder.setInsertionPointAfter(edge);
    EdgeOp::create(builder, edge.getLoc(), edge.getFrom(), edge.getTo(),
                   "presence", device.find<TargetOp>().getSlots(),
                   edge.getScope(), EdgeSync::Epoch);
  }
}

void AssignSlots::runOnOperation() {
  DeviceOp device = getOperation();
  if (device.find<AssignmentOp>()) {
    device.emitOpError("has its slots assigned already");
    return signalPassFailure();
  }
  auto first = device.find<MatrixOp>();
  if (!first) {
    device.emitOpError(
        "has no matrices to assign; run --grok-form-phases first");
    return signalPassFailure();
  }
  FailureOr<SlotPolicy> parsed = readPolicy();
  if (failed(parsed))
    return signalPassFailure();
  reportIdle(*parsed);
  OpBuilder builder(first);
  AssignmentOp::create(builder, device.getLoc(), *parsed);
  assignAll(*parsed);
  addPresence();
}
