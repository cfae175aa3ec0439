// The producer warp: produce() in codegen/Device/decode.h.
#include <algorithm>

#include "runtime/handovers/SlotProgram.h"

namespace grok::handovers {
namespace {

class Producer {
public:
  Producer(Plans &plans, uint32_t slot)
      : plans_(plans), l_(plans.launch), slot_(slot) {}

  Process write() {
    for (step_ = 0; step_ != l_.steps.size(); ++step_)
      writeStep();
    // It runs ahead until the consumers have left.
    layer_ = 0;
    push(plans_.qkv, Phase::kQkv);
    return {slot_, std::move(ops_)};
  }

private:
  void writeStep() {
    for (layer_ = 0; layer_ != l_.layers(); ++layer_) {
      push(plans_.qkv, Phase::kQkv);
      if (layer_ == 0) {
        awaitAnnouncement();
        if (!l_.model.hash)
          release();
      }
      pushCache();
      push(plans_.attnOut, Phase::kAttnOut);
      if (!l_.model.hash)
        awaitAnnouncement();
      const std::vector<uint32_t> experts = l_.activeExperts(step_, layer_);
      for (uint32_t e : experts)
        push(plans_.gateUp[e], Phase::kGateUp);
      if (l_.model.denseWidth)
        push(plans_.denseGateUp, Phase::kGateUp);
      for (uint32_t e : experts)
        push(plans_.down[e], Phase::kDown);
      // A learned router's experts are those of a layer.
      if (!l_.model.hash || layer_ + 1 == l_.layers())
        release();
      if (l_.model.denseWidth)
        push(plans_.denseDown, Phase::kDown);
    }
    if (l_.steps[step_].headNeeded)
      push(plans_.head, Phase::kHead);
  }

  Op &add(OpKind kind, Phase phase) {
    ops_.push_back(
        {.kind = kind, .phase = phase, .step = step_, .layer = layer_});
    return ops_.back();
  }

  void push(uint32_t matrix, Phase phase) {
    StreamItem item = matrixItem(l_, matrix, slot_, step_, layer_);
    if (item.bytes)
      add(OpKind::kPush, phase).items = {item};
  }

  /// Waits for what the consumers announce next.
  void awaitAnnouncement() {
    Op &op = add(OpKind::kAwait, Phase::kRoute);
    op.epoch = ++taken_;
    op.words = {plans_.buffers.announced(slot_)};
  }
  /// Says that it has read it.
  void release() {
    Op &op = add(OpKind::kPublish, Phase::kRoute);
    op.epoch = taken_;
    op.words = {plans_.buffers.taken(slot_)};
  }

  void pushCache() {
    for (const AttentionTask &task : attentionTasks(l_, slot_, l_.steps[step_]))
      for (uint32_t value : {0, 1}) {
        StreamItem item = cacheItem(l_, task, value, step_, layer_);
        if (!item.bytes)
          continue;
        Op &op = add(OpKind::kPush, Phase::kAttention);
        op.items = {item};
        op.seesStep = lastStored(task);
      }
  }

  /// The last step of this launch that stored an entry of the task's block
  /// before this step; kNone if all are older.
  uint32_t lastStored(const AttentionTask &task) const {
    const uint32_t start = l_.scenario.rows[task.row].start,
                   end = task.block * kKvPositions + task.cached;
    return end > start && task.cached ? end - 1 - start : Op::kNone;
  }

  Plans &plans_;
  const Launch &l_;
  const uint32_t slot_;
  uint32_t step_ = 0, layer_ = 0, taken_ = 0;
  std::vector<Op> ops_;
};

} // namespace

Process producerProcess(Plans &plans, uint32_t slot) {
  return Producer(plans, slot).write();
}

} // namespace grok::handovers
