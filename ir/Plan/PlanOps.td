//===-- Ops of the `plan` dialect ------------------------------------------------------------*- tablegen -*-===//
#ifndef GROK_IR_PLAN_PLANOPS_TD
#define GROK_IR_PLAN_PLANOPS_TD

include "ir/Plan/PlanDialect.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/IR/SymbolInterfaces.td"

class Plan_Op<string mnemonic, list<Trait> traits = []> : Op<PlanDialect, mnemonic, traits>;

/// An op inside a device.
class Plan_Part<string mnemonic, list<Trait> traits = []> : Plan_Op<mnemonic, !listconcat([HasParent<"DeviceOp">], traits)>;

def DeviceOp : Plan_Op<"device", [IsolatedFromAbove, Symbol, SingleBlock, NoTerminator, NoRegionArguments]> {
  let summary = "The plan of one device";
  let description = [{
    Holds everything that is fixed for one device of `device_count`: first the target, the model's shape and the bounds
    that the plan is made for, then what the passes decide. Its verifier proves, for what is there so far:

    - every output tile of every matrix is produced by exactly one slot, and under policy `group` by a slot of the
      expert's group;
    - hand-over edges have no cycle within a step, and a phase that reads a buffer has an edge from the phase that
      writes it;
    - a slot's ring and buffers fit the target's shared memory;
    - arena regions that are alive together don't overlap, the KV cache lies last and its reserve, a multiple of
      200 MiB, holds the largest batch of the longest rows;
    - extents lie inside their bank's segment, and no two overlap in any layer.

    ```mlir
    plan.device @decode of @main rank 0 of 1 { ... }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, FlatSymbolRefAttr:$model, I32Attr:$device_index, I32Attr:$device_count);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $sym_name `of` $model `rank` $device_index `of` $device_count attr-dict-with-keyword $body
  }];
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    /// The only op of a kind in this device, or null.
    template <typename OpT> OpT find() {
      auto ops = getBody().front().getOps<OpT>();
      return ops.empty() ? OpT() : *ops.begin();
    }
  }];
}

def TargetOp : Plan_Part<"target"> {
  let summary = "The facts of the target that the plan relies on";
  let description = [{
    A copy of what was used of the target file, so that a plan can be checked and predicted alone. `sm` is 0 for the cpu,
    and `shared`, the shared memory of a block in bytes, is not a limit there. `gb_s` is the datasheet's bandwidth in
    10^9 bytes a second, of which a stream from all slots reaches the share `efficiency`, and a stream from the share
    `curve_slots[i]` of the slots the share `curve_rate[i]` of that. `hand_over` and `launch` are pairs in microseconds:
    memory idle and beside a saturated stream; median and worst. `bytes_per_cycle` is what a slot's matrix work reads of
    shared memory.

    ```mlir
    plan.target "h200" sm 90 slots 132 shared 232448 memory 150754820096 banks 8 align 2097152 gb_s 4.8e+03
      efficiency 9.54e-01 curve_slots [2.5e-01, 1.0] curve_rate [7.4e-01, 1.0] hand_over [1.1, 2.5]
      launch [7.5, 55.0] clock_mhz 1.98e+03 bytes_per_cycle 1.28e+02
    ```
  }];
  let arguments = (ins StrAttr:$name, I32Attr:$sm, I32Attr:$slots, I64Attr:$shared_bytes, I64Attr:$memory_bytes,
                       I32Attr:$bank_count, I64Attr:$bank_align, F64Attr:$bandwidth_gb_s, F64Attr:$stream_efficiency,
                       DenseF64ArrayAttr:$curve_slots, DenseF64ArrayAttr:$curve_rate, DenseF64ArrayAttr:$hand_over_us,
                       DenseF64ArrayAttr:$launch_us, F64Attr:$clock_mhz, F64Attr:$shared_bytes_per_cycle);
  let assemblyFormat = [{
    $name `sm` $sm `slots` $slots `shared` $shared_bytes `memory` $memory_bytes `banks` $bank_count `align` $bank_align
    `gb_s` $bandwidth_gb_s `efficiency` $stream_efficiency `curve_slots` $curve_slots `curve_rate` $curve_rate
    `hand_over` $hand_over_us `launch` $launch_us `clock_mhz` $clock_mhz `bytes_per_cycle` $shared_bytes_per_cycle attr-dict
  }];
  let hasVerifier = 1;
}

def ShapeOp : Plan_Part<"shape"> {
  let summary = "The model's sizes";
  let description = [{
    What the sizes of matrices and buffers follow from. `dense_width` is 0 without a residual MLP. `tied` says that the
    output head is the embedding, so that no separate embedding table lies in the blob.
  }];
  let arguments = (ins I32Attr:$vocab, I32Attr:$layers, I32Attr:$hidden, I32Attr:$heads, I32Attr:$kv_heads,
                       I32Attr:$head_dim, I32Attr:$experts_per_token, I32Attr:$expert_width, I32Attr:$dense_width,
                       RouterKind:$router, UnitAttr:$tied);
  let assemblyFormat = [{
    `vocab` $vocab `layers` $layers `hidden` $hidden `heads` $heads `kv_heads` $kv_heads `head_dim` $head_dim
    `experts_per_token` $experts_per_token `expert_width` $expert_width `dense_width` $dense_width `router` $router
    (`tied` $tied^)? attr-dict
  }];
  let hasVerifier = 1;
}

def BoundsOp : Plan_Part<"bounds"> {
  let summary = "What the plan is made for: batch, length and storage types";
  let description = [{
    Rows in use and positions of a row at most; every buffer is sized for them. `single` activations are one 16-bit
    value of type `dtype`, `split` ones a high and a low one. Streamed weights are of type `dtype` too, or codes of 8
    bits with scales, `weights int8` or `weights fp8`.
  }];
  let arguments = (ins I32Attr:$batch, I32Attr:$seq, ElementKind:$dtype, OperandKind:$activations,
                       DefaultValuedAttr<CodeKind, "CodeKind::None">:$codes);
  let assemblyFormat = [{
    `batch` $batch `seq` $seq `dtype` $dtype `activations` $activations (`weights` $codes^)? attr-dict
  }];
  let hasVerifier = 1;
}

def ExpertsOp : Plan_Part<"experts"> {
  let summary = "What became of every expert of the config";
  let description = [{
    `kept` experts have weights. `reached` ones are those that some token at some position can choose. A reached expert
    that isn't kept was pruned, and its tokens skip it; an expert that is neither was unreachable. `groups` is absent
    for a model whose experts have none; else group g holds experts [g * total / groups, (g + 1) * total / groups).

    ```mlir
    plan.experts total 8 groups 2 kept [0, 1, 4, 5] reached [0, 1, 4, 5]
    ```
  }];
  let arguments = (ins I32Attr:$total, OptionalAttr<I32Attr>:$groups, DenseI32ArrayAttr:$kept, DenseI32ArrayAttr:$reached);
  let assemblyFormat = "`total` $total (`groups` $groups^)? `kept` $kept `reached` $reached attr-dict";
  let hasVerifier = 1;
}

def PhaseOp : Plan_Part<"phase"> {
  let summary = "A phase of a decode step";
  let description = [{
    Phases run in the order in which they stand, once a layer; `head` runs once a step. Buffers are named as in the
    arena; a phase waits for a buffer that it reads by the edge that carries it.

    ```mlir
    plan.phase attention reads ["q", "kv_new", "kv"] writes ["partials"]
    ```
  }];
  let arguments = (ins PhaseKind:$kind, StrArrayAttr:$reads, StrArrayAttr:$writes);
  let assemblyFormat = "$kind `reads` $reads `writes` $writes attr-dict";
}

def EdgeOp : Plan_Part<"edge"> {
  let summary = "A hand-over: one phase's output that another one waits for";
  let description = [{
    `words` cross from the slots that wrote them to those that read them when every row is in use. With `epoch` each word carries the
    epoch of its writing and needs no fence. The KV cache is written by ordinary stores and read in later steps: its edge
    is `step_fence`, the one fence that ends a step, off the critical path of the layers; until then a row's newest
    entries come from `kv_new`.

    ```mlir
    plan.edge qkv -> attention carries "q" words 2048 same_layer epoch
    plan.edge down -> qkv carries "y_moe" words 2048 next_layer epoch
    ```
  }];
  let arguments = (ins PhaseKind:$from, PhaseKind:$to, StrAttr:$buffer, I64Attr:$words, EdgeScope:$scope, EdgeSync:$sync);
  let assemblyFormat = "$from `->` $to `carries` $buffer `words` $words $scope $sync attr-dict";
}

def AssignmentOp : Plan_Part<"assignment"> {
  let summary = "How tiles were given to slots";
  let description = [{
    `all`: every expert over all slots. `group`: the experts of group g only on slots [g * n, (g + 1) * n) with
    n = slots / groups rounded down; the slots left over take part in everything but experts.
  }];
  let arguments = (ins SlotPolicy:$policy);
  let assemblyFormat = "$policy attr-dict";
}

def MatrixOp : Plan_Part<"matrix"> {
  let summary = "A streamed matrix and who computes it from where";
  let description = [{
    `tiles` output tiles of 8 rows, each `steps` fragments of 8 x 32 elements long (512 bytes, or 256 and scales); for
    matrices of a layer, of every layer. Matrices stand in consumption order. Slot s computes tiles [begin[s], begin[s] + count[s]) and reads
    their fragments from `offset[s]` in the blob, which lies in bank `bank[s]`; layer l adds l times the bank's layer
    stride. The arrays are absent until slots are assigned and banks placed; where count is 0 the others are 0.

    ```mlir
    plan.matrix gate_up expert 3 tiles 16 steps 8 begin [0, 8] count [8, 8] banks [3, 4] offsets [0, 65536]
    ```
  }];
  let arguments = (ins StreamKind:$kind, OptionalAttr<I32Attr>:$expert, I32Attr:$tiles, I32Attr:$steps,
                       OptionalAttr<DenseI32ArrayAttr>:$begin, OptionalAttr<DenseI32ArrayAttr>:$count,
                       OptionalAttr<DenseI32ArrayAttr>:$bank, OptionalAttr<DenseI64ArrayAttr>:$offset);
  let assemblyFormat = [{
    $kind (`expert` $expert^)? `tiles` $tiles `steps` $steps (`begin` $begin^)? (`count` $count^)? (`banks` $bank^)?
    (`offsets` $offset^)? attr-dict
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Bytes of slot `s`'s extent.
    uint64_t extentBytes(uint32_t s);
    /// "gate_up of expert 3", for messages.
    std::string describe();
  }];
}

def EmbeddingOp : Plan_Part<"embedding"> {
  let summary = "Where the rows of an untied embedding table lie";
  let description = [{
    Slot s holds rows [row_begin[s], row_begin[s] + row_count[s]), row-major, two bytes an element.
  }];
  let arguments = (ins DenseI32ArrayAttr:$row_begin, DenseI32ArrayAttr:$row_count, DenseI32ArrayAttr:$bank,
                       DenseI64ArrayAttr:$offset);
  let assemblyFormat = "`rows` $row_begin `count` $row_count `banks` $bank `offsets` $offset attr-dict";
}

def PlacementOp : Plan_Part<"placement"> {
  let summary = "How extents were given to banks, and where the vectors lie";
  let description = [{
    `expert`: expert i of group g in bank (g + i) mod banks. `striped`: the extent of slot s of expert e in bank
    (e + s) mod banks. Extents of dense matrices: bank s mod banks. The float32 vectors (norms, and the router's matrix
    if it is learned) lie in bank 0: `vectors_layer_bytes` a layer from `vectors`, then the final norm.

    ```mlir
    plan.placement striped vectors 16384 layer_bytes 4096 blob 16777216
    ```
  }];
  let arguments = (ins PlacePolicy:$policy, I64Attr:$vectors_offset, I64Attr:$vectors_layer_bytes, I64Attr:$blob_bytes);
  let assemblyFormat = "$policy `vectors` $vectors_offset `layer_bytes` $vectors_layer_bytes `blob` $blob_bytes attr-dict";
}

def SegmentOp : Plan_Part<"segment"> {
  let summary = "A bank's part of the blob";
  let description = [{
    Segments stand in bank order and follow each other without a gap, each a multiple of the target's alignment long;
    bytes beyond `used` are zero.

    ```mlir
    plan.segment 0 at 0 bytes 2097152 used 540672 layer_stride 163840
    ```
  }];
  let arguments = (ins I32Attr:$bank, I64Attr:$offset, I64Attr:$bytes, I64Attr:$used_bytes, I64Attr:$layer_stride);
  let assemblyFormat = "$bank `at` $offset `bytes` $bytes `used` $used_bytes `layer_stride` $layer_stride attr-dict";
}

def StreamOp : Plan_Part<"stream"> {
  let summary = "A slot's weight stream and the shared memory that it runs through";
  let description = [{
    A producer copies a slot's extents in order, `chunk` bytes at a time, through a ring of `stages` chunks, with at most
    `in_flight` of them on their way and at least `pace` SM cycles from one to the next. Matrices are consumed in K blocks
    of `block_steps` k32 steps: a multiple of 64, or as long as the longest row. The ring holds what the kernel waits for at
    once: 64 steps, or a shorter K block, and a chunk, or the keys of a block of positions. `shared` is the dynamic shared
    memory of the block of `threads` threads. With `cluster 2` the blocks of two neighbouring slots share a batch: each keeps
    the residual stream of every second row. A CPU runs no kernel: only its K block counts there, and `shared` is 0.

    ```mlir
    plan.stream block_steps 128 stages 7 chunk 16384 in_flight 3 pace 890 shared 219648 threads 288
    ```
  }];
  let arguments = (ins I32Attr:$block_steps, I32Attr:$ring_stages, I32Attr:$chunk_bytes, I32Attr:$in_flight, I32Attr:$pace,
                       I32Attr:$shared_bytes, I32Attr:$threads, DefaultValuedAttr<I32Attr, "1">:$cluster);
  let assemblyFormat = [{
    `block_steps` $block_steps `stages` $ring_stages `chunk` $chunk_bytes `in_flight` $in_flight `pace` $pace
    `shared` $shared_bytes `threads` $threads (`cluster` $cluster^)? attr-dict
  }];
  let hasVerifier = 1;
}

def PrefillOp : Plan_Part<"prefill"> {
  let summary = "How prompts go through the tensor cores";
  let description = [{
    A pass computes up to `tokens` positions of the batch's prompts. Products have output tiles of 128 rows by `tile`
    tokens; a block of the kernel has `stages` panels of 64 k of both operands in its `shared` bytes of shared memory.
    Absent where prompts go through the decode kernel. Regions of the arena whose names begin with `prefill_` are its
    own.

    ```mlir
    plan.prefill tokens 4096 tile 256 stages 4 shared 230528
    ```
  }];
  let arguments = (ins I32Attr:$tokens, I32Attr:$tile_tokens, I32Attr:$stages, I32Attr:$shared_bytes);
  let assemblyFormat = "`tokens` $tokens `tile` $tile_tokens `stages` $stages `shared` $shared_bytes attr-dict";
  let hasVerifier = 1;
}

def ArenaOp : Plan_Part<"arena"> {
  let summary = "The one allocation that holds every buffer and the KV cache";
  let arguments = (ins I64Attr:$bytes, I64Attr:$kv_reserve);
  let description = [{
    `kv_reserve` is a multiple of 200 MiB, and the region `kv` is that large. Nothing is allocated after load.
  }];
  let assemblyFormat = "`bytes` $bytes `kv_reserve` $kv_reserve attr-dict";
}

def RegionOp : Plan_Part<"region"> {
  let summary = "A named part of the arena";
  let description = [{
    Its content is alive from the first to the last phase given, both included.

    ```mlir
    plan.region "q" at 0 bytes 8192 alive qkv to attention
    ```
  }];
  let arguments = (ins StrAttr:$name, I64Attr:$offset, I64Attr:$bytes, PhaseKind:$first, PhaseKind:$last);
  let assemblyFormat = "$name `at` $offset `bytes` $bytes `alive` $first `to` $last attr-dict";
}

def PredictionOp : Plan_Part<"prediction"> {
  let summary = "Predicted latency, best, expected and worst over the routing outcomes";
  let description = [{
    Microseconds of one decode step of `batch` rows with `context` positions in the KV cache, or of a request that has
    `context` prompt positions and generates `generated` more, at the target's clock. Best and worst are over every routing
    outcome, the expected case is the mean over rows of random ids. `experts` is the number of distinct experts that the
    rows of a step have chosen. The terms that add up to each time are kept by name, so that a measurement can be held
    against them; docs/dialects/rationale-plan.md has the formulas. The unit attribute `exhaustive` says that best and
    worst are those of some routing outcome; else there are too many sets of experts to look at each, or a prompt's
    positions reach different experts, and best and worst are bounds that none passes.

    ```mlir
    plan.prediction step batch 8 context 512 generated 0 best 3.1e+01 experts 1 {head_us = 4.0, ...}
      expected 3.9e+01 experts 6.4 {head_us = 4.0, ...} worst 4.2e+01 experts 8 {head_us = 4.0, ...} {exhaustive}
    ```
  }];
  let arguments = (ins PredictionScope:$scope, I32Attr:$batch, I32Attr:$positions, I32Attr:$generated, F64Attr:$best_us,
                       I32Attr:$best_experts, DictionaryAttr:$best_terms, F64Attr:$expected_us, F64Attr:$expected_experts,
                       DictionaryAttr:$expected_terms, F64Attr:$worst_us, I32Attr:$worst_experts,
                       DictionaryAttr:$worst_terms, UnitAttr:$exhaustive);
  let assemblyFormat = [{
    $scope `batch` $batch `context` $positions `generated` $generated `best` $best_us `experts` $best_experts $best_terms
    `expected` $expected_us `experts` $expected_experts $expected_terms `worst` $worst_us `experts` $worst_experts $worst_terms attr-dict
  }];
  let hasVerifier = 1;
}

#endif // GROK_IR_PLAN_PLANOPS_TD
