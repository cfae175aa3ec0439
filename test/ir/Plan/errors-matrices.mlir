// RUN: %grok-opt %s -split-input-file -verify-diagnostics

// Every output tile is produced exactly once, by a slot that may.

plan.device @decode of @main rank 0 of 1 {
  plan.target "two" sm 90 slots 2 shared 232448 memory 300000000 banks 2 align 4096 gb_s 1.0e+03 efficiency 1.0 curve_slots [1.0] curve_rate [1.0] hand_over [1.0, 2.0] launch [1.0, 2.0] clock_mhz 1.0e+03 bytes_per_cycle 1.0e+02
  plan.shape vocab 32 layers 2 hidden 32 heads 1 kv_heads 1 head_dim 32 experts_per_token 1 expert_width 16 dense_width 0 router hash tied
  plan.bounds batch 1 seq 64 dtype bf16 activations single
  plan.experts total 2 groups 2 kept [0, 1] reached [0, 1]
  plan.assignment all
  // expected-error @below {{qkv has tile 5 produced twice, by slots 0 and 1}}
  plan.matrix qkv tiles 12 steps 1 begin [0, 5] count [6, 7]
  plan.matrix attn_out tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix gate_up expert 0 tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix gate_up expert 1 tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix down expert 0 tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix down expert 1 tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix head tiles 4 steps 1 begin [0, 2] count [2, 2]
}

// -----

plan.device @decode of @main rank 0 of 1 {
  plan.target "two" sm 90 slots 2 shared 232448 memory 300000000 banks 2 align 4096 gb_s 1.0e+03 efficiency 1.0 curve_slots [1.0] curve_rate [1.0] hand_over [1.0, 2.0] launch [1.0, 2.0] clock_mhz 1.0e+03 bytes_per_cycle 1.0e+02
  plan.shape vocab 32 layers 2 hidden 32 heads 1 kv_heads 1 head_dim 32 experts_per_token 1 expert_width 16 dense_width 0 router hash tied
  plan.bounds batch 1 seq 64 dtype bf16 activations single
  plan.experts total 2 groups 2 kept [0, 1] reached [0, 1]
  plan.assignment all
  // expected-error @below {{qkv has tile 6 produced by no slot}}
  plan.matrix qkv tiles 12 steps 1 begin [0, 7] count [6, 5]
  plan.matrix attn_out tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix gate_up expert 0 tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix gate_up expert 1 tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix down expert 0 tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix down expert 1 tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix head tiles 4 steps 1 begin [0, 2] count [2, 2]
}

// -----

plan.device @decode of @main rank 0 of 1 {
  plan.target "two" sm 90 slots 2 shared 232448 memory 300000000 banks 2 align 4096 gb_s 1.0e+03 efficiency 1.0 curve_slots [1.0] curve_rate [1.0] hand_over [1.0, 2.0] launch [1.0, 2.0] clock_mhz 1.0e+03 bytes_per_cycle 1.0e+02
  plan.shape vocab 32 layers 2 hidden 32 heads 1 kv_heads 1 head_dim 32 experts_per_token 1 expert_width 16 dense_width 0 router hash tied
  plan.bounds batch 1 seq 64 dtype bf16 activations single
  plan.experts total 2 groups 2 kept [0, 1] reached [0, 1]
  plan.assignment all
  // expected-error @below {{qkv gives slot 1 tiles [6, 13), but has 12}}
  plan.matrix qkv tiles 12 steps 1 begin [0, 6] count [6, 7]
  plan.matrix attn_out tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix gate_up expert 0 tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix gate_up expert 1 tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix down expert 0 tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix down expert 1 tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix head tiles 4 steps 1 begin [0, 2] count [2, 2]
}

// -----

plan.device @decode of @main rank 0 of 1 {
  plan.target "two" sm 90 slots 2 shared 232448 memory 300000000 banks 2 align 4096 gb_s 1.0e+03 efficiency 1.0 curve_slots [1.0] curve_rate [1.0] hand_over [1.0, 2.0] launch [1.0, 2.0] clock_mhz 1.0e+03 bytes_per_cycle 1.0e+02
  plan.shape vocab 32 layers 2 hidden 32 heads 1 kv_heads 1 head_dim 32 experts_per_token 1 expert_width 16 dense_width 0 router hash tied
  plan.bounds batch 1 seq 64 dtype bf16 activations single
  plan.experts total 2 groups 2 kept [0, 1] reached [0, 1]
  plan.assignment all
  // expected-error @below {{qkv lists 3 begins and 3 counts, expected one a slot (2)}}
  plan.matrix qkv tiles 12 steps 1 begin [0, 6, 12] count [6, 6, 0]
  plan.matrix attn_out tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix gate_up expert 0 tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix gate_up expert 1 tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix down expert 0 tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix down expert 1 tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix head tiles 4 steps 1 begin [0, 2] count [2, 2]
}

// -----

// Under policy group an expert runs on its group only.
plan.device @decode of @main rank 0 of 1 {
  plan.target "two" sm 90 slots 2 shared 232448 memory 300000000 banks 2 align 4096 gb_s 1.0e+03 efficiency 1.0 curve_slots [1.0] curve_rate [1.0] hand_over [1.0, 2.0] launch [1.0, 2.0] clock_mhz 1.0e+03 bytes_per_cycle 1.0e+02
  plan.shape vocab 32 layers 2 hidden 32 heads 1 kv_heads 1 head_dim 32 experts_per_token 1 expert_width 16 dense_width 0 router hash tied
  plan.bounds batch 1 seq 64 dtype bf16 activations single
  plan.experts total 2 groups 2 kept [0, 1] reached [0, 1]
  plan.assignment group
  plan.matrix qkv tiles 12 steps 1 begin [0, 6] count [6, 6]
  plan.matrix attn_out tiles 4 steps 1 begin [0, 2] count [2, 2]
  // expected-error @below {{gate_up of expert 0 runs on slot 1, outside its group's slots [0, 1)}}
  plan.matrix gate_up expert 0 tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix gate_up expert 1 tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix down expert 0 tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix down expert 1 tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix head tiles 4 steps 1 begin [0, 2] count [2, 2]
}

// -----

plan.device @decode of @main rank 0 of 1 {
  plan.target "two" sm 90 slots 2 shared 232448 memory 300000000 banks 2 align 4096 gb_s 1.0e+03 efficiency 1.0 curve_slots [1.0] curve_rate [1.0] hand_over [1.0, 2.0] launch [1.0, 2.0] clock_mhz 1.0e+03 bytes_per_cycle 1.0e+02
  plan.shape vocab 32 layers 2 hidden 32 heads 1 kv_heads 1 head_dim 32 experts_per_token 1 expert_width 16 dense_width 0 router hash tied
  plan.bounds batch 1 seq 64 dtype bf16 activations single
  plan.experts total 2 groups 2 kept [0, 1] reached [0, 1]
  plan.assignment group
  plan.matrix qkv tiles 12 steps 1 begin [0, 6] count [6, 6]
  plan.matrix attn_out tiles 4 steps 1 begin [0, 2] count [2, 2]
  // expected-error @below {{gate_up of expert 0 has tile 3 produced by no slot}}
  plan.matrix gate_up expert 0 tiles 4 steps 1 begin [0, 0] count [3, 0]
  plan.matrix gate_up expert 1 tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix down expert 0 tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix down expert 1 tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix head tiles 4 steps 1 begin [0, 2] count [2, 2]
}

// -----

plan.device @decode of @main rank 0 of 1 {
  plan.target "two" sm 90 slots 2 shared 232448 memory 300000000 banks 2 align 4096 gb_s 1.0e+03 efficiency 1.0 curve_slots [1.0] curve_rate [1.0] hand_over [1.0, 2.0] launch [1.0, 2.0] clock_mhz 1.0e+03 bytes_per_cycle 1.0e+02
  plan.shape vocab 32 layers 2 hidden 32 heads 1 kv_heads 1 head_dim 32 experts_per_token 1 expert_width 16 dense_width 0 router hash tied
  plan.bounds batch 1 seq 64 dtype bf16 activations single
  plan.experts total 2 groups 2 kept [0, 1] reached [0, 1]
  // expected-error @below {{has slots, but the device has no 'plan.assignment'}}
  plan.matrix qkv tiles 12 steps 1 begin [0, 6] count [6, 6]
  plan.matrix attn_out tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix gate_up expert 0 tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix gate_up expert 1 tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix down expert 0 tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix down expert 1 tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix head tiles 4 steps 1 begin [0, 2] count [2, 2]
}

// -----

plan.device @decode of @main rank 0 of 1 {
  plan.target "two" sm 90 slots 2 shared 232448 memory 300000000 banks 2 align 4096 gb_s 1.0e+03 efficiency 1.0 curve_slots [1.0] curve_rate [1.0] hand_over [1.0, 2.0] launch [1.0, 2.0] clock_mhz 1.0e+03 bytes_per_cycle 1.0e+02
  plan.shape vocab 32 layers 2 hidden 32 heads 1 kv_heads 1 head_dim 32 experts_per_token 1 expert_width 16 dense_width 0 router hash tied
  plan.bounds batch 1 seq 64 dtype bf16 activations single
  plan.experts total 2 groups 2 kept [0, 1] reached [0, 1]
  plan.assignment all
  // expected-error @below {{qkv has 11 tiles of 1 steps, expected 12 of 1 for 96 x 32}}
  plan.matrix qkv tiles 11 steps 1 begin [0, 6] count [6, 5]
  plan.matrix attn_out tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix gate_up expert 0 tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix gate_up expert 1 tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix down expert 0 tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix down expert 1 tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix head tiles 4 steps 1 begin [0, 2] count [2, 2]
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
  // expected-error @below {{gate_up of expert 1 stands where gate_up of expert 0 is expected: matrices stand in consumption order, one of each kept expert}}
  plan.matrix gate_up expert 1 tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix down expert 0 tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix down expert 1 tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix head tiles 4 steps 1 begin [0, 2] count [2, 2]
}

// -----

// expected-error @below {{lacks matrix head}}
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
  // expected-error @below {{head is not of this model}}
  plan.matrix head tiles 4 steps 2
}

// -----

plan.device @decode of @main rank 0 of 1 {
  plan.target "two" sm 90 slots 2 shared 232448 memory 300000000 banks 2 align 4096 gb_s 1.0e+03 efficiency 1.0 curve_slots [1.0] curve_rate [1.0] hand_over [1.0, 2.0] launch [1.0, 2.0] clock_mhz 1.0e+03 bytes_per_cycle 1.0e+02
  plan.shape vocab 32 layers 2 hidden 32 heads 1 kv_heads 1 head_dim 32 experts_per_token 1 expert_width 16 dense_width 0 router hash tied
  plan.bounds batch 1 seq 64 dtype bf16 activations single
  plan.experts total 2 groups 2 kept [0, 1] reached [0, 1]
  // expected-error @below {{of kind qkv has no expert}}
  plan.matrix qkv expert 1 tiles 12 steps 1
}

// -----

plan.device @decode of @main rank 0 of 1 {
  plan.target "two" sm 90 slots 2 shared 232448 memory 300000000 banks 2 align 4096 gb_s 1.0e+03 efficiency 1.0 curve_slots [1.0] curve_rate [1.0] hand_over [1.0, 2.0] launch [1.0, 2.0] clock_mhz 1.0e+03 bytes_per_cycle 1.0e+02
  plan.shape vocab 32 layers 2 hidden 32 heads 1 kv_heads 1 head_dim 32 experts_per_token 1 expert_width 16 dense_width 0 router hash tied
  plan.bounds batch 1 seq 64 dtype bf16 activations single
  plan.experts total 2 groups 2 kept [0, 1] reached [0, 1]
  // expected-error @below {{of kind gate_up needs an expert}}
  plan.matrix gate_up tiles 4 steps 1
}

// -----

plan.device @decode of @main rank 0 of 1 {
  plan.target "two" sm 90 slots 2 shared 232448 memory 300000000 banks 2 align 4096 gb_s 1.0e+03 efficiency 1.0 curve_slots [1.0] curve_rate [1.0] hand_over [1.0, 2.0] launch [1.0, 2.0] clock_mhz 1.0e+03 bytes_per_cycle 1.0e+02
  plan.shape vocab 32 layers 2 hidden 32 heads 1 kv_heads 1 head_dim 32 experts_per_token 1 expert_width 16 dense_width 0 router hash tied
  plan.bounds batch 1 seq 64 dtype bf16 activations single
  plan.experts total 2 groups 2 kept [0, 1] reached [0, 1]
  // expected-error @below {{has no tiles or no steps}}
  plan.matrix qkv tiles 0 steps 1
}

// -----

plan.device @decode of @main rank 0 of 1 {
  plan.target "two" sm 90 slots 2 shared 232448 memory 300000000 banks 2 align 4096 gb_s 1.0e+03 efficiency 1.0 curve_slots [1.0] curve_rate [1.0] hand_over [1.0, 2.0] launch [1.0, 2.0] clock_mhz 1.0e+03 bytes_per_cycle 1.0e+02
  plan.shape vocab 32 layers 2 hidden 32 heads 1 kv_heads 1 head_dim 32 experts_per_token 1 expert_width 16 dense_width 0 router hash tied
  plan.bounds batch 1 seq 64 dtype bf16 activations single
  plan.experts total 2 groups 2 kept [0, 1] reached [0, 1]
  // expected-error @below {{expected `begin` with `count`, and `banks` with `offsets`}}
  plan.matrix qkv tiles 12 steps 1 begin [0, 6]
}

// -----

plan.device @decode of @main rank 0 of 1 {
  plan.target "two" sm 90 slots 2 shared 232448 memory 300000000 banks 2 align 4096 gb_s 1.0e+03 efficiency 1.0 curve_slots [1.0] curve_rate [1.0] hand_over [1.0, 2.0] launch [1.0, 2.0] clock_mhz 1.0e+03 bytes_per_cycle 1.0e+02
  plan.shape vocab 32 layers 2 hidden 32 heads 1 kv_heads 1 head_dim 32 experts_per_token 1 expert_width 16 dense_width 0 router hash tied
  plan.bounds batch 1 seq 64 dtype bf16 activations single
  plan.experts total 2 groups 2 kept [0, 1] reached [0, 1]
  // expected-error @below {{has banks, but its tiles are not given to slots}}
  plan.matrix qkv tiles 12 steps 1 banks [0, 1] offsets [0, 0]
}

// -----

plan.device @decode of @main rank 0 of 1 {
  plan.target "two" sm 90 slots 2 shared 232448 memory 300000000 banks 2 align 4096 gb_s 1.0e+03 efficiency 1.0 curve_slots [1.0] curve_rate [1.0] hand_over [1.0, 2.0] launch [1.0, 2.0] clock_mhz 1.0e+03 bytes_per_cycle 1.0e+02
  plan.shape vocab 32 layers 2 hidden 32 heads 1 kv_heads 1 head_dim 32 experts_per_token 1 expert_width 16 dense_width 0 router hash tied
  plan.bounds batch 1 seq 64 dtype bf16 activations single
  plan.experts total 2 groups 2 kept [0, 1] reached [0, 1]
  plan.phase qkv reads [] writes ["q"]
  plan.phase attention reads ["q"] writes ["partials"]
  plan.edge qkv -> attention carries "q" words 32 same_layer epoch
  plan.assignment all
  plan.matrix qkv tiles 12 steps 1 begin [0, 6] count [6, 6]
  // expected-error @below {{attn_out has no phase attn_out to run in}}
  plan.matrix attn_out tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix gate_up expert 0 tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix gate_up expert 1 tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix down expert 0 tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix down expert 1 tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix head tiles 4 steps 1 begin [0, 2] count [2, 2]
}

// -----

plan.device @decode of @main rank 0 of 1 {
  plan.target "two" sm 90 slots 2 shared 232448 memory 300000000 banks 2 align 4096 gb_s 1.0e+03 efficiency 1.0 curve_slots [1.0] curve_rate [1.0] hand_over [1.0, 2.0] launch [1.0, 2.0] clock_mhz 1.0e+03 bytes_per_cycle 1.0e+02
  plan.shape vocab 32 layers 2 hidden 32 heads 1 kv_heads 1 head_dim 32 experts_per_token 1 expert_width 16 dense_width 0 router hash tied
  plan.bounds batch 1 seq 64 dtype bf16 activations single
  plan.experts total 2 groups 2 kept [0, 1] reached [0, 1]
  plan.phase qkv reads [] writes []
  plan.phase attn_out reads [] writes []
  plan.phase gate_up reads [] writes []
  plan.phase down reads [] writes []
  plan.phase head reads [] writes []
  plan.assignment all
  plan.matrix qkv tiles 12 steps 1 begin [0, 6] count [6, 6]
  plan.matrix attn_out tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix gate_up expert 0 tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix gate_up expert 1 tiles 4 steps 1 begin [0, 2] count [2, 2]
  // expected-error @below {{down of expert 0 has no tile on some slot, but no edge carries "presence" for it}}
  plan.matrix down expert 0 tiles 4 steps 1 begin [0, 0] count [4, 0]
  plan.matrix down expert 1 tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix head tiles 4 steps 1 begin [0, 2] count [2, 2]
}

// -----

// A slot sums the experts of a row in place.

plan.device @decode of @main rank 0 of 1 {
  plan.target "two" sm 90 slots 2 shared 232448 memory 300000000 banks 2 align 4096 gb_s 1.0e+03 efficiency 1.0 curve_slots [1.0] curve_rate [1.0] hand_over [1.0, 2.0] launch [1.0, 2.0] clock_mhz 1.0e+03 bytes_per_cycle 1.0e+02
  plan.shape vocab 32 layers 2 hidden 32 heads 1 kv_heads 1 head_dim 32 experts_per_token 2 expert_width 16 dense_width 0 router learned tied
  plan.bounds batch 1 seq 64 dtype bf16 activations single
  plan.experts total 2 kept [0, 1] reached [0, 1]
  plan.assignment all
  plan.matrix qkv tiles 12 steps 1 begin [0, 6] count [6, 6]
  plan.matrix attn_out tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix gate_up expert 0 tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix gate_up expert 1 tiles 4 steps 1 begin [0, 2] count [2, 2]
  plan.matrix down expert 0 tiles 4 steps 1 begin [0, 2] count [2, 2]
  // expected-error @below {{down of expert 1 is dealt unlike down of expert 0, but a slot sums both in place}}
  plan.matrix down expert 1 tiles 4 steps 1 begin [0, 3] count [3, 1]
  plan.matrix head tiles 4 steps 1 begin [0, 2] count [2, 2]
}
