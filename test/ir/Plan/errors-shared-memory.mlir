// RUN: %grok-opt %s -split-input-file -verify-diagnostics

// Shared memory of a block.

plan.device @decode of @main rank 0 of 1 {
  plan.target "two" sm 90 slots 2 shared 232448 memory 300000000 banks 2 align 4096 gb_s 1.0e+03 efficiency 1.0 curve_slots [1.0] curve_rate [1.0] hand_over [1.0, 2.0] launch [1.0, 2.0] clock_mhz 1.0e+03 bytes_per_cycle 1.0e+02
  plan.shape vocab 32 layers 2 hidden 32 heads 1 kv_heads 1 head_dim 32 experts_per_token 1 expert_width 16 dense_width 0 router hash tied
  plan.bounds batch 1 seq 64 dtype bf16 activations single
  plan.experts total 2 groups 2 kept [0, 1] reached [0, 1]
  plan.assignment all
  plan.matrix qkv tiles 12 steps 1 begin [0, 6] count [6, 6]
  plan.matrix attn_out tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix gate_up expert 0 tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix gate_up expert 1 tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix down expert 0 tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix down expert 1 tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix head tiles 4 steps 1 begin [0, 2] count [2, 2]
  // expected-error @below {{has K blocks of 20 steps, expected a multiple of 8}}
  plan.stream block_steps 20 stages 12 chunk 16384 in_flight 4 pace 800 shared 208000 threads 288
}

// -----

plan.device @decode of @main rank 0 of 1 {
  plan.target "two" sm 90 slots 2 shared 232448 memory 300000000 banks 2 align 4096 gb_s 1.0e+03 efficiency 1.0 curve_slots [1.0] curve_rate [1.0] hand_over [1.0, 2.0] launch [1.0, 2.0] clock_mhz 1.0e+03 bytes_per_cycle 1.0e+02
  plan.shape vocab 32 layers 2 hidden 32 heads 1 kv_heads 1 head_dim 32 experts_per_token 1 expert_width 16 dense_width 0 router hash tied
  plan.bounds batch 1 seq 64 dtype bf16 activations single
  plan.experts total 2 groups 2 kept [0, 1] reached [0, 1]
  plan.assignment all
  plan.matrix qkv tiles 12 steps 1 begin [0, 6] count [6, 6]
  plan.matrix attn_out tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix gate_up expert 0 tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix gate_up expert 1 tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix down expert 0 tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix down expert 1 tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix head tiles 4 steps 1 begin [0, 2] count [2, 2]
  // expected-error @below {{has chunks of 1000 bytes, expected a multiple of 512}}
  plan.stream block_steps 16 stages 12 chunk 1000 in_flight 4 pace 800 shared 208000 threads 288
}

// -----

plan.device @decode of @main rank 0 of 1 {
  plan.target "two" sm 90 slots 2 shared 232448 memory 300000000 banks 2 align 4096 gb_s 1.0e+03 efficiency 1.0 curve_slots [1.0] curve_rate [1.0] hand_over [1.0, 2.0] launch [1.0, 2.0] clock_mhz 1.0e+03 bytes_per_cycle 1.0e+02
  plan.shape vocab 32 layers 2 hidden 32 heads 1 kv_heads 1 head_dim 32 experts_per_token 1 expert_width 16 dense_width 0 router hash tied
  plan.bounds batch 1 seq 64 dtype bf16 activations single
  plan.experts total 2 groups 2 kept [0, 1] reached [0, 1]
  plan.assignment all
  plan.matrix qkv tiles 12 steps 1 begin [0, 6] count [6, 6]
  plan.matrix attn_out tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix gate_up expert 0 tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix gate_up expert 1 tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix down expert 0 tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix down expert 1 tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix head tiles 4 steps 1 begin [0, 2] count [2, 2]
  // expected-error @below {{has 13 chunks in flight, expected 1 to the ring's 12}}
  plan.stream block_steps 16 stages 12 chunk 16384 in_flight 13 pace 800 shared 208000 threads 288
}

// -----

plan.device @decode of @main rank 0 of 1 {
  plan.target "two" sm 90 slots 2 shared 232448 memory 300000000 banks 2 align 4096 gb_s 1.0e+03 efficiency 1.0 curve_slots [1.0] curve_rate [1.0] hand_over [1.0, 2.0] launch [1.0, 2.0] clock_mhz 1.0e+03 bytes_per_cycle 1.0e+02
  plan.shape vocab 32 layers 2 hidden 32 heads 1 kv_heads 1 head_dim 32 experts_per_token 1 expert_width 16 dense_width 0 router hash tied
  plan.bounds batch 1 seq 64 dtype bf16 activations single
  plan.experts total 2 groups 2 kept [0, 1] reached [0, 1]
  plan.assignment all
  plan.matrix qkv tiles 12 steps 1 begin [0, 6] count [6, 6]
  plan.matrix attn_out tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix gate_up expert 0 tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix gate_up expert 1 tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix down expert 0 tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix down expert 1 tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix head tiles 4 steps 1 begin [0, 2] count [2, 2]
  // expected-error @below {{has blocks of 512 threads, expected 288 (8 consumer warps and a producer)}}
  plan.stream block_steps 16 stages 12 chunk 16384 in_flight 4 pace 800 shared 208000 threads 512
}

// -----

plan.device @decode of @main rank 0 of 1 {
  plan.target "two" sm 90 slots 2 shared 232448 memory 300000000 banks 2 align 4096 gb_s 1.0e+03 efficiency 1.0 curve_slots [1.0] curve_rate [1.0] hand_over [1.0, 2.0] launch [1.0, 2.0] clock_mhz 1.0e+03 bytes_per_cycle 1.0e+02
  plan.shape vocab 32 layers 2 hidden 32 heads 1 kv_heads 1 head_dim 32 experts_per_token 1 expert_width 16 dense_width 0 router hash tied
  plan.bounds batch 1 seq 64 dtype bf16 activations single
  plan.experts total 2 groups 2 kept [0, 1] reached [0, 1]
  plan.assignment all
  plan.matrix qkv tiles 12 steps 1 begin [0, 6] count [6, 6]
  plan.matrix attn_out tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix gate_up expert 0 tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix gate_up expert 1 tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix down expert 0 tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix down expert 1 tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix head tiles 4 steps 1 begin [0, 2] count [2, 2]
  // expected-error @below {{has 200000 bytes of shared memory a block, but the ring and buffers need 206080}}
  plan.stream block_steps 16 stages 12 chunk 16384 in_flight 4 pace 800 shared 200000 threads 288
}

// -----

plan.device @decode of @main rank 0 of 1 {
  plan.target "two" sm 90 slots 2 shared 200000 memory 300000000 banks 2 align 4096 gb_s 1.0e+03 efficiency 1.0 curve_slots [1.0] curve_rate [1.0] hand_over [1.0, 2.0] launch [1.0, 2.0] clock_mhz 1.0e+03 bytes_per_cycle 1.0e+02
  plan.shape vocab 32 layers 2 hidden 32 heads 1 kv_heads 1 head_dim 32 experts_per_token 1 expert_width 16 dense_width 0 router hash tied
  plan.bounds batch 1 seq 64 dtype bf16 activations single
  plan.experts total 2 groups 2 kept [0, 1] reached [0, 1]
  plan.assignment all
  plan.matrix qkv tiles 12 steps 1 begin [0, 6] count [6, 6]
  plan.matrix attn_out tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix gate_up expert 0 tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix gate_up expert 1 tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix down expert 0 tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix down expert 1 tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix head tiles 4 steps 1 begin [0, 2] count [2, 2]
  // expected-error @below {{needs 208000 bytes of shared memory a block, but two has 200000}}
  plan.stream block_steps 16 stages 12 chunk 16384 in_flight 4 pace 800 shared 208000 threads 288
}

// -----

plan.device @decode of @main rank 0 of 1 {
  plan.target "two" sm 90 slots 2 shared 232448 memory 300000000 banks 2 align 4096 gb_s 1.0e+03 efficiency 1.0 curve_slots [1.0] curve_rate [1.0] hand_over [1.0, 2.0] launch [1.0, 2.0] clock_mhz 1.0e+03 bytes_per_cycle 1.0e+02
  plan.shape vocab 32 layers 2 hidden 32 heads 1 kv_heads 1 head_dim 32 experts_per_token 1 expert_width 16 dense_width 0 router hash tied
  plan.bounds batch 1 seq 64 dtype bf16 activations single
  plan.experts total 2 groups 2 kept [0, 1] reached [0, 1]
  // expected-error @below {{stands in a device whose slots are not assigned}}
  plan.stream block_steps 16 stages 12 chunk 16384 in_flight 4 pace 800 shared 208000 threads 288
}

// -----

plan.device @decode of @main rank 0 of 1 {
  plan.target "two" sm 90 slots 2 shared 232448 memory 300000000 banks 2 align 4096 gb_s 1.0e+03 efficiency 1.0 curve_slots [1.0] curve_rate [1.0] hand_over [1.0, 2.0] launch [1.0, 2.0] clock_mhz 1.0e+03 bytes_per_cycle 1.0e+02
  plan.shape vocab 32 layers 2 hidden 32 heads 1 kv_heads 1 head_dim 32 experts_per_token 1 expert_width 16 dense_width 0 router hash tied
  plan.bounds batch 1 seq 64 dtype bf16 activations single
  plan.experts total 2 groups 2 kept [0, 1] reached [0, 1]
  plan.assignment all
  plan.matrix qkv tiles 12 steps 1 begin [0, 6] count [6, 6]
  plan.matrix attn_out tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix gate_up expert 0 tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix gate_up expert 1 tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix down expert 0 tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix down expert 1 tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix head tiles 4 steps 1 begin [0, 2] count [2, 2]
  // expected-error @below {{has a pace of 262144 cycles, expected at most 262143}}
  plan.stream block_steps 16 stages 12 chunk 16384 in_flight 3 pace 262144 shared 208000 threads 288
}

// -----

plan.device @decode of @main rank 0 of 1 {
  plan.target "two" sm 90 slots 2 shared 232448 memory 300000000 banks 2 align 4096 gb_s 1.0e+03 efficiency 1.0 curve_slots [1.0] curve_rate [1.0] hand_over [1.0, 2.0] launch [1.0, 2.0] clock_mhz 1.0e+03 bytes_per_cycle 1.0e+02
  plan.shape vocab 32 layers 2 hidden 32 heads 1 kv_heads 1 head_dim 32 experts_per_token 1 expert_width 16 dense_width 0 router hash tied
  plan.bounds batch 1 seq 64 dtype bf16 activations single
  plan.experts total 2 groups 2 kept [0, 1] reached [0, 1]
  plan.assignment all
  plan.matrix qkv tiles 12 steps 1 begin [0, 6] count [6, 6]
  plan.matrix attn_out tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix gate_up expert 0 tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix gate_up expert 1 tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix down expert 0 tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix down expert 1 tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix head tiles 4 steps 1 begin [0, 2] count [2, 2]
  // expected-error @below {{has a ring of 16384 bytes, but the kernel waits for 32768 at once}}
  plan.stream block_steps 16 stages 1 chunk 16384 in_flight 1 pace 800 shared 208000 threads 288
}

// -----

plan.device @decode of @main rank 0 of 1 {
  plan.target "two" sm 90 slots 2 shared 232448 memory 300000000 banks 2 align 4096 gb_s 1.0e+03 efficiency 1.0 curve_slots [1.0] curve_rate [1.0] hand_over [1.0, 2.0] launch [1.0, 2.0] clock_mhz 1.0e+03 bytes_per_cycle 1.0e+02
  plan.shape vocab 32 layers 2 hidden 544 heads 1 kv_heads 1 head_dim 32 experts_per_token 1 expert_width 16 dense_width 0 router hash tied
  plan.bounds batch 1 seq 64 dtype bf16 activations single
  plan.experts total 2 groups 2 kept [0, 1] reached [0, 1]
  plan.assignment all
  plan.matrix qkv tiles 12 steps 17 begin [0, 6] count [6, 6]
  plan.matrix attn_out tiles 68 steps 1 begin [0, 34] count [34, 34]
  plan.matrix gate_up expert 0 tiles 4 steps 17 begin [0, 2] count [2, 2]
  plan.matrix gate_up expert 1 tiles 4 steps 17 begin [0, 2] count [2, 2]
  plan.matrix down expert 0 tiles 68 steps 1 begin [0, 34] count [34, 34]
  plan.matrix down expert 1 tiles 68 steps 1 begin [0, 34] count [34, 34]
  plan.matrix head tiles 4 steps 17 begin [0, 2] count [2, 2]
  // expected-error @below {{has K blocks of 16 steps, expected a multiple of 64 or at least the longest row's 17}}
  plan.stream block_steps 16 stages 12 chunk 16384 in_flight 3 pace 800 shared 208000 threads 288
}

// -----

plan.device @decode of @main rank 0 of 1 {
  plan.target "two" sm 90 slots 2 shared 232448 memory 300000000 banks 2 align 4096 gb_s 1.0e+03 efficiency 1.0 curve_slots [1.0] curve_rate [1.0] hand_over [1.0, 2.0] launch [1.0, 2.0] clock_mhz 1.0e+03 bytes_per_cycle 1.0e+02
  plan.shape vocab 32 layers 2 hidden 32 heads 1 kv_heads 1 head_dim 32 experts_per_token 1 expert_width 16 dense_width 0 router hash tied
  plan.bounds batch 1 seq 64 dtype bf16 activations single
  plan.experts total 2 groups 2 kept [0, 1] reached [0, 1]
  plan.assignment all
  plan.matrix qkv tiles 12 steps 1 begin [0, 6] count [6, 6]
  plan.matrix attn_out tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix gate_up expert 0 tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix gate_up expert 1 tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix down expert 0 tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix down expert 1 tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix head tiles 4 steps 1 begin [0, 2] count [2, 2]
  // expected-error @below {{pairs blocks, expected single ones: pairs need sm_90, an even number of slots, a batch, and a row of the residual stream within a K block}}
  plan.stream block_steps 16 stages 12 chunk 16384 in_flight 4 pace 800 shared 208000 threads 288 cluster 2
}

// -----

plan.device @decode of @main rank 0 of 1 {
  plan.target "two" sm 90 slots 2 shared 232448 memory 300000000 banks 2 align 4096 gb_s 1.0e+03 efficiency 1.0 curve_slots [1.0] curve_rate [1.0] hand_over [1.0, 2.0] launch [1.0, 2.0] clock_mhz 1.0e+03 bytes_per_cycle 1.0e+02
  plan.shape vocab 32 layers 2 hidden 32 heads 1 kv_heads 1 head_dim 32 experts_per_token 1 expert_width 16 dense_width 0 router hash tied
  plan.bounds batch 1 seq 64 dtype bf16 activations single
  plan.experts total 2 groups 2 kept [0, 1] reached [0, 1]
  plan.assignment all
  plan.matrix qkv tiles 12 steps 1 begin [0, 6] count [6, 6]
  plan.matrix attn_out tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix gate_up expert 0 tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix gate_up expert 1 tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix down expert 0 tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix down expert 1 tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix head tiles 4 steps 1 begin [0, 2] count [2, 2]
  // expected-error @below {{has clusters of 3 blocks, expected 1 or 2}}
  plan.stream block_steps 16 stages 12 chunk 16384 in_flight 4 pace 800 shared 208000 threads 288 cluster 3
}
