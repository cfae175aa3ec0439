// RUN: %grok-opt %s -split-input-file -verify-diagnostics

// What an operation can get wrong by itself.

// expected-error @below {{failed to satisfy constraint: 64-bit float attribute whose value is a finite float32 other than zero}}
%e = grok.embed multiplier 0.0 : tensor<?x48xf32>

// -----

// The largest double is no float32.
// expected-error @below {{failed to satisfy constraint: 64-bit float attribute whose value is a finite float32 other than zero}}
%e = grok.embed multiplier 1.7e308 : tensor<?x48xf32>

// -----

// Infinity, and not a number.
// expected-error @below {{whose value is a finite float32 other than zero}}
%e = "grok.embed"() {multiplier = 0x7FF0000000000000 : f64} : () -> tensor<?x48xf32>

// -----

// expected-error @below {{whose value is a finite float32 other than zero}}
%e = "grok.embed"() {multiplier = 0x7FF8000000000000 : f64} : () -> tensor<?x48xf32>

// -----

// expected-error @below {{result #0 must be tensor of f32 with one dynamic dimension (positions) and a static width, but got 'tensor<4x48xf32>'}}
%e = grok.embed multiplier 1.0 : tensor<4x48xf32>

// -----

// expected-error @below {{result #0 must be tensor of f32 with one dynamic dimension (positions) and a static width, but got 'tensor<?x48xf16>'}}
%e = grok.embed multiplier 1.0 : tensor<?x48xf16>

// -----

%e = grok.embed multiplier 1.0 : tensor<?x48xf32>
// expected-error @below {{whose value is a finite float32 above zero}}
%n = grok.rms_norm %e, final eps 0.0 : tensor<?x48xf32>

// -----

%e = grok.embed multiplier 1.0 : tensor<?x48xf32>
// expected-error @+2 {{expected ::grok::ir::NormSite to be one of: pre_attn, post_attn, pre_moe, post_moe, final}}
// expected-error @below {{failed to parse Grok_NormSiteAttr parameter 'value' which is to be a `::grok::ir::NormSite`}}
%n = grok.rms_norm %e, post_mlp eps 1.0e-05 : tensor<?x48xf32>

// -----

%e = grok.embed multiplier 1.0 : tensor<?x48xf32>
// expected-error @below {{'grok.qkv' op has 4 heads and 3 kv_heads; expected heads to be a multiple of kv_heads}}
%q, %k, %v = grok.qkv %e heads 4 kv_heads 3 head_dim 16 : tensor<?x48xf32> -> tensor<?x64xf32>, tensor<?x48xf32>

// -----

%e = grok.embed multiplier 1.0 : tensor<?x48xf32>
// expected-error @below {{'grok.qkv' op has head_dim 15; expected an even number}}
%q, %k, %v = grok.qkv %e heads 4 kv_heads 2 head_dim 15 : tensor<?x48xf32> -> tensor<?x60xf32>, tensor<?x30xf32>

// -----

%e = grok.embed multiplier 1.0 : tensor<?x48xf32>
// expected-error @below {{'grok.qkv' op result q is 48 wide; expected 64 (heads * head_dim)}}
%q, %k, %v = grok.qkv %e heads 4 kv_heads 2 head_dim 16 : tensor<?x48xf32> -> tensor<?x48xf32>, tensor<?x32xf32>

// -----

%e = grok.embed multiplier 1.0 : tensor<?x48xf32>
// expected-error @below {{'grok.qkv' op result k is 48 wide; expected 32 (kv_heads * head_dim)}}
%q, %k, %v = grok.qkv %e heads 4 kv_heads 2 head_dim 16 : tensor<?x48xf32> -> tensor<?x64xf32>, tensor<?x48xf32>

// -----

%e = grok.embed multiplier 1.0 : tensor<?x48xf32>
// expected-error @below {{attribute 'heads' failed to satisfy constraint: 32-bit signless integer attribute whose value is positive}}
%q, %k, %v = grok.qkv %e heads 0 kv_heads 2 head_dim 16 : tensor<?x48xf32> -> tensor<?x64xf32>, tensor<?x48xf32>

// -----

%e = grok.embed multiplier 1.0 : tensor<?x45xf32>
// expected-error @below {{'grok.rope' op has head_dim 15; expected an even number}}
%r = grok.rope %e theta 10000.0 head_dim 15 : tensor<?x45xf32>

// -----

%e = grok.embed multiplier 1.0 : tensor<?x48xf32>
// expected-error @below {{'grok.rope' op operand is 48 wide; expected a multiple of head_dim 32}}
%r = grok.rope %e theta 10000.0 head_dim 32 : tensor<?x48xf32>

// -----

%e = grok.embed multiplier 1.0 : tensor<?x48xf32>
// expected-error @below {{attribute 'theta' failed to satisfy constraint: 64-bit float attribute whose value is a finite float32 above one}}
%r = grok.rope %e theta 1.0 head_dim 16 : tensor<?x48xf32>

// -----

%e = grok.embed multiplier 1.0 : tensor<?x48xf32>
// expected-error @below {{attribute 'theta' failed to satisfy constraint: 64-bit float attribute whose value is a finite float32 above one}}
%r = grok.rope %e theta 0.5 head_dim 16 : tensor<?x48xf32>

// -----

%e = grok.embed multiplier 1.0 : tensor<?x48xf32>
// expected-error @below {{attribute 'theta' failed to satisfy constraint: 64-bit float attribute whose value is a finite float32 above one}}
%r = grok.rope %e theta -2.0 head_dim 16 : tensor<?x48xf32>

// -----

%e = grok.embed multiplier 1.0 : tensor<?x48xf32>
// expected-error @below {{'grok.attention' op has 3 heads and 2 kv_heads; expected heads to be a multiple of kv_heads}}
%o = grok.attention %e, %e, %e heads 3 kv_heads 2 head_dim 16 scale 1.0 : tensor<?x48xf32>, tensor<?x48xf32>

// -----

%e = grok.embed multiplier 1.0 : tensor<?x48xf32>
// expected-error @below {{'grok.attention' op operand q is 48 wide; expected 96 (heads * head_dim)}}
%o = grok.attention %e, %e, %e heads 6 kv_heads 3 head_dim 16 scale 1.0 : tensor<?x48xf32>, tensor<?x48xf32>

// -----

%e = grok.embed multiplier 1.0 : tensor<?x48xf32>
// expected-error @below {{'grok.attention' op operand k is 48 wide; expected 16 (kv_heads * head_dim)}}
%o = grok.attention %e, %e, %e heads 3 kv_heads 1 head_dim 16 scale 1.0 : tensor<?x48xf32>, tensor<?x48xf32>

// -----

%e = grok.embed multiplier 1.0 : tensor<?x48xf32>
// expected-error @below {{attribute 'cap' failed to satisfy constraint: 64-bit float attribute whose value is a finite float32 above zero}}
%o = grok.attention %e, %e, %e heads 3 kv_heads 3 head_dim 16 scale 1.0 cap -30.0 : tensor<?x48xf32>, tensor<?x48xf32>

// -----

%e = grok.embed multiplier 1.0 : tensor<?x48xf32>
// expected-error @below {{'grok.attention' op has temperature_length 1; expected at least 2}}
%o = grok.attention %e, %e, %e heads 3 kv_heads 3 head_dim 16 scale 1.0 temperature_length 1 : tensor<?x48xf32>, tensor<?x48xf32>

// -----

// expected-error @below {{'grok.hash_route' op has type '!grok.routing<1 of 16>'; expected 1 of groups * experts_per_group, which is 32}}
%r = grok.hash_route groups 4 experts_per_group 8 token_multiplier 1 position_multiplier 1 hash_bits 6 index_shift 4 index_mask 7 position_offset_mask 0 : !grok.routing<1 of 16>

// -----

// expected-error @below {{'grok.hash_route' op has type '!grok.routing<2 of 32>'; expected 1 of groups * experts_per_group, which is 32}}
%r = grok.hash_route groups 4 experts_per_group 8 token_multiplier 1 position_multiplier 1 hash_bits 6 index_shift 4 index_mask 7 position_offset_mask 0 : !grok.routing<2 of 32>

// -----

// expected-error @below {{'grok.hash_route' op has index_mask 8; expected less than experts_per_group 8, so that an index stays in its group}}
%r = grok.hash_route groups 4 experts_per_group 8 token_multiplier 1 position_multiplier 1 hash_bits 6 index_shift 4 index_mask 8 position_offset_mask 0 : !grok.routing<1 of 32>

// -----

// expected-error @below {{attribute 'hash_bits' failed to satisfy constraint: 32-bit signless integer attribute whose minimum value is 1 whose maximum value is 32}}
%r = grok.hash_route groups 4 experts_per_group 8 token_multiplier 1 position_multiplier 1 hash_bits 33 index_shift 4 index_mask 7 position_offset_mask 0 : !grok.routing<1 of 32>

// -----

// expected-error @below {{attribute 'index_shift' failed to satisfy constraint: 32-bit signless integer attribute whose minimum value is 0 whose maximum value is 31}}
%r = grok.hash_route groups 4 experts_per_group 8 token_multiplier 1 position_multiplier 1 hash_bits 6 index_shift 32 index_mask 7 position_offset_mask 0 : !grok.routing<1 of 32>

// -----

// expected-error @below {{attribute 'token_multiplier' failed to satisfy constraint: 64-bit signless integer attribute whose minimum value is 0 whose maximum value is 4294967295}}
%r = grok.hash_route groups 4 experts_per_group 8 token_multiplier 4294967296 position_multiplier 1 hash_bits 6 index_shift 4 index_mask 7 position_offset_mask 0 : !grok.routing<1 of 32>

// -----

// expected-error @below {{attribute 'position_offset_mask' failed to satisfy constraint: 64-bit signless integer attribute whose minimum value is 0 whose maximum value is 4294967295}}
%r = grok.hash_route groups 4 experts_per_group 8 token_multiplier 1 position_multiplier 1 hash_bits 6 index_shift 4 index_mask 7 position_offset_mask -1 : !grok.routing<1 of 32>

// -----

%e = grok.embed multiplier 1.0 : tensor<?x48xf32>
// expected-error @below {{'grok.topk_route' op has k 5; expected at most the number of experts, 4}}
%r = grok.topk_route %e experts 4 k 5 : tensor<?x48xf32> -> !grok.routing<4 of 4>

// -----

%e = grok.embed multiplier 1.0 : tensor<?x48xf32>
// expected-error @below {{'grok.topk_route' op has type '!grok.routing<1 of 4>'; expected 2 of 4}}
%r = grok.topk_route %e experts 4 k 2 : tensor<?x48xf32> -> !grok.routing<1 of 4>

// -----

%e = grok.embed multiplier 1.0 : tensor<?x48xf32>
// expected-error @below {{routes each position to 5 of 4 experts; expected at least one and at most all}}
%r = grok.topk_route %e experts 4 k 2 : tensor<?x48xf32> -> !grok.routing<5 of 4>

// -----

%e = grok.embed multiplier 1.0 : tensor<?x48xf32>
%r = grok.topk_route %e experts 4 k 2 : tensor<?x48xf32> -> !grok.routing<2 of 4>
// expected-error @below {{'grok.experts' op has 8 experts and a routing of type '!grok.routing<2 of 4>'; expected the same number}}
%m = grok.experts %e, %r experts 8 width 24 gelu erf : tensor<?x48xf32>, !grok.routing<2 of 4>

// -----

%e = grok.embed multiplier 1.0 : tensor<?x48xf32>
%r = grok.topk_route %e experts 4 k 2 : tensor<?x48xf32> -> !grok.routing<2 of 4>
// expected-error @below {{'grok.experts' op keeps no expert; expected at least one}}
%m = grok.experts %e, %r experts 4 width 24 gelu erf kept [] : tensor<?x48xf32>, !grok.routing<2 of 4>

// -----

%e = grok.embed multiplier 1.0 : tensor<?x48xf32>
%r = grok.topk_route %e experts 4 k 2 : tensor<?x48xf32> -> !grok.routing<2 of 4>
// expected-error @below {{'grok.experts' op kept names expert 4; expected 0 to 3}}
%m = grok.experts %e, %r experts 4 width 24 gelu erf kept [0, 4] : tensor<?x48xf32>, !grok.routing<2 of 4>

// -----

%e = grok.embed multiplier 1.0 : tensor<?x48xf32>
%r = grok.topk_route %e experts 4 k 2 : tensor<?x48xf32> -> !grok.routing<2 of 4>
// expected-error @below {{'grok.experts' op kept names expert -1; expected 0 to 3}}
%m = grok.experts %e, %r experts 4 width 24 gelu erf kept [-1, 0] : tensor<?x48xf32>, !grok.routing<2 of 4>

// -----

%e = grok.embed multiplier 1.0 : tensor<?x48xf32>
%r = grok.topk_route %e experts 4 k 2 : tensor<?x48xf32> -> !grok.routing<2 of 4>
// expected-error @below {{'grok.experts' op kept has 1 after 2; expected ascending order}}
%m = grok.experts %e, %r experts 4 width 24 gelu erf kept [0, 2, 1] : tensor<?x48xf32>, !grok.routing<2 of 4>

// -----

%e = grok.embed multiplier 1.0 : tensor<?x48xf32>
%r = grok.topk_route %e experts 4 k 2 : tensor<?x48xf32> -> !grok.routing<2 of 4>
// expected-error @below {{'grok.experts' op kept has 2 after 2; expected ascending order}}
%m = grok.experts %e, %r experts 4 width 24 gelu erf kept [0, 2, 2] : tensor<?x48xf32>, !grok.routing<2 of 4>

// -----

%e = grok.embed multiplier 1.0 : tensor<?x48xf32>
%r = grok.topk_route %e experts 4 k 2 : tensor<?x48xf32> -> !grok.routing<2 of 4>
// expected-error @below {{'grok.experts' op unreachable has 1 after 1; expected ascending order}}
%m = grok.experts %e, %r experts 4 width 24 gelu erf kept [0] unreachable [1, 1] : tensor<?x48xf32>, !grok.routing<2 of 4>

// -----

%e = grok.embed multiplier 1.0 : tensor<?x48xf32>
%r = grok.topk_route %e experts 4 k 2 : tensor<?x48xf32> -> !grok.routing<2 of 4>
// expected-error @below {{'grok.experts' op expert 2 is both kept and unreachable; expected unreachable experts to be dropped}}
%m = grok.experts %e, %r experts 4 width 24 gelu erf unreachable [2] : tensor<?x48xf32>, !grok.routing<2 of 4>

// -----

%e = grok.embed multiplier 1.0 : tensor<?x48xf32>
// expected-error @+2 {{expected ::grok::ir::GeluKind to be one of: tanh, erf}}
// expected-error @below {{failed to parse Grok_GeluAttr parameter 'value' which is to be a `::grok::ir::GeluKind`}}
%d = grok.dense_mlp %e width 40 gelu silu : tensor<?x48xf32>

// -----

%e = grok.embed multiplier 1.0 : tensor<?x48xf32>
// expected-error @below {{attribute 'width' failed to satisfy constraint: 32-bit signless integer attribute whose value is positive}}
%d = grok.dense_mlp %e width 0 gelu erf : tensor<?x48xf32>

// -----

%e = grok.embed multiplier 1.0 : tensor<?x48xf32>
// expected-error @below {{'grok.layers' op expects parent op 'grok.model'}}
%l = grok.layers 2 (%h = %e) : tensor<?x48xf32> {
  grok.yield %h : tensor<?x48xf32>
}

// -----

grok.model @main vocab 100 context 128 dtype bf16 {
  %e = grok.embed multiplier 1.0 : tensor<?x48xf32>
  // expected-error @below {{'grok.layers' op region has 2 arguments; expected one of type 'tensor<?x48xf32>'}}
  %l = "grok.layers"(%e) <{count = 2 : i32}> ({
  ^bb0(%h: tensor<?x48xf32>, %g: tensor<?x48xf32>):
    grok.yield %h : tensor<?x48xf32>
  }) : (tensor<?x48xf32>) -> tensor<?x48xf32>
  grok.return %l : tensor<?x48xf32>
}

// -----

grok.model @main vocab 100 context 128 dtype bf16 {
  %e = grok.embed multiplier 1.0 : tensor<?x48xf32>
  // expected-error @below {{'grok.layers' op region has an argument of type 'tensor<?x40xf32>'; expected 'tensor<?x48xf32>'}}
  %l = "grok.layers"(%e) <{count = 2 : i32}> ({
  ^bb0(%h: tensor<?x40xf32>):
    grok.yield %h : tensor<?x40xf32>
  }) : (tensor<?x48xf32>) -> tensor<?x48xf32>
  grok.return %l : tensor<?x48xf32>
}

// -----

grok.model @main vocab 100 context 128 dtype bf16 {
  %e = grok.embed multiplier 1.0 : tensor<?x48xf32>
  %l = grok.layers 2 (%h = %e) : tensor<?x48xf32> {
    %z = grok.embed multiplier 1.0 : tensor<?x40xf32>
    // expected-error @below {{'grok.yield' op yields 'tensor<?x40xf32>'; expected 'tensor<?x48xf32>'}}
    grok.yield %z : tensor<?x40xf32>
  }
  grok.return %l : tensor<?x48xf32>
}

// -----

// expected-error @below {{attribute 'context' failed to satisfy constraint: 32-bit signless integer attribute whose value is positive}}
grok.model @main vocab 100 context 0 dtype bf16 {
  %e = grok.embed multiplier 1.0 : tensor<?x48xf32>
  grok.return %e : tensor<?x48xf32>
}
