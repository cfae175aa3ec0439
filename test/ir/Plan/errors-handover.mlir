// RUN: %grok-opt %s -split-input-file -verify-diagnostics

// Hand-overs: who reads waits for who writes, and nobody waits in a circle.

plan.device @decode of @main rank 0 of 1 {
  plan.target "two" sm 90 slots 2 shared 232448 memory 300000000 banks 2 align 4096 gb_s 1.0e+03 efficiency 1.0 curve_slots [1.0] curve_rate [1.0] hand_over [1.0, 2.0] launch [1.0, 2.0] clock_mhz 1.0e+03 bytes_per_cycle 1.0e+02
  plan.shape vocab 32 layers 2 hidden 32 heads 1 kv_heads 1 head_dim 32 experts_per_token 1 expert_width 16 dense_width 0 router hash tied
  plan.bounds batch 1 seq 64 dtype bf16 activations single
  plan.experts total 2 groups 2 kept [0, 1] reached [0, 1]
  plan.phase qkv reads [] writes ["q"]
  // expected-error @below {{attention reads "q", but no edge leads here from qkv, which writes it}}
  plan.phase attention reads ["q"] writes ["partials"]
}

// -----

plan.device @decode of @main rank 0 of 1 {
  plan.target "two" sm 90 slots 2 shared 232448 memory 300000000 banks 2 align 4096 gb_s 1.0e+03 efficiency 1.0 curve_slots [1.0] curve_rate [1.0] hand_over [1.0, 2.0] launch [1.0, 2.0] clock_mhz 1.0e+03 bytes_per_cycle 1.0e+02
  plan.shape vocab 32 layers 2 hidden 32 heads 1 kv_heads 1 head_dim 32 experts_per_token 1 expert_width 16 dense_width 0 router hash tied
  plan.bounds batch 1 seq 64 dtype bf16 activations single
  plan.experts total 2 groups 2 kept [0, 1] reached [0, 1]
  plan.phase qkv reads [] writes []
  // expected-error @below {{attention reads "q", which no phase writes}}
  plan.phase attention reads ["q"] writes ["partials"]
}

// -----

plan.device @decode of @main rank 0 of 1 {
  plan.target "two" sm 90 slots 2 shared 232448 memory 300000000 banks 2 align 4096 gb_s 1.0e+03 efficiency 1.0 curve_slots [1.0] curve_rate [1.0] hand_over [1.0, 2.0] launch [1.0, 2.0] clock_mhz 1.0e+03 bytes_per_cycle 1.0e+02
  plan.shape vocab 32 layers 2 hidden 32 heads 1 kv_heads 1 head_dim 32 experts_per_token 1 expert_width 16 dense_width 0 router hash tied
  plan.bounds batch 1 seq 64 dtype bf16 activations single
  plan.experts total 2 groups 2 kept [0, 1] reached [0, 1]
  // expected-error @below {{hand-over edges form a cycle within a step: qkv -> attention -> qkv}}
  plan.phase qkv reads ["partials"] writes ["q"]
  plan.phase attention reads ["q"] writes ["partials"]
  plan.edge qkv -> attention carries "q" words 32 same_layer epoch
  plan.edge attention -> qkv carries "partials" words 32 same_layer epoch
}

// -----

plan.device @decode of @main rank 0 of 1 {
  plan.target "two" sm 90 slots 2 shared 232448 memory 300000000 banks 2 align 4096 gb_s 1.0e+03 efficiency 1.0 curve_slots [1.0] curve_rate [1.0] hand_over [1.0, 2.0] launch [1.0, 2.0] clock_mhz 1.0e+03 bytes_per_cycle 1.0e+02
  plan.shape vocab 32 layers 2 hidden 32 heads 1 kv_heads 1 head_dim 32 experts_per_token 1 expert_width 16 dense_width 0 router hash tied
  plan.bounds batch 1 seq 64 dtype bf16 activations single
  plan.experts total 2 groups 2 kept [0, 1] reached [0, 1]
  plan.phase qkv reads [] writes ["q"]
  // expected-error @below {{qkv stands twice}}
  plan.phase qkv reads [] writes []
  plan.phase attention reads ["q"] writes ["partials"]
  plan.edge qkv -> attention carries "q" words 32 same_layer epoch
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
  // expected-error @below {{ends at phase merge, which the device does not have}}
  plan.edge merge -> attention carries "q" words 32 same_layer epoch
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
  // expected-error @below {{carries "q", which attention does not write}}
  plan.edge attention -> qkv carries "q" words 32 next_step epoch
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
  // expected-error @below {{carries "partials", which qkv does not read}}
  plan.edge attention -> qkv carries "partials" words 32 next_step epoch
}

// -----

plan.device @decode of @main rank 0 of 1 {
  plan.target "two" sm 90 slots 2 shared 232448 memory 300000000 banks 2 align 4096 gb_s 1.0e+03 efficiency 1.0 curve_slots [1.0] curve_rate [1.0] hand_over [1.0, 2.0] launch [1.0, 2.0] clock_mhz 1.0e+03 bytes_per_cycle 1.0e+02
  plan.shape vocab 32 layers 2 hidden 32 heads 1 kv_heads 1 head_dim 32 experts_per_token 1 expert_width 16 dense_width 0 router hash tied
  plan.bounds batch 1 seq 64 dtype bf16 activations single
  plan.experts total 2 groups 2 kept [0, 1] reached [0, 1]
  plan.phase qkv reads ["c"] writes []
  plan.phase head reads [] writes ["c"]
  // expected-error @below {{leads to the next layer, but head runs once a step}}
  plan.edge head -> qkv carries "c" words 2 next_layer epoch
}

// -----

plan.device @decode of @main rank 0 of 1 {
  plan.target "two" sm 90 slots 2 shared 232448 memory 300000000 banks 2 align 4096 gb_s 1.0e+03 efficiency 1.0 curve_slots [1.0] curve_rate [1.0] hand_over [1.0, 2.0] launch [1.0, 2.0] clock_mhz 1.0e+03 bytes_per_cycle 1.0e+02
  plan.shape vocab 32 layers 2 hidden 32 heads 1 kv_heads 1 head_dim 32 experts_per_token 1 expert_width 16 dense_width 0 router hash tied
  plan.bounds batch 1 seq 64 dtype bf16 activations single
  plan.experts total 2 groups 2 kept [0, 1] reached [0, 1]
  plan.phase qkv reads [] writes ["kv"]
  plan.phase attention reads ["kv"] writes []
  // expected-error @below {{carries "kv" by epoch; expected step_fence for the KV cache, which ordinary stores write, and epoch for words}}
  plan.edge qkv -> attention carries "kv" words 64 next_step epoch
}

// -----

plan.device @decode of @main rank 0 of 1 {
  plan.target "two" sm 90 slots 2 shared 232448 memory 300000000 banks 2 align 4096 gb_s 1.0e+03 efficiency 1.0 curve_slots [1.0] curve_rate [1.0] hand_over [1.0, 2.0] launch [1.0, 2.0] clock_mhz 1.0e+03 bytes_per_cycle 1.0e+02
  plan.shape vocab 32 layers 2 hidden 32 heads 1 kv_heads 1 head_dim 32 experts_per_token 1 expert_width 16 dense_width 0 router hash tied
  plan.bounds batch 1 seq 64 dtype bf16 activations single
  plan.experts total 2 groups 2 kept [0, 1] reached [0, 1]
  plan.phase qkv reads [] writes ["kv"]
  plan.phase attention reads ["kv"] writes []
  // expected-error @below {{carries "kv" within a step, but the fence that orders it ends the step}}
  plan.edge qkv -> attention carries "kv" words 64 same_layer step_fence
}
