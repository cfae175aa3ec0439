// Processes with their waits resolved: who must have done what before an op
// can happen, and who must have done what when it happens.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/bundle/PlanTables.h"
#include "runtime/handovers/Program.h"

namespace grok::handovers {

struct LinkedOp {
  /// The op waits until these have happened.
  std::vector<OpRef> after;
  /// Nothing waits for these, but they must have happened: readers of words
  /// that the op overwrites, fences behind stores that it reads. Of each
  /// process the last; what an earlier op of the same process demands is left
  /// out.
  std::vector<OpRef> demands;
  uint32_t chunk = 0; // of kTake, kPush: the slot's first one
};

struct Network {
  std::vector<Process> processes; // consumers by slot, then producers by slot
  std::vector<std::vector<LinkedOp>> linked; // [process][op]
  uint32_t ringStages, chunkBytes;
  std::string file; // the plan's, for messages

  uint32_t slots() const { return uint32_t(processes.size() / 2); }
  uint32_t producerOf(uint32_t slot) const { return slots() + slot; }
  const Op &op(OpRef at) const { return processes[at.process].ops[at.op]; }
  /// "slot 3, phase gate_up, layer 1, step 0".
  std::string place(OpRef at) const;
};

/// Resolves every wait. InvalidArgument "FILE: slot S, phase P, layer L, step
/// T: ..." where a word that is waited for is handed over by nobody, or a word
/// is handed over twice under one epoch, so that a reader may take the first
/// for the second; where consumers expect something else in the ring than the
/// producer puts there; and where no fence follows a store into the KV cache
/// that a later step reads.
absl::StatusOr<Network> link(std::vector<Process> processes,
                             const PlanTables &plan, std::string_view file);

/// What a failed demand of an op means, for messages.
std::string demandText(const Network &network, OpRef op, OpRef demanded);

} // namespace grok::handovers
