// The passes of the compiler, in the order of the pipeline. One file a pass.
#ifndef GROK_COMPILER_PASSES_TD
#define GROK_COMPILER_PASSES_TD

include "mlir/Pass/PassBase.td"

//===----------------------------------------------------------------------===//
// On the dialect `grok`
//===----------------------------------------------------------------------===//

def RoutingAnalysis : Pass<"grok-routing-analysis", "::grok::ir::ModelOp"> {
  let summary = "Report what can be known of the routing before any request";
  let description = [{
    Prints remarks at the routing operation and changes nothing. For hash routing
    it enumerates every hash value and every position offset: which experts can
    be reached, the exact load of each expert and group for uniform ids, and the
    classes of hash values whose tokens meet in one expert. For a learned router
    it says that nothing is known before a request.
  }];
}

def RemoveUnreachableExperts : Pass<"grok-remove-unreachable-experts", "::grok::ir::ModelOp"> {
  let summary = "Drop the experts that no position can route to";
  let description = [{
    Sets `kept` and `unreachable` of `grok.experts` from the exact reach of the
    hash. The model's logits do not change. With `keep`, the experts are reported
    and their weights stay. A model with a learned router is left as it is.
  }];
  let options = [
    Option<"keep", "keep", "bool", "false", "Report unreachable experts, but keep their weights">
  ];
}

def PruneExperts : Pass<"grok-prune-experts", "::grok::ir::ModelOp"> {
  let summary = "Drop the least used part of the experts";
  let description = [{
    Drops floor(ratio * n) of the n reachable experts from `kept` of
    `grok.experts`, the least used first, ties going to the higher index. Use is
    counted by the histogram, or, without one, is the exact reach of the hash; for
    a learned router a histogram is needed. The remark names the kept experts and
    the share of tokens that lose one.
  }];
  let options = [
    Option<"ratio", "ratio", "double", "0.0", "Part of the reachable experts to drop, at least 0 and less than 1">,
    Option<"histogram", "histogram", "std::string", "\"\"", "File with the number of tokens of each expert">
  ];
}

//===----------------------------------------------------------------------===//
// From `grok` to `plan`, and on `plan`
//===----------------------------------------------------------------------===//

def FormPhases : Pass<"grok-form-phases", "::mlir::ModuleOp"> {
  let summary = "Lower a model to the phases of a decode step on one target";
  let description = [{
    Adds a `plan.device` beside the `grok.model`: the target's facts, the model's
    sizes, the phases of a layer in order with the hand-overs between them, and the
    streamed matrices with their tiles, not yet given to slots.
  }];
  let options = [
    Option<"target", "target", "std::string", "\"\"", "Target's name, or the path of its description">,
    Option<"maxBatch", "max-batch", "uint32_t", "8", "Rows that are decoded together, 1 to 8">,
    Option<"maxSeq", "max-seq", "uint32_t", "0", "Positions a row; 0: the model's context, at most 8192">,
    Option<"activations", "activations", "std::string", "\"single\"", "Matrix operands: single or split">,
    Option<"dtype", "dtype", "std::string", "\"\"", "Operands and stored weights: bf16 or f16; empty: the checkpoint's type">,
    Option<"quantization", "quantization", "std::string", "\"none\"", "Stored weights in 8 bits instead: none, int8 or fp8">
  ];
  let dependentDialects = ["::grok::plan::PlanDialect"];
}

def AssignSlots : Pass<"plan-assign-slots", "::grok::plan::DeviceOp"> {
  let summary = "Give every tile of every matrix to one slot";
  let description = [{
    Every slot gets a contiguous range of a matrix's tiles, as long as the others'
    or one tile longer; the longer ones go to the slots with the fewest bytes in the
    layer so far (ties: the lower slot), the experts one after the other. All
    down matrices, the dense one too, are dealt alike.
    `all` stripes every matrix over all slots; `group` binds the experts of group g
    to group g's slots, and says which slots are idle. Slots without a tile of some
    expert's output say so by presence words, whose edges are added.
  }];
  let options = [
    Option<"policy", "policy", "std::string", "\"all\"", "Slots of the experts: all or group">
  ];
}

def PlaceBanks : Pass<"plan-place-banks", "::grok::plan::DeviceOp"> {
  let summary = "Lay the weights out in bank segments";
  let description = [{
    Gives every extent a bank and an offset. `striped`: expert e's extent of slot s
    lies in bank (e + s) mod B; `expert`: expert i of group g lies in bank
    (g + i) mod B. Dense matrices: slot s in bank s mod B. In a bank lie first the
    layers, each matrix by matrix and slot by slot, then, in bank 0, the vectors,
    then the rows of an untied embedding, then the head. Experts of one group that
    share a bank are reported.
  }];
  let options = [
    Option<"policy", "policy", "std::string", "\"striped\"", "Banks of the experts: striped or expert">
  ];
}

def PlanMemory : Pass<"plan-memory", "::grok::plan::DeviceOp"> {
  let summary = "Plan the ring, shared memory, the arena and the KV reserve";
  let description = [{
    Chooses the longest K block (256, 192, 128 or 64 steps, or 32 or 16 that hold
    the longest row; none longer than a row of the residual stream needs) with which
    a ring of at least 6 chunks of 16 KiB fits the target's shared memory, and then
    the longest ring up to 12; where none fits, the same with whatever ring holds what
    the kernel waits for at once. 3 chunks are in flight, and they are spaced for 1.05
    times the memory's rate with all slots. Every buffer of a request gets
    its own place in the arena for good, the KV cache the last one, with a reserve
    rounded up to 200 MiB. A plan that needs more than the device's memory is an
    error, or, with `allow-oversize`, a remark.
  }];
  let options = [
    Option<"allowOversize", "allow-oversize", "bool", "false", "Only report what does not fit the device's memory">
  ];
}

def PlanPrefill : Pass<"plan-prefill", "::grok::plan::DeviceOp"> {
  let summary = "Plan the passes that take prompts, and their memory";
  let description = [{
    A pass takes up to `max-prefill` tokens, but no more than the batch's rows have
    positions. Tiles of 256 tokens with warpgroups (sm_90) and one 16-bit value an
    operand, of 128 otherwise, and as many stages as fit the target's shared
    memory, up to 4. Its regions of the arena come before the KV cache. With
    `max-prefill` 0, for the CPU, and for heads that the attention of a pass
    cannot hold (which is reported) there is no plan.prefill, and prompts go
    through the decode kernel, or the CPU's. Memory beyond the device's is an error
    as in plan-memory.
  }];
  let options = [
    Option<"maxPrefill", "max-prefill", "uint32_t", "4096", "Tokens of a pass at most; 0: no prefill">,
    Option<"allowOversize", "allow-oversize", "bool", "false", "Only report what does not fit the device's memory">
  ];
}

def PredictLatency : Pass<"plan-predict", "::grok::plan::DeviceOp"> {
  let summary = "Predict the latency of a step and a request";
  let description = [{
    Adds predictions for one row and for the largest batch, of a step and of a
    request of `prompt-tokens` prompt positions and `new-tokens` new ones (fewer if
    the rows are shorter): best and worst over every routing outcome, from the
    target's constants. For hash routing these are the sets of experts that rows can
    reach with some ids, at any positions in a step and at the same one in a
    request, as the model says that the device was made from; without it, any
    reached experts anywhere. For a learned router they are all sets of expert
    choices. Between them stands what is expected of random ids, each row's for
    itself, at one position: the exact distribution of the number of distinct
    experts, times the mean over the sets of that number. With a plan.prefill a
    request's prompt goes through it.
  }];
  let options = [
    Option<"promptTokens", "prompt-tokens", "uint32_t", "512", "Ids of the request's prompt">,
    Option<"newTokens", "new-tokens", "uint32_t", "64", "Ids that the request gets">
  ];
}

#endif // GROK_COMPILER_PASSES_TD
