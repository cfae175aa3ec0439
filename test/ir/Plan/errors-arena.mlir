// RUN: %grok-opt %s -split-input-file -verify-diagnostics

// The arena: regions that are alive together lie apart, and the KV cache suffices.

plan.device @decode of @main rank 0 of 1 {
  plan.target "two" sm 90 slots 2 shared 232448 memory 300000000 banks 2 align 4096 gb_s 1.0e+03 efficiency 1.0 curve_slots [1.0] curve_rate [1.0] hand_over [1.0, 2.0] launch [1.0, 2.0] clock_mhz 1.0e+03 bytes_per_cycle 1.0e+02
  plan.shape vocab 32 layers 2 hidden 32 heads 1 kv_heads 1 head_dim 32 experts_per_token 1 expert_width 16 dense_width 0 router hash tied
  plan.bounds batch 1 seq 64 dtype bf16 activations single
  plan.experts total 2 groups 2 kept [0, 1] reached [0, 1]
  plan.arena bytes 209716224 kv_reserve 209715200
  // expected-note @below {{the other region is here}}
  plan.region "q" at 0 bytes 512 alive qkv to attention
  // expected-error @below {{"attn" overlaps "q", and both are alive in attention}}
  plan.region "attn" at 256 bytes 512 alive attention to attn_out
  plan.region "kv" at 1024 bytes 209715200 alive qkv to head
}

// -----

plan.device @decode of @main rank 0 of 1 {
  plan.target "two" sm 90 slots 2 shared 232448 memory 300000000 banks 2 align 4096 gb_s 1.0e+03 efficiency 1.0 curve_slots [1.0] curve_rate [1.0] hand_over [1.0, 2.0] launch [1.0, 2.0] clock_mhz 1.0e+03 bytes_per_cycle 1.0e+02
  plan.shape vocab 32 layers 2 hidden 32 heads 1 kv_heads 1 head_dim 32 experts_per_token 1 expert_width 16 dense_width 0 router hash tied
  plan.bounds batch 1 seq 64 dtype bf16 activations single
  plan.experts total 2 groups 2 kept [0, 1] reached [0, 1]
  plan.arena bytes 209716224 kv_reserve 209715200
  plan.region "q" at 0 bytes 512 alive qkv to attention
  // expected-error @below {{"q" stands twice}}
  plan.region "q" at 512 bytes 512 alive merge to attn_out
  plan.region "kv" at 1024 bytes 209715200 alive qkv to head
}

// -----

plan.device @decode of @main rank 0 of 1 {
  plan.target "two" sm 90 slots 2 shared 232448 memory 300000000 banks 2 align 4096 gb_s 1.0e+03 efficiency 1.0 curve_slots [1.0] curve_rate [1.0] hand_over [1.0, 2.0] launch [1.0, 2.0] clock_mhz 1.0e+03 bytes_per_cycle 1.0e+02
  plan.shape vocab 32 layers 2 hidden 32 heads 1 kv_heads 1 head_dim 32 experts_per_token 1 expert_width 16 dense_width 0 router hash tied
  plan.bounds batch 1 seq 64 dtype bf16 activations single
  plan.experts total 2 groups 2 kept [0, 1] reached [0, 1]
  plan.arena bytes 209716224 kv_reserve 209715200
  plan.region "q" at 0 bytes 512 alive qkv to attention
  // expected-error @below {{"attn" dies in attn_out before it lives in down}}
  plan.region "attn" at 512 bytes 512 alive down to attn_out
  plan.region "kv" at 1024 bytes 209715200 alive qkv to head
}

// -----

plan.device @decode of @main rank 0 of 1 {
  plan.target "two" sm 90 slots 2 shared 232448 memory 300000000 banks 2 align 4096 gb_s 1.0e+03 efficiency 1.0 curve_slots [1.0] curve_rate [1.0] hand_over [1.0, 2.0] launch [1.0, 2.0] clock_mhz 1.0e+03 bytes_per_cycle 1.0e+02
  plan.shape vocab 32 layers 2 hidden 32 heads 1 kv_heads 1 head_dim 32 experts_per_token 1 expert_width 16 dense_width 0 router hash tied
  plan.bounds batch 1 seq 64 dtype bf16 activations single
  plan.experts total 2 groups 2 kept [0, 1] reached [0, 1]
  plan.arena bytes 209716224 kv_reserve 209715200
  plan.region "q" at 0 bytes 512 alive qkv to attention
  plan.region "attn" at 512 bytes 512 alive merge to attn_out
  // expected-error @below {{"kv" ends at byte 209717248, beyond the arena's 209716224}}
  plan.region "kv" at 2048 bytes 209715200 alive qkv to head
}

// -----

plan.device @decode of @main rank 0 of 1 {
  plan.target "two" sm 90 slots 2 shared 232448 memory 300000000 banks 2 align 4096 gb_s 1.0e+03 efficiency 1.0 curve_slots [1.0] curve_rate [1.0] hand_over [1.0, 2.0] launch [1.0, 2.0] clock_mhz 1.0e+03 bytes_per_cycle 1.0e+02
  plan.shape vocab 32 layers 2 hidden 32 heads 1 kv_heads 1 head_dim 32 experts_per_token 1 expert_width 16 dense_width 0 router hash tied
  plan.bounds batch 1 seq 64 dtype bf16 activations single
  plan.experts total 2 groups 2 kept [0, 1] reached [0, 1]
  // expected-error @below {{has no region "kv" in the last place}}
  plan.arena bytes 209716224 kv_reserve 209715200
  plan.region "q" at 0 bytes 512 alive qkv to attention
  plan.region "attn" at 512 bytes 512 alive merge to attn_out
}

// -----

plan.device @decode of @main rank 0 of 1 {
  plan.target "two" sm 90 slots 2 shared 232448 memory 300000000 banks 2 align 4096 gb_s 1.0e+03 efficiency 1.0 curve_slots [1.0] curve_rate [1.0] hand_over [1.0, 2.0] launch [1.0, 2.0] clock_mhz 1.0e+03 bytes_per_cycle 1.0e+02
  plan.shape vocab 32 layers 2 hidden 32 heads 1 kv_heads 1 head_dim 32 experts_per_token 1 expert_width 16 dense_width 0 router hash tied
  plan.bounds batch 1 seq 64 dtype bf16 activations single
  plan.experts total 2 groups 2 kept [0, 1] reached [0, 1]
  // expected-error @below {{stands in a device without an arena}}
  plan.region "q" at 0 bytes 512 alive qkv to attention
  plan.region "attn" at 512 bytes 512 alive merge to attn_out
  plan.region "kv" at 1024 bytes 209715200 alive qkv to head
}

// -----

plan.device @decode of @main rank 0 of 1 {
  plan.target "two" sm 90 slots 2 shared 232448 memory 300000000 banks 2 align 4096 gb_s 1.0e+03 efficiency 1.0 curve_slots [1.0] curve_rate [1.0] hand_over [1.0, 2.0] launch [1.0, 2.0] clock_mhz 1.0e+03 bytes_per_cycle 1.0e+02
  plan.shape vocab 32 layers 2 hidden 32 heads 1 kv_heads 1 head_dim 32 experts_per_token 1 expert_width 16 dense_width 0 router hash tied
  plan.bounds batch 1 seq 64 dtype bf16 activations single
  plan.experts total 2 groups 2 kept [0, 1] reached [0, 1]
  plan.arena bytes 209716736 kv_reserve 209715200
  // expected-error @below {{"q" lies behind the KV cache, which is the arena's last region}}
  plan.region "q" at 209716224 bytes 512 alive qkv to attention
  plan.region "attn" at 512 bytes 512 alive merge to attn_out
  plan.region "kv" at 1024 bytes 209715200 alive qkv to head
}

// -----

plan.device @decode of @main rank 0 of 1 {
  plan.target "two" sm 90 slots 2 shared 232448 memory 300000000 banks 2 align 4096 gb_s 1.0e+03 efficiency 1.0 curve_slots [1.0] curve_rate [1.0] hand_over [1.0, 2.0] launch [1.0, 2.0] clock_mhz 1.0e+03 bytes_per_cycle 1.0e+02
  plan.shape vocab 32 layers 2 hidden 32 heads 1 kv_heads 1 head_dim 32 experts_per_token 1 expert_width 16 dense_width 0 router hash tied
  plan.bounds batch 1 seq 64 dtype bf16 activations single
  plan.experts total 2 groups 2 kept [0, 1] reached [0, 1]
  // expected-error @below {{has a KV reserve of 209715000 bytes, expected a multiple of 209715200 (200 MiB)}}
  plan.arena bytes 209716224 kv_reserve 209715000
  plan.region "q" at 0 bytes 512 alive qkv to attention
  plan.region "attn" at 512 bytes 512 alive merge to attn_out
  plan.region "kv" at 1024 bytes 209715200 alive qkv to head
}

// -----

plan.device @decode of @main rank 0 of 1 {
  plan.target "two" sm 90 slots 2 shared 232448 memory 300000000 banks 2 align 4096 gb_s 1.0e+03 efficiency 1.0 curve_slots [1.0] curve_rate [1.0] hand_over [1.0, 2.0] launch [1.0, 2.0] clock_mhz 1.0e+03 bytes_per_cycle 1.0e+02
  plan.shape vocab 32 layers 2 hidden 32 heads 1 kv_heads 1 head_dim 32 experts_per_token 1 expert_width 16 dense_width 0 router hash tied
  plan.bounds batch 8 seq 131072 dtype bf16 activations single
  plan.experts total 2 groups 2 kept [0, 1] reached [0, 1]
  // expected-error @below {{has a KV reserve of 209715200 bytes, but 8 rows of 131072 positions need 268435456}}
  plan.arena bytes 209716224 kv_reserve 209715200
  plan.region "q" at 0 bytes 512 alive qkv to attention
  plan.region "attn" at 512 bytes 512 alive merge to attn_out
  plan.region "kv" at 1024 bytes 209715200 alive qkv to head
}

// -----

plan.device @decode of @main rank 0 of 1 {
  plan.target "two" sm 90 slots 2 shared 232448 memory 300000000 banks 2 align 4096 gb_s 1.0e+03 efficiency 1.0 curve_slots [1.0] curve_rate [1.0] hand_over [1.0, 2.0] launch [1.0, 2.0] clock_mhz 1.0e+03 bytes_per_cycle 1.0e+02
  plan.shape vocab 32 layers 2 hidden 32 heads 1 kv_heads 1 head_dim 32 experts_per_token 1 expert_width 16 dense_width 0 router hash tied
  plan.bounds batch 1 seq 64 dtype bf16 activations single
  plan.experts total 2 groups 2 kept [0, 1] reached [0, 1]
  plan.arena bytes 209716224 kv_reserve 209715200
  plan.region "q" at 0 bytes 512 alive qkv to attention
  plan.region "attn" at 512 bytes 512 alive merge to attn_out
  // expected-error @below {{"kv" has 104857600 bytes, expected the reserve of 209715200}}
  plan.region "kv" at 1024 bytes 104857600 alive qkv to head
}

// -----

plan.device @decode of @main rank 0 of 1 {
  plan.target "two" sm 90 slots 2 shared 232448 memory 300000000 banks 2 align 4096 gb_s 1.0e+03 efficiency 1.0 curve_slots [1.0] curve_rate [1.0] hand_over [1.0, 2.0] launch [1.0, 2.0] clock_mhz 1.0e+03 bytes_per_cycle 1.0e+02
  plan.shape vocab 32 layers 2 hidden 32 heads 1 kv_heads 1 head_dim 32 experts_per_token 1 expert_width 16 dense_width 0 router hash tied
  plan.bounds batch 1 seq 64 dtype bf16 activations single
  plan.experts total 2 groups 2 kept [0, 1] reached [0, 1]
  plan.phase qkv reads [] writes ["q"]
  plan.phase attention reads ["q"] writes ["partials"]
  // expected-error @below {{carries 33 words of "q", which need 528 bytes in both parities, but the region has 512}}
  plan.edge qkv -> attention carries "q" words 33 same_layer epoch
  plan.arena bytes 209716224 kv_reserve 209715200
  plan.region "q" at 0 bytes 512 alive qkv to attention
  plan.region "attn" at 512 bytes 512 alive merge to attn_out
  plan.region "kv" at 1024 bytes 209715200 alive qkv to head
}

// -----

plan.device @decode of @main rank 0 of 1 {
  plan.target "two" sm 90 slots 2 shared 232448 memory 300000000 banks 2 align 4096 gb_s 1.0e+03 efficiency 1.0 curve_slots [1.0] curve_rate [1.0] hand_over [1.0, 2.0] launch [1.0, 2.0] clock_mhz 1.0e+03 bytes_per_cycle 1.0e+02
  plan.shape vocab 32 layers 2 hidden 32 heads 1 kv_heads 1 head_dim 32 experts_per_token 1 expert_width 16 dense_width 0 router hash tied
  plan.bounds batch 1 seq 64 dtype bf16 activations single
  plan.experts total 2 groups 2 kept [0, 1] reached [0, 1]
  plan.phase qkv reads [] writes ["q"]
  plan.phase attention reads ["q"] writes ["partials"]
  // expected-error @below {{carries "q", which has no region in the arena}}
  plan.edge qkv -> attention carries "q" words 32 same_layer epoch
  plan.arena bytes 209716224 kv_reserve 209715200
  plan.region "attn" at 512 bytes 512 alive merge to attn_out
  plan.region "kv" at 1024 bytes 209715200 alive qkv to head
}

// -----

plan.device @decode of @main rank 0 of 1 {
  plan.target "two" sm 90 slots 2 shared 232448 memory 300000000 banks 2 align 4096 gb_s 1.0e+03 efficiency 1.0 curve_slots [1.0] curve_rate [1.0] hand_over [1.0, 2.0] launch [1.0, 2.0] clock_mhz 1.0e+03 bytes_per_cycle 1.0e+02
  plan.shape vocab 32 layers 2 hidden 32 heads 1 kv_heads 1 head_dim 32 experts_per_token 1 expert_width 16 dense_width 0 router hash tied
  plan.bounds batch 1 seq 64 dtype bf16 activations single
  plan.experts total 2 groups 2 kept [0, 1] reached [0, 1]
  plan.phase qkv reads [] writes ["q"]
  plan.phase attention reads ["q"] writes ["partials"]
  // expected-error @below {{carries "q" to attention, but the region is alive only until qkv}}
  plan.edge qkv -> attention carries "q" words 32 same_layer epoch
  plan.arena bytes 209716224 kv_reserve 209715200
  plan.region "q" at 0 bytes 512 alive qkv to qkv
  plan.region "attn" at 512 bytes 512 alive merge to attn_out
  plan.region "kv" at 1024 bytes 209715200 alive qkv to head
}

// -----

plan.device @decode of @main rank 0 of 1 {
  plan.target "two" sm 90 slots 2 shared 232448 memory 300000000 banks 2 align 4096 gb_s 1.0e+03 efficiency 1.0 curve_slots [1.0] curve_rate [1.0] hand_over [1.0, 2.0] launch [1.0, 2.0] clock_mhz 1.0e+03 bytes_per_cycle 1.0e+02
  plan.shape vocab 32 layers 2 hidden 32 heads 1 kv_heads 1 head_dim 32 experts_per_token 1 expert_width 16 dense_width 0 router hash tied
  plan.bounds batch 1 seq 64 dtype bf16 activations single
  plan.experts total 2 groups 2 kept [0, 1] reached [0, 1]
  plan.phase qkv reads [] writes ["q"]
  plan.phase attention reads ["q"] writes ["partials"]
  // expected-error @below {{carries "q" from qkv, but the region is alive only from attention}}
  plan.edge qkv -> attention carries "q" words 32 same_layer epoch
  plan.arena bytes 209716224 kv_reserve 209715200
  plan.region "q" at 0 bytes 512 alive attention to attention
  plan.region "attn" at 512 bytes 512 alive merge to attn_out
  plan.region "kv" at 1024 bytes 209715200 alive qkv to head
}
