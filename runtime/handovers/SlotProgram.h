// What one slot's two processes do; decodeProcesses puts them together.
#pragma once

#include <map>

#include "runtime/handovers/Buffers.h"
#include "runtime/handovers/Launch.h"
#include "runtime/handovers/RingMoves.h"

namespace grok::handovers {

/// What all slots share while their programs are written.
struct Plans {
  explicit Plans(const Launch &launch);
  /// Cached: most slots have one of two tile counts.
  const ProductMoves &movesOf(uint32_t width, uint32_t tileCount);

  const Launch &launch;
  const Buffers buffers;
  const bool presence;
  uint32_t qkv, attnOut, denseGateUp = 0, denseDown = 0, head;
  std::vector<uint32_t> gateUp, down; // [expert]; only of kept ones

private:
  std::map<std::pair<uint32_t, uint32_t>, ProductMoves> moves_;
};

/// An attention task of a slot: the kernel's forEachAttentionTask.
struct AttentionTask {
  uint32_t row, kvHead, block;
  uint32_t cached; // positions of the block that are in the cache before
};
std::vector<AttentionTask> attentionTasks(const Launch &launch, uint32_t slot,
                                          const Step &step);
/// Bytes of keys, or of values, that a task streams: the kernel's
/// kvStreamBytes.
uint64_t taskBytes(const Launch &launch, const AttentionTask &task);

/// What a slot streams of a matrix and of a task.
StreamItem matrixItem(const Launch &launch, uint32_t matrix, uint32_t slot,
                      uint32_t step, uint32_t layer);
StreamItem cacheItem(const Launch &launch, const AttentionTask &task,
                     uint32_t value, uint32_t step, uint32_t layer);

Process consumerProcess(Plans &plans, uint32_t slot);
Process producerProcess(Plans &plans, uint32_t slot);

} // namespace grok::handovers
