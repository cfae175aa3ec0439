#include "runtime/handovers/SlotProgram.h"

#include "runtime/bundle/PlanCheck.h"
#include "runtime/handovers/DecodeProgram.h"

namespace grok::handovers {
namespace {

uint32_t indexOf(const PlanTables &plan, MatrixKind kind, uint32_t expert = 0) {
  return uint32_t(plan.findMatrix(kind, expert) - plan.matrices.data());
}

} // namespace

Plans::Plans(const Launch &l)
    : launch(l), buffers(l.plan, l.shape),
      presence(needsPresence(l.plan, l.model)),
      qkv(indexOf(l.plan, MatrixKind::kQkv)),
      attnOut(indexOf(l.plan, MatrixKind::kAttnOut)),
      head(indexOf(l.plan, MatrixKind::kHead)), gateUp(l.model.numExperts),
      down(l.model.numExperts) {
  for (uint32_t e = 0; e != l.model.numExperts; ++e)
    if (l.kept(e)) {
      gateUp[e] = indexOf(l.plan, MatrixKind::kGateUp, e);
      down[e] = indexOf(l.plan, MatrixKind::kDown, e);
    }
  if (l.model.denseWidth) {
    denseGateUp = indexOf(l.plan, MatrixKind::kDenseGateUp);
    denseDown = indexOf(l.plan, MatrixKind::kDenseDown);
  }
}

const ProductMoves &Plans::movesOf(uint32_t width, uint32_t tileCount) {
  auto [at, isNew] = moves_.try_emplace({width, tileCount});
  if (isNew)
    at->second =
        productMoves(launch.shape, launch.plan.quantization, width, tileCount);
  return at->second;
}

std::vector<AttentionTask> attentionTasks(const Launch &launch, uint32_t slot,
                                          const Step &step) {
  std::vector<AttentionTask> tasks;
  uint32_t next = slot, base = 0;
  for (uint32_t b = 0; b != launch.rows(); ++b) {
    if (!step.active[b])
      continue;
    const uint32_t at = step.position[b], blocks = at / kKvPositions + 1,
                   all = blocks * launch.model.numKvHeads;
    for (; next < base + all; next += launch.plan.slots) {
      uint32_t block = (next - base) % blocks;
      tasks.push_back({b, (next - base) / blocks, block,
                       block == blocks - 1 ? at % kKvPositions : kKvPositions});
    }
    base += all;
  }
  return tasks;
}

uint64_t taskBytes(const Launch &launch, const AttentionTask &task) {
  const bool tensor = attentionOnTensorCores(launch.shape);
  uint32_t count = task.cached;
  if (tensor) // the newest position joins them in the ring
    count = uint32_t(alignUp(count < kKvPositions ? count + 1 : count, 32));
  return alignUp(uint64_t(count) * launch.model.headDim *
                     kvElementBytes(launch.plan.activations),
                 16);
}

StreamItem matrixItem(const Launch &launch, uint32_t matrix, uint32_t slot,
                      uint32_t step, uint32_t layer) {
  const PlanMatrix &m = launch.plan.matrices[matrix];
  return {StreamItem::kMatrix,
          step,
          layer,
          matrix,
          0,
          0,
          0,
          0,
          extentBytes(launch.plan, m, m.slots[slot])};
}

StreamItem cacheItem(const Launch &launch, const AttentionTask &task,
                     uint32_t value, uint32_t step, uint32_t layer) {
  return {StreamItem::kCache,
          step,
          layer,
          0,
          task.row,
          task.kvHead,
          task.block,
          value,
          taskBytes(launch, task)};
}

std::vector<Process> decodeProcesses(const ModelConfig &model,
                                     const PlanTables &plan,
                                     const Scenario &scenario) {
  Launch launch(model, plan, scenario);
  Plans plans(launch);
  std::vector<Process> processes;
  for (uint32_t slot = 0; slot != plan.slots; ++slot)
    processes.push_back(consumerProcess(plans, slot));
  for (uint32_t slot = 0; slot != plan.slots; ++slot)
    processes.push_back(producerProcess(plans, slot));
  return processes;
}

} // namespace grok::handovers
