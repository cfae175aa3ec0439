// The operations of the dialect `grok`. Sections named in descriptions ("model.py") are those of the public
// sources that define the two released models.
#ifndef GROK_IR_MODEL_GROKOPS_TD
#define GROK_IR_MODEL_GROKOPS_TD

include "ir/Model/GrokDialect.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Grok_Op<string mnemonic, list<Trait> traits = []> : Op<Grok_Dialect, mnemonic, traits>;

//===----------------------------------------------------------------------===//
// Structure
//===----------------------------------------------------------------------===//

def ModelOp : Grok_Op<"model", [IsolatedFromAbove, Symbol, SingleBlock, NoRegionArguments]> {
  let summary = "A whole model";
  let description = [{
    Token ids in, logits out: an embedding, the layers, a final norm and the
    head. `vocab` is the number of token ids, `context` the number of positions
    that the checkpoint was made for, `dtype` the type its weights are stored in;
    `bos`, `eos` and `pad` are token ids, absent where the model has none.

    The verifier checks the data flow from the ids to the logits operation by
    operation, and that constants which the model has once (norm epsilon, RoPE
    base, kind of GELU) agree wherever they are repeated.

    Source: `LanguageModel` in model.py of xai-org/grok-1; Grok-2's additions in
    `grok.py` of SGLang.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Grok_Count:$vocab, Grok_Count:$context,
                       Grok_StorageTypeAttr:$dtype, OptionalAttr<Grok_TokenId>:$bos,
                       OptionalAttr<Grok_TokenId>:$eos, OptionalAttr<Grok_TokenId>:$pad);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $sym_name `vocab` $vocab `context` $context `dtype` `` $dtype
    (`bos` $bos^)? (`eos` $eos^)? (`pad` $pad^)? attr-dict-with-keyword $body
  }];
  let hasRegionVerifier = 1;
}

def LayersOp : Grok_Op<"layers", [HasParent<"ModelOp">, SingleBlock, AllTypesMatch<["init", "result"]>,
                                  DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "The layers: one region, repeated";
  let description = [{
    `h = init; repeat count times: h = body(h)`. The region's argument is the
    residual stream before a layer, its `grok.yield` the stream after it. Layer l
    uses the l-th weights of every operation in the region; nothing else differs
    between layers.

    Source: `Transformer` and `DecoderLayer` in model.py of xai-org/grok-1.
  }];
  let arguments = (ins Grok_Count:$count, Grok_Rows:$init);
  let results = (outs Grok_Rows:$result);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$count attr-dict-with-keyword custom<LayersBody>($init, type($init), $body)";
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    /// The residual stream before a layer.
    ::mlir::BlockArgument getStream() { return getBody().getArgument(0); }
  }];
}

def YieldOp : Grok_Op<"yield", [HasParent<"LayersOp">, Pure, Terminator]> {
  let summary = "The residual stream after a layer";
  let arguments = (ins Grok_Rows:$value);
  let assemblyFormat = "$value attr-dict `:` type($value)";
  let description = "Ends the region of `grok.layers`.";
}

def ReturnOp : Grok_Op<"return", [HasParent<"ModelOp">, Pure, Terminator]> {
  let summary = "The logits of a model";
  let arguments = (ins Grok_Rows:$logits);
  let assemblyFormat = "$logits attr-dict `:` type($logits)";
  let description = "Ends the region of `grok.model`.";
}

//===----------------------------------------------------------------------===//
// Ends
//===----------------------------------------------------------------------===//

def EmbedOp : Grok_Op<"embed", [Pure]> {
  let summary = "Token embedding";
  let description = [{
    `h[i] = multiplier * Embedding[id[i]]`, in float32. There is no positional
    embedding.

    Source: `InOutEmbed` in model.py of xai-org/grok-1.
  }];
  let arguments = (ins Grok_NonZero:$multiplier);
  let results = (outs Grok_Rows:$result);
  let assemblyFormat = "`multiplier` custom<Double>($multiplier) attr-dict `:` type($result)";
}

def LmHeadOp : Grok_Op<"lm_head", [Pure]> {
  let summary = "Logits over the vocabulary";
  let description = [{
    `z = multiplier * (x . W^T)`, and with a cap `z = cap * tanh(z / cap)`, in this
    order. `tied`: W is the embedding table; otherwise it is a matrix of its own.

    Source: `InOutEmbed.decode` in model.py of xai-org/grok-1; the cap and the
    untied head in `grok.py` of SGLang (Grok-2).
  }];
  let arguments = (ins Grok_Rows:$input, UnitAttr:$tied, Grok_NonZero:$multiplier, OptionalAttr<Grok_Positive>:$cap);
  let results = (outs Grok_Rows:$logits);
  let assemblyFormat = [{
    $input (`tied` $tied^)? `multiplier` custom<Double>($multiplier) (`cap` custom<Double>($cap)^)? attr-dict
    `:` type($input) `->` type($logits)
  }];
}

//===----------------------------------------------------------------------===//
// Norm and residual stream
//===----------------------------------------------------------------------===//

def RmsNormOp : Grok_Op<"rms_norm", [Pure, SameOperandsAndResultType]> {
  let summary = "Root-mean-square norm";
  let description = [{
    `y = g * x / sqrt(mean(x^2) + eps)` over the width, in float32. g is used as it
    is (not 1 + g). The site names the weights: a layer has `pre_attn`,
    `post_attn`, `pre_moe` and `post_moe`, the model has `final`.

    Source: `RMSNorm` in model.py of xai-org/grok-1.
  }];
  let arguments = (ins Grok_Rows:$input, Grok_NormSiteAttr:$site, Grok_Positive:$eps);
  let results = (outs Grok_Rows:$result);
  let assemblyFormat = "$input `,` `` $site `eps` custom<Double>($eps) attr-dict `:` type($input)";
}

def AddOp : Grok_Op<"add", [Pure, SameOperandsAndResultType]> {
  let summary = "Residual addition";
  let description = [{
    `y = stream + update`, in float32. The stream itself is never normalised.

    Source: `DecoderLayer` in model.py of xai-org/grok-1.
  }];
  let arguments = (ins Grok_Rows:$stream, Grok_Rows:$update);
  let results = (outs Grok_Rows:$result);
  let assemblyFormat = "$stream `,` $update attr-dict `:` type($stream)";
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

def QkvOp : Grok_Op<"qkv", [Pure, AllTypesMatch<["k", "v"]>]> {
  let summary = "Query, key and value projections";
  let description = [{
    `q = a . Wq^T`, `k = a . Wk^T`, `v = a . Wv^T`, without bias. q is
    `heads * head_dim` wide, which need not be the hidden width; k and v are
    `kv_heads * head_dim` wide.

    Source: `MultiHeadAttention` in model.py of xai-org/grok-1.
  }];
  let arguments = (ins Grok_Rows:$input, Grok_Count:$heads, Grok_Count:$kv_heads, Grok_Count:$head_dim);
  let results = (outs Grok_Rows:$q, Grok_Rows:$k, Grok_Rows:$v);
  let assemblyFormat = [{
    $input `heads` $heads `kv_heads` $kv_heads `head_dim` $head_dim attr-dict
    `:` type($input) `->` type($q) `,` type($k)
  }];
  let hasVerifier = 1;
}

def RopeOp : Grok_Op<"rope", [Pure, SameOperandsAndResultType]> {
  let summary = "Rotary position embedding, half rotation";
  let description = [{
    Dimension j of a head pairs with j + head_dim / 2. At absolute position i,
    `phi = i * theta^(-2 j / head_dim)`; `y[j] = x[j] cos(phi) - x[j + head_dim/2] sin(phi)`
    and `y[j + head_dim/2] = x[j + head_dim/2] cos(phi) + x[j] sin(phi)`. Angles are
    float32.

    Source: `RotaryEmbedding` in model.py of xai-org/grok-1.
  }];
  let arguments = (ins Grok_Rows:$input, Grok_AboveOne:$theta, Grok_Count:$head_dim);
  let results = (outs Grok_Rows:$result);
  let assemblyFormat = "$input `theta` custom<Double>($theta) `head_dim` $head_dim attr-dict `:` type($input)";
  let hasVerifier = 1;
}

def AttentionOp : Grok_Op<"attention", [Pure, AllTypesMatch<["k", "v"]>, AllTypesMatch<["q", "result"]>]> {
  let summary = "Causal attention with grouped query heads";
  let description = [{
    Query head n reads kv head `n / (heads / kv_heads)`. For a query at position i and
    a key at j <= i: `s = scale * (q . k)`; with a cap, `s = cap * tanh(s / cap)`; with a
    temperature length T and i > T, `s = s * log2(i) / log2(T)`. Keys after i are left
    out after the cap. `p = softmax(s)` in float32 and `o = sum p v`.

    Source: `MultiHeadAttention` in model.py of xai-org/grok-1; the temperature in
    the Triton kernels of SGLang (Grok-2).
  }];
  let arguments = (ins Grok_Rows:$q, Grok_Rows:$k, Grok_Rows:$v, Grok_Count:$heads, Grok_Count:$kv_heads,
                       Grok_Count:$head_dim, Grok_NonZero:$scale, OptionalAttr<Grok_Positive>:$cap,
                       OptionalAttr<Grok_Count>:$temperature_length);
  let results = (outs Grok_Rows:$result);
  let assemblyFormat = [{
    $q `,` $k `,` $v `heads` $heads `kv_heads` $kv_heads `head_dim` $head_dim `scale` custom<Double>($scale)
    (`cap` custom<Double>($cap)^)? (`temperature_length` $temperature_length^)? attr-dict `:` type($q) `,` type($k)
  }];
  let hasVerifier = 1;
}

def LinearOp : Grok_Op<"linear", [Pure]> {
  let summary = "Product with one of a layer's matrices";
  let description = [{
    `y = x . W^T`, without bias. `attn_out` is the projection of the concatenated
    heads back to the hidden width.

    Source: `MultiHeadAttention` in model.py of xai-org/grok-1.
  }];
  let arguments = (ins Grok_Rows:$input, Grok_LinearSiteAttr:$weights);
  let results = (outs Grok_Rows:$result);
  let assemblyFormat = "$input `,` `` $weights attr-dict `:` type($input) `->` type($result)";
}

//===----------------------------------------------------------------------===//
// Routing and experts
//===----------------------------------------------------------------------===//

def HashRouteOp : Grok_Op<"hash_route", [Pure]> {
  let summary = "Routing by token id and position alone";
  let description = [{
    In unsigned 32-bit arithmetic:
    ```
    h      = (id * token_multiplier + pos * position_multiplier) mod 2^32, low hash_bits bits
    group  = h mod groups
    index  = ((h >> index_shift) + (pos & position_offset_mask)) & index_mask
    expert = group * experts_per_group + index
    ```
    The one chosen expert has weight 1; there is no router matrix. Neither the
    layer nor an activation enters, so a position has the same expert in every
    layer.

    Source: the users' formula; every constant is data of the configuration.
  }];
  let arguments = (ins Grok_Count:$groups, Grok_Count:$experts_per_group, Grok_Word:$token_multiplier,
                       Grok_Word:$position_multiplier,
                       ConfinedAttr<I32Attr, [IntMinValue<1>, IntMaxValue<32>]>:$hash_bits,
                       ConfinedAttr<I32Attr, [IntMinValue<0>, IntMaxValue<31>]>:$index_shift,
                       Grok_Word:$index_mask, Grok_Word:$position_offset_mask);
  let results = (outs Grok_Routing:$routing);
  let assemblyFormat = [{
    `groups` $groups `experts_per_group` $experts_per_group
    `token_multiplier` $token_multiplier `position_multiplier` $position_multiplier
    `hash_bits` $hash_bits `index_shift` $index_shift `index_mask` $index_mask
    `position_offset_mask` $position_offset_mask attr-dict `:` qualified(type($routing))
  }];
  let hasVerifier = 1;
}

def TopkRouteOp : Grok_Op<"topk_route", [Pure]> {
  let summary = "Learned router";
  let description = [{
    `z = b . Wr^T` in float32; with a cap, `z = cap * tanh(z / cap)`; `P = softmax(z)`
    over all experts. The k experts of largest P are chosen, ties going to the
    lower index, and expert e has weight P[e], not divided by the sum over the
    chosen.

    Source: `Router` in model.py of xai-org/grok-1; the cap in `grok.py` of SGLang
    (Grok-2).
  }];
  let arguments = (ins Grok_Rows:$input, Grok_Count:$experts, Grok_Count:$k, OptionalAttr<Grok_Positive>:$cap);
  let results = (outs Grok_Routing:$routing);
  let assemblyFormat = [{
    $input `experts` $experts `k` $k (`cap` custom<Double>($cap)^)? attr-dict `:` type($input) `->` qualified(type($routing))
  }];
  let hasVerifier = 1;
}

def ExpertsOp : Grok_Op<"experts", [Pure, AllTypesMatch<["input", "result"]>]> {
  let summary = "The chosen experts' weighted sum";
  let description = [{
    `y = sum over chosen e, ascending, of weight[e] * ((gelu(b . Wgate[e]^T) * (b . Wup[e]^T)) . Wdown[e]^T)`.

    `kept` lists the experts whose weights the compiled model has, in ascending
    order; absent, it has all. A position that routes to another expert skips it,
    its weight being lost. `unreachable` lists those of the dropped experts that
    no position can route to; the other dropped ones were pruned.

    `gelu tanh`: `z/2 (1 + tanh(sqrt(2/pi) (z + 0.044715 z^3)))`; `gelu erf`:
    `z/2 (1 + erf(z / sqrt(2)))`.

    Source: `MoELayer` in model.py of xai-org/grok-1.
  }];
  let arguments = (ins Grok_Rows:$input, Grok_Routing:$routing, Grok_Count:$experts, Grok_Count:$width,
                       Grok_GeluAttr:$gelu, OptionalAttr<DenseI32ArrayAttr>:$kept,
                       OptionalAttr<DenseI32ArrayAttr>:$unreachable);
  let results = (outs Grok_Rows:$result);
  let assemblyFormat = [{
    $input `,` $routing `experts` $experts `width` $width `gelu` `` $gelu
    (`kept` $kept^)? (`unreachable` $unreachable^)? attr-dict `:` type($input) `,` qualified(type($routing))
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The experts whose weights the compiled model has, ascending.
    ::llvm::SmallVector<uint32_t> keptExperts();
    bool isKept(uint32_t expert);
    /// Dropped because no position can route to it.
    bool isUnreachable(uint32_t expert);
  }];
}

def DenseMlpOp : Grok_Op<"dense_mlp", [Pure, SameOperandsAndResultType]> {
  let summary = "The residual MLP beside the experts";
  let description = [{
    `y = (gelu(b . Wgate^T) * (b . Wup^T)) . Wdown^T`, of width `width`, for every
    position.

    Source: `residual_moe` in `grok.py` of SGLang (Grok-2).
  }];
  let arguments = (ins Grok_Rows:$input, Grok_Count:$width, Grok_GeluAttr:$gelu);
  let results = (outs Grok_Rows:$result);
  let assemblyFormat = "$input `width` $width `gelu` `` $gelu attr-dict `:` type($input)";
}

def ScaledAddOp : Grok_Op<"scaled_add", [Pure, SameOperandsAndResultType]> {
  let summary = "Sum of the dense and the expert MLP, scaled";
  let description = [{
    `y = scale * (dense + experts)`; the only scale there is, 1 / sqrt(2), is what a
    `grok.model` accepts.

    Source: `residual_moe` in `grok.py` of SGLang (Grok-2).
  }];
  let arguments = (ins Grok_Rows:$dense, Grok_Rows:$experts, Grok_NonZero:$scale);
  let results = (outs Grok_Rows:$result);
  let assemblyFormat = "$dense `,` $experts `scale` custom<Double>($scale) attr-dict `:` type($dense)";
}

#endif // GROK_IR_MODEL_GROKOPS_TD
