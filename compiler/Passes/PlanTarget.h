// A plan's target facts as the target that they were copied from.
#pragma once

#include "compiler/Target/Target.h"
#include "ir/Plan/PlanDialect.h"

namespace grok::plan {

/// Every number that planning and prediction use; what they don't (driver,
/// PTX version, L2) is empty.
inline Target targetOf(TargetOp op) {
  Target t;
  t.name = op.getName().str();
  t.sm = op.getSm();
  t.smCount = op.getSlots();
  t.sharedBytesPerBlock = uint32_t(op.getSharedBytes());
  t.memoryBytes = op.getMemoryBytes();
  t.bankCount = op.getBankCount();
  t.bankAlign = op.getBankAlign();
  t.bandwidthGbS = op.getBandwidthGbS().convertToDouble();
  t.streamEfficiency = op.getStreamEfficiency().convertToDouble();
  for (auto [slots, rate] : llvm::zip(op.getCurveSlots(), op.getCurveRate()))
    t.streamCurve.push_back({slots, rate});
  t.handOverUs = op.getHandOverUs()[0];
  t.handOverStreamUs = op.getHandOverUs()[1];
  t.launchUs = op.getLaunchUs()[0];
  t.launchMaxUs = op.getLaunchUs()[1];
  t.clockMhz = op.getClockMhz().convertToDouble();
  t.sharedBytesPerCycle = op.getSharedBytesPerCycle().convertToDouble();
  return t;
}

} // namespace grok::plan
