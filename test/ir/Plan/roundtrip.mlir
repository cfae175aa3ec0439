// RUN: %grok-opt %s | %grok-opt | FileCheck %s
// RUN: %grok-opt %s --mlir-print-op-generic | %grok-opt | FileCheck %s

// A whole plan, printed and read back.

// CHECK: plan.device @decode of @main rank 0 of 1 {
// CHECK-NEXT: plan.target "two" sm 90 slots 2 shared 232448 memory 300000000 banks 2 align 4096 gb_s 1.000000e+03 efficiency 1.000000e+00 curve_slots [1.000000e+00] curve_rate [1.000000e+00] hand_over [1.000000e+00, 2.000000e+00] launch [1.000000e+00, 2.000000e+00] clock_mhz 1.000000e+03 bytes_per_cycle 1.000000e+02
// CHECK-NEXT: plan.shape vocab 32 layers 2 hidden 32 heads 1 kv_heads 1 head_dim 32 experts_per_token 1 expert_width 16 dense_width 0 router hash tied
// CHECK-NEXT: plan.bounds batch 1 seq 64 dtype bf16 activations single
// CHECK-NEXT: plan.experts total 2 groups 2 kept [0, 1] reached [0, 1]
// CHECK-NEXT: plan.phase qkv reads ["y_moe", "candidates"] writes ["q", "kv_new", "kv"]
// CHECK-NEXT: plan.phase attention reads ["q", "kv_new", "kv"] writes ["partials"]
// CHECK-NEXT: plan.phase merge reads ["partials"] writes ["attn"]
// CHECK-NEXT: plan.phase attn_out reads ["attn"] writes ["y_attn"]
// CHECK-NEXT: plan.phase gate_up reads ["y_attn"] writes ["act"]
// CHECK-NEXT: plan.phase down reads ["act"] writes ["y_moe"]
// CHECK-NEXT: plan.phase head reads ["y_moe"] writes ["candidates"]
// CHECK-NEXT: plan.edge qkv -> attention carries "q" words 32 same_layer epoch
// CHECK-NEXT: plan.edge qkv -> attention carries "kv_new" words 64 same_layer epoch
// CHECK-NEXT: plan.edge qkv -> attention carries "kv" words 64 next_step step_fence
// CHECK-NEXT: plan.edge attention -> merge carries "partials" words 34 same_layer epoch
// CHECK-NEXT: plan.edge merge -> attn_out carries "attn" words 16 same_layer epoch
// CHECK-NEXT: plan.edge attn_out -> gate_up carries "y_attn" words 32 same_layer epoch
// CHECK-NEXT: plan.edge gate_up -> down carries "act" words 8 same_layer epoch
// CHECK-NEXT: plan.edge down -> qkv carries "y_moe" words 32 next_layer epoch
// CHECK-NEXT: plan.edge down -> head carries "y_moe" words 32 same_layer epoch
// CHECK-NEXT: plan.edge head -> qkv carries "candidates" words 4 next_step epoch
// CHECK-NEXT: plan.assignment all
// CHECK-NEXT: plan.matrix qkv tiles 12 steps 1 begin [0, 6] count [6, 6] banks [0, 1] offsets [0, 20480]
// CHECK-NEXT: plan.matrix attn_out tiles 4 steps 1 begin [0, 2] count [2, 2] banks [0, 1] offsets [3072, 23552]
// CHECK-NEXT: plan.matrix gate_up expert 0 tiles 4 steps 1 begin [0, 2] count [2, 2] banks [0, 1] offsets [4096, 24576]
// CHECK-NEXT: plan.matrix gate_up expert 1 tiles 4 steps 1 begin [0, 2] count [2, 2] banks [1, 0] offsets [25600, 5120]
// CHECK-NEXT: plan.matrix down expert 0 tiles 4 steps 1 begin [0, 2] count [2, 2] banks [0, 1] offsets [6144, 26624]
// CHECK-NEXT: plan.matrix down expert 1 tiles 4 steps 1 begin [0, 2] count [2, 2] banks [1, 0] offsets [27648, 7168]
// CHECK-NEXT: plan.matrix head tiles 4 steps 1 begin [0, 2] count [2, 2] banks [0, 1] offsets [17920, 36864]
// CHECK-NEXT: plan.placement striped vectors 16384 layer_bytes 512 blob 40960
// CHECK-NEXT: plan.segment 0 at 0 bytes 20480 used 18944 layer_stride 8192
// CHECK-NEXT: plan.segment 1 at 20480 bytes 20480 used 17408 layer_stride 8192
// CHECK-NEXT: plan.stream block_steps 16 stages 12 chunk 16384 in_flight 3 pace 31 shared 208000 threads 288
// CHECK-NEXT: plan.arena bytes 209729024 kv_reserve 209715200
// CHECK-NEXT: plan.region "q" at 0 bytes 512 alive qkv to attention
// CHECK-NEXT: plan.region "kv_new" at 512 bytes 1024 alive qkv to attention
// CHECK-NEXT: plan.region "partials" at 1536 bytes 544 alive attention to merge
// CHECK-NEXT: plan.region "attn" at 2304 bytes 256 alive merge to attn_out
// CHECK-NEXT: plan.region "y_attn" at 2560 bytes 512 alive attn_out to gate_up
// CHECK-NEXT: plan.region "act" at 3072 bytes 128 alive gate_up to down
// CHECK-NEXT: plan.region "y_moe" at 3328 bytes 512 alive down to head
// CHECK-NEXT: plan.region "presence" at 3840 bytes 32 alive down to head
// CHECK-NEXT: plan.region "candidates" at 4096 bytes 64 alive head to head
// CHECK-NEXT: plan.region "residual" at 4352 bytes 256 alive qkv to head
// CHECK-NEXT: plan.region "rope" at 4608 bytes 8192 alive qkv to head
// CHECK-NEXT: plan.region "logits" at 12800 bytes 128 alive head to head
// CHECK-NEXT: plan.region "ids" at 13056 bytes 260 alive qkv to head
// CHECK-NEXT: plan.region "claims" at 13568 bytes 8 alive qkv to head
// CHECK-NEXT: plan.region "kv" at 13824 bytes 209715200 alive qkv to head
// CHECK-NEXT: plan.prediction step batch 1 context 32 generated 0 best 2.500000e+00 experts 1 {head_us = 2.500000e+00 : f64} expected 3.000000e+00 experts 1.500000e+00 {head_us = 3.000000e+00 : f64} worst 3.500000e+00 experts 2 {head_us = 3.500000e+00 : f64}

plan.device @decode of @main rank 0 of 1 {
  plan.target "two" sm 90 slots 2 shared 232448 memory 300000000 banks 2 align 4096 gb_s 1.000000e+03 efficiency 1.000000e+00 curve_slots [1.000000e+00] curve_rate [1.000000e+00] hand_over [1.000000e+00, 2.000000e+00] launch [1.000000e+00, 2.000000e+00] clock_mhz 1.000000e+03 bytes_per_cycle 1.000000e+02
  plan.shape vocab 32 layers 2 hidden 32 heads 1 kv_heads 1 head_dim 32 experts_per_token 1 expert_width 16 dense_width 0 router hash tied
  plan.bounds batch 1 seq 64 dtype bf16 activations single
  plan.experts total 2 groups 2 kept [0, 1] reached [0, 1]
  plan.phase qkv reads ["y_moe", "candidates"] writes ["q", "kv_new", "kv"]
  plan.phase attention reads ["q", "kv_new", "kv"] writes ["partials"]
  plan.phase merge reads ["partials"] writes ["attn"]
  plan.phase attn_out reads ["attn"] writes ["y_attn"]
  plan.phase gate_up reads ["y_attn"] writes ["act"]
  plan.phase down reads ["act"] writes ["y_moe"]
  plan.phase head reads ["y_moe"] writes ["candidates"]
  plan.edge qkv -> attention carries "q" words 32 same_layer epoch
  plan.edge qkv -> attention carries "kv_new" words 64 same_layer epoch
  plan.edge qkv -> attention carries "kv" words 64 next_step step_fence
  plan.edge attention -> merge carries "partials" words 34 same_layer epoch
  plan.edge merge -> attn_out carries "attn" words 16 same_layer epoch
  plan.edge attn_out -> gate_up carries "y_attn" words 32 same_layer epoch
  plan.edge gate_up -> down carries "act" words 8 same_layer epoch
  plan.edge down -> qkv carries "y_moe" words 32 next_layer epoch
  plan.edge down -> head carries "y_moe" words 32 same_layer epoch
  plan.edge head -> qkv carries "candidates" words 4 next_step epoch
  plan.assignment all
  plan.matrix qkv tiles 12 steps 1 begin [0, 6] count [6, 6] banks [0, 1] offsets [0, 20480]
  plan.matrix attn_out tiles 4 steps 1 begin [0, 2] count [2, 2] banks [0, 1] offsets [3072, 23552]
  plan.matrix gate_up expert 0 tiles 4 steps 1 begin [0, 2] count [2, 2] banks [0, 1] offsets [4096, 24576]
  plan.matrix gate_up expert 1 tiles 4 steps 1 begin [0, 2] count [2, 2] banks [1, 0] offsets [25600, 5120]
  plan.matrix down expert 0 tiles 4 steps 1 begin [0, 2] count [2, 2] banks [0, 1] offsets [6144, 26624]
  plan.matrix down expert 1 tiles 4 steps 1 begin [0, 2] count [2, 2] banks [1, 0] offsets [27648, 7168]
  plan.matrix head tiles 4 steps 1 begin [0, 2] count [2, 2] banks [0, 1] offsets [17920, 36864]
  plan.placement striped vectors 16384 layer_bytes 512 blob 40960
  plan.segment 0 at 0 bytes 20480 used 18944 layer_stride 8192
  plan.segment 1 at 20480 bytes 20480 used 17408 layer_stride 8192
  plan.stream block_steps 16 stages 12 chunk 16384 in_flight 3 pace 31 shared 208000 threads 288
  plan.arena bytes 209729024 kv_reserve 209715200
  plan.region "q" at 0 bytes 512 alive qkv to attention
  plan.region "kv_new" at 512 bytes 1024 alive qkv to attention
  plan.region "partials" at 1536 bytes 544 alive attention to merge
  plan.region "attn" at 2304 bytes 256 alive merge to attn_out
  plan.region "y_attn" at 2560 bytes 512 alive attn_out to gate_up
  plan.region "act" at 3072 bytes 128 alive gate_up to down
  plan.region "y_moe" at 3328 bytes 512 alive down to head
  plan.region "presence" at 3840 bytes 32 alive down to head
  plan.region "candidates" at 4096 bytes 64 alive head to head
  plan.region "residual" at 4352 bytes 256 alive qkv to head
  plan.region "rope" at 4608 bytes 8192 alive qkv to head
  plan.region "logits" at 12800 bytes 128 alive head to head
  plan.region "ids" at 13056 bytes 260 alive qkv to head
  plan.region "claims" at 13568 bytes 8 alive qkv to head
  plan.region "kv" at 13824 bytes 209715200 alive qkv to head
  plan.prediction step batch 1 context 32 generated 0 best 2.500000e+00 experts 1 {head_us = 2.500000e+00 : f64} expected 3.000000e+00 experts 1.500000e+00 {head_us = 3.000000e+00 : f64} worst 3.500000e+00 experts 2 {head_us = 3.500000e+00 : f64}
}
