// RUN: %grok-opt %s -split-input-file -verify-diagnostics

// Banks: extents lie in their segment, in the bank of the policy, and apart in every layer.

plan.device @decode of @main rank 0 of 1 {
  plan.target "two" sm 90 slots 2 shared 232448 memory 300000000 banks 2 align 4096 gb_s 1.0e+03 efficiency 1.0 curve_slots [1.0] curve_rate [1.0] hand_over [1.0, 2.0] launch [1.0, 2.0] clock_mhz 1.0e+03 bytes_per_cycle 1.0e+02
  plan.shape vocab 32 layers 2 hidden 32 heads 1 kv_heads 1 head_dim 32 experts_per_token 1 expert_width 16 dense_width 0 router hash tied
  plan.bounds batch 1 seq 64 dtype bf16 activations single
  plan.experts total 2 groups 2 kept [0, 1] reached [0, 1]
  plan.assignment all
  // expected-note @below {{the other is here}}
  plan.matrix qkv tiles 12 steps 1 begin [0, 6] count [6, 6] banks [0, 1] offsets [0, 20480]
  // expected-error @below {{attn_out of slot 0 in layer 0 at byte 2560 of bank 0 overlaps qkv of slot 0 in layer 0}}
  plan.matrix attn_out tiles 4 steps 1 begin [0, 2] count [2, 2] banks [0, 1] offsets [2560, 23552]
  plan.matrix gate_up expert 0 tiles 4 steps 1 begin [0, 2] count [2, 2] banks [0, 1] offsets [4096, 24576]
  plan.matrix gate_up expert 1 tiles 4 steps 1 begin [0, 2] count [2, 2] banks [1, 0] offsets [25600, 5120]
  plan.matrix down expert 0 tiles 4 steps 1 begin [0, 2] count [2, 2] banks [0, 1] offsets [6144, 26624]
  plan.matrix down expert 1 tiles 4 steps 1 begin [0, 2] count [2, 2] banks [1, 0] offsets [27648, 7168]
  plan.matrix head tiles 4 steps 1 begin [0, 2] count [2, 2] banks [0, 1] offsets [17920, 36864]
  plan.placement striped vectors 16384 layer_bytes 512 blob 40960
  plan.segment 0 at 0 bytes 20480 used 18944 layer_stride 8192
  plan.segment 1 at 20480 bytes 20480 used 17408 layer_stride 8192
}

// -----

// Apart in layer 0, but not from the next layer.
plan.device @decode of @main rank 0 of 1 {
  plan.target "two" sm 90 slots 2 shared 232448 memory 300000000 banks 2 align 4096 gb_s 1.0e+03 efficiency 1.0 curve_slots [1.0] curve_rate [1.0] hand_over [1.0, 2.0] launch [1.0, 2.0] clock_mhz 1.0e+03 bytes_per_cycle 1.0e+02
  plan.shape vocab 32 layers 2 hidden 32 heads 1 kv_heads 1 head_dim 32 experts_per_token 1 expert_width 16 dense_width 0 router hash tied
  plan.bounds batch 1 seq 64 dtype bf16 activations single
  plan.experts total 2 groups 2 kept [0, 1] reached [0, 1]
  plan.assignment all
  // expected-error @below {{qkv of slot 0 in layer 1 at byte 7168 of bank 0 overlaps down of expert 1 of slot 1 in layer 0}}
  plan.matrix qkv tiles 12 steps 1 begin [0, 6] count [6, 6] banks [0, 1] offsets [0, 20480]
  plan.matrix attn_out tiles 4 steps 1 begin [0, 2] count [2, 2] banks [0, 1] offsets [3072, 23552]
  plan.matrix gate_up expert 0 tiles 4 steps 1 begin [0, 2] count [2, 2] banks [0, 1] offsets [4096, 24576]
  plan.matrix gate_up expert 1 tiles 4 steps 1 begin [0, 2] count [2, 2] banks [1, 0] offsets [25600, 5120]
  plan.matrix down expert 0 tiles 4 steps 1 begin [0, 2] count [2, 2] banks [0, 1] offsets [6144, 26624]
  // expected-note @below {{the other is here}}
  plan.matrix down expert 1 tiles 4 steps 1 begin [0, 2] count [2, 2] banks [1, 0] offsets [27648, 7168]
  plan.matrix head tiles 4 steps 1 begin [0, 2] count [2, 2] banks [0, 1] offsets [17920, 36864]
  plan.placement striped vectors 16384 layer_bytes 512 blob 40960
  plan.segment 0 at 0 bytes 20480 used 18944 layer_stride 7168
  plan.segment 1 at 20480 bytes 20480 used 17408 layer_stride 8192
}

// -----

plan.device @decode of @main rank 0 of 1 {
  plan.target "two" sm 90 slots 2 shared 232448 memory 300000000 banks 2 align 4096 gb_s 1.0e+03 efficiency 1.0 curve_slots [1.0] curve_rate [1.0] hand_over [1.0, 2.0] launch [1.0, 2.0] clock_mhz 1.0e+03 bytes_per_cycle 1.0e+02
  plan.shape vocab 32 layers 2 hidden 32 heads 1 kv_heads 1 head_dim 32 experts_per_token 1 expert_width 16 dense_width 0 router hash tied
  plan.bounds batch 1 seq 64 dtype bf16 activations single
  plan.experts total 2 groups 2 kept [0, 1] reached [0, 1]
  plan.assignment all
  plan.matrix qkv tiles 12 steps 1 begin [0, 6] count [6, 6] banks [0, 1] offsets [0, 20480]
  plan.matrix attn_out tiles 4 steps 1 begin [0, 2] count [2, 2] banks [0, 1] offsets [3072, 23552]
  plan.matrix gate_up expert 0 tiles 4 steps 1 begin [0, 2] count [2, 2] banks [0, 1] offsets [4096, 24576]
  plan.matrix gate_up expert 1 tiles 4 steps 1 begin [0, 2] count [2, 2] banks [1, 0] offsets [25600, 5120]
  plan.matrix down expert 0 tiles 4 steps 1 begin [0, 2] count [2, 2] banks [0, 1] offsets [6144, 26624]
  // expected-note @below {{the other is here}}
  plan.matrix down expert 1 tiles 4 steps 1 begin [0, 2] count [2, 2] banks [1, 0] offsets [27648, 7168]
  plan.matrix head tiles 4 steps 1 begin [0, 2] count [2, 2] banks [0, 1] offsets [17920, 36864]
  // expected-error @below {{vectors at byte 15360 of bank 0 overlaps down of expert 1 of slot 1 in layer 1}}
  plan.placement striped vectors 15360 layer_bytes 512 blob 40960
  plan.segment 0 at 0 bytes 20480 used 18944 layer_stride 8192
  plan.segment 1 at 20480 bytes 20480 used 17408 layer_stride 8192
}

// -----

plan.device @decode of @main rank 0 of 1 {
  plan.target "two" sm 90 slots 2 shared 232448 memory 300000000 banks 2 align 4096 gb_s 1.0e+03 efficiency 1.0 curve_slots [1.0] curve_rate [1.0] hand_over [1.0, 2.0] launch [1.0, 2.0] clock_mhz 1.0e+03 bytes_per_cycle 1.0e+02
  plan.shape vocab 32 layers 2 hidden 32 heads 1 kv_heads 1 head_dim 32 experts_per_token 1 expert_width 16 dense_width 0 router hash tied
  plan.bounds batch 1 seq 64 dtype bf16 activations single
  plan.experts total 2 groups 2 kept [0, 1] reached [0, 1]
  plan.assignment all
  plan.matrix qkv tiles 12 steps 1 begin [0, 6] count [6, 6] banks [0, 1] offsets [0, 20480]
  plan.matrix attn_out tiles 4 steps 1 begin [0, 2] count [2, 2] banks [0, 1] offsets [3072, 23552]
  plan.matrix gate_up expert 0 tiles 4 steps 1 begin [0, 2] count [2, 2] banks [0, 1] offsets [4096, 24576]
  plan.matrix gate_up expert 1 tiles 4 steps 1 begin [0, 2] count [2, 2] banks [1, 0] offsets [25600, 5120]
  plan.matrix down expert 0 tiles 4 steps 1 begin [0, 2] count [2, 2] banks [0, 1] offsets [6144, 26624]
  plan.matrix down expert 1 tiles 4 steps 1 begin [0, 2] count [2, 2] banks [1, 0] offsets [27648, 7168]
  // expected-error @below {{head of slot 1 in layer 0: bytes [40448, 41472) lie outside bank 1's used bytes [20480, 37888)}}
  plan.matrix head tiles 4 steps 1 begin [0, 2] count [2, 2] banks [0, 1] offsets [17920, 40448]
  plan.placement striped vectors 16384 layer_bytes 512 blob 40960
  plan.segment 0 at 0 bytes 20480 used 18944 layer_stride 8192
  plan.segment 1 at 20480 bytes 20480 used 17408 layer_stride 8192
}

// -----

plan.device @decode of @main rank 0 of 1 {
  plan.target "two" sm 90 slots 2 shared 232448 memory 300000000 banks 2 align 4096 gb_s 1.0e+03 efficiency 1.0 curve_slots [1.0] curve_rate [1.0] hand_over [1.0, 2.0] launch [1.0, 2.0] clock_mhz 1.0e+03 bytes_per_cycle 1.0e+02
  plan.shape vocab 32 layers 2 hidden 32 heads 1 kv_heads 1 head_dim 32 experts_per_token 1 expert_width 16 dense_width 0 router hash tied
  plan.bounds batch 1 seq 64 dtype bf16 activations single
  plan.experts total 2 groups 2 kept [0, 1] reached [0, 1]
  plan.assignment all
  // expected-error @below {{qkv has slot 1's extent in bank 0, expected bank 1 under policy striped}}
  plan.matrix qkv tiles 12 steps 1 begin [0, 6] count [6, 6] banks [0, 0] offsets [0, 20480]
  plan.matrix attn_out tiles 4 steps 1 begin [0, 2] count [2, 2] banks [0, 1] offsets [3072, 23552]
  plan.matrix gate_up expert 0 tiles 4 steps 1 begin [0, 2] count [2, 2] banks [0, 1] offsets [4096, 24576]
  plan.matrix gate_up expert 1 tiles 4 steps 1 begin [0, 2] count [2, 2] banks [1, 0] offsets [25600, 5120]
  plan.matrix down expert 0 tiles 4 steps 1 begin [0, 2] count [2, 2] banks [0, 1] offsets [6144, 26624]
  plan.matrix down expert 1 tiles 4 steps 1 begin [0, 2] count [2, 2] banks [1, 0] offsets [27648, 7168]
  plan.matrix head tiles 4 steps 1 begin [0, 2] count [2, 2] banks [0, 1] offsets [17920, 36864]
  plan.placement striped vectors 16384 layer_bytes 512 blob 40960
  plan.segment 0 at 0 bytes 20480 used 18944 layer_stride 8192
  plan.segment 1 at 20480 bytes 20480 used 17408 layer_stride 8192
}

// -----

plan.device @decode of @main rank 0 of 1 {
  plan.target "two" sm 90 slots 2 shared 232448 memory 300000000 banks 2 align 4096 gb_s 1.0e+03 efficiency 1.0 curve_slots [1.0] curve_rate [1.0] hand_over [1.0, 2.0] launch [1.0, 2.0] clock_mhz 1.0e+03 bytes_per_cycle 1.0e+02
  plan.shape vocab 32 layers 2 hidden 32 heads 1 kv_heads 1 head_dim 32 experts_per_token 1 expert_width 16 dense_width 0 router hash tied
  plan.bounds batch 1 seq 64 dtype bf16 activations single
  plan.experts total 2 groups 2 kept [0, 1] reached [0, 1]
  plan.assignment all
  // expected-error @below {{slot 1 reads from bank 2, but there are 2}}
  plan.matrix qkv tiles 12 steps 1 begin [0, 6] count [6, 6] banks [0, 2] offsets [0, 20480]
  plan.matrix attn_out tiles 4 steps 1 begin [0, 2] count [2, 2] banks [0, 1] offsets [3072, 23552]
  plan.matrix gate_up expert 0 tiles 4 steps 1 begin [0, 2] count [2, 2] banks [0, 1] offsets [4096, 24576]
  plan.matrix gate_up expert 1 tiles 4 steps 1 begin [0, 2] count [2, 2] banks [1, 0] offsets [25600, 5120]
  plan.matrix down expert 0 tiles 4 steps 1 begin [0, 2] count [2, 2] banks [0, 1] offsets [6144, 26624]
  plan.matrix down expert 1 tiles 4 steps 1 begin [0, 2] count [2, 2] banks [1, 0] offsets [27648, 7168]
  plan.matrix head tiles 4 steps 1 begin [0, 2] count [2, 2] banks [0, 1] offsets [17920, 36864]
  plan.placement striped vectors 16384 layer_bytes 512 blob 40960
  plan.segment 0 at 0 bytes 20480 used 18944 layer_stride 8192
  plan.segment 1 at 20480 bytes 20480 used 17408 layer_stride 8192
}

// -----

plan.device @decode of @main rank 0 of 1 {
  plan.target "two" sm 90 slots 2 shared 232448 memory 300000000 banks 2 align 4096 gb_s 1.0e+03 efficiency 1.0 curve_slots [1.0] curve_rate [1.0] hand_over [1.0, 2.0] launch [1.0, 2.0] clock_mhz 1.0e+03 bytes_per_cycle 1.0e+02
  plan.shape vocab 32 layers 2 hidden 32 heads 1 kv_heads 1 head_dim 32 experts_per_token 1 expert_width 16 dense_width 0 router hash tied
  plan.bounds batch 1 seq 64 dtype bf16 activations single
  plan.experts total 2 groups 2 kept [0, 1] reached [0, 1]
  plan.assignment all
  // expected-error @below {{qkv has slot 0's extent at byte 16, expected a multiple of 512}}
  plan.matrix qkv tiles 12 steps 1 begin [0, 6] count [6, 6] banks [0, 1] offsets [16, 20480]
  plan.matrix attn_out tiles 4 steps 1 begin [0, 2] count [2, 2] banks [0, 1] offsets [3072, 23552]
  plan.matrix gate_up expert 0 tiles 4 steps 1 begin [0, 2] count [2, 2] banks [0, 1] offsets [4096, 24576]
  plan.matrix gate_up expert 1 tiles 4 steps 1 begin [0, 2] count [2, 2] banks [1, 0] offsets [25600, 5120]
  plan.matrix down expert 0 tiles 4 steps 1 begin [0, 2] count [2, 2] banks [0, 1] offsets [6144, 26624]
  plan.matrix down expert 1 tiles 4 steps 1 begin [0, 2] count [2, 2] banks [1, 0] offsets [27648, 7168]
  plan.matrix head tiles 4 steps 1 begin [0, 2] count [2, 2] banks [0, 1] offsets [17920, 36864]
  plan.placement striped vectors 16384 layer_bytes 512 blob 40960
  plan.segment 0 at 0 bytes 20480 used 18944 layer_stride 8192
  plan.segment 1 at 20480 bytes 20480 used 17408 layer_stride 8192
}

// -----

plan.device @decode of @main rank 0 of 1 {
  plan.target "two" sm 90 slots 2 shared 232448 memory 300000000 banks 2 align 4096 gb_s 1.0e+03 efficiency 1.0 curve_slots [1.0] curve_rate [1.0] hand_over [1.0, 2.0] launch [1.0, 2.0] clock_mhz 1.0e+03 bytes_per_cycle 1.0e+02
  plan.shape vocab 32 layers 2 hidden 32 heads 1 kv_heads 1 head_dim 32 experts_per_token 1 expert_width 16 dense_width 0 router hash tied
  plan.bounds batch 1 seq 64 dtype bf16 activations single
  plan.experts total 2 groups 2 kept [0, 1] reached [0, 1]
  plan.assignment all
  // expected-error @below {{qkv has no place in the blob, but the device's banks are placed}}
  plan.matrix qkv tiles 12 steps 1 begin [0, 6] count [6, 6]
  plan.matrix attn_out tiles 4 steps 1 begin [0, 2] count [2, 2] banks [0, 1] offsets [3072, 23552]
  plan.matrix gate_up expert 0 tiles 4 steps 1 begin [0, 2] count [2, 2] banks [0, 1] offsets [4096, 24576]
  plan.matrix gate_up expert 1 tiles 4 steps 1 begin [0, 2] count [2, 2] banks [1, 0] offsets [25600, 5120]
  plan.matrix down expert 0 tiles 4 steps 1 begin [0, 2] count [2, 2] banks [0, 1] offsets [6144, 26624]
  plan.matrix down expert 1 tiles 4 steps 1 begin [0, 2] count [2, 2] banks [1, 0] offsets [27648, 7168]
  plan.matrix head tiles 4 steps 1 begin [0, 2] count [2, 2] banks [0, 1] offsets [17920, 36864]
  plan.placement striped vectors 16384 layer_bytes 512 blob 40960
  plan.segment 0 at 0 bytes 20480 used 18944 layer_stride 8192
  plan.segment 1 at 20480 bytes 20480 used 17408 layer_stride 8192
}

// -----

plan.device @decode of @main rank 0 of 1 {
  plan.target "two" sm 90 slots 2 shared 232448 memory 300000000 banks 2 align 4096 gb_s 1.0e+03 efficiency 1.0 curve_slots [1.0] curve_rate [1.0] hand_over [1.0, 2.0] launch [1.0, 2.0] clock_mhz 1.0e+03 bytes_per_cycle 1.0e+02
  plan.shape vocab 32 layers 2 hidden 32 heads 1 kv_heads 1 head_dim 32 experts_per_token 1 expert_width 16 dense_width 0 router hash tied
  plan.bounds batch 1 seq 64 dtype bf16 activations single
  plan.experts total 2 groups 2 kept [0, 1] reached [0, 1]
  plan.assignment all
  // expected-error @below {{qkv lists 1 banks and 2 offsets, expected one a slot (2)}}
  plan.matrix qkv tiles 12 steps 1 begin [0, 6] count [6, 6] banks [0] offsets [0, 20480]
  plan.matrix attn_out tiles 4 steps 1 begin [0, 2] count [2, 2] banks [0, 1] offsets [3072, 23552]
  plan.matrix gate_up expert 0 tiles 4 steps 1 begin [0, 2] count [2, 2] banks [0, 1] offsets [4096, 24576]
  plan.matrix gate_up expert 1 tiles 4 steps 1 begin [0, 2] count [2, 2] banks [1, 0] offsets [25600, 5120]
  plan.matrix down expert 0 tiles 4 steps 1 begin [0, 2] count [2, 2] banks [0, 1] offsets [6144, 26624]
  plan.matrix down expert 1 tiles 4 steps 1 begin [0, 2] count [2, 2] banks [1, 0] offsets [27648, 7168]
  plan.matrix head tiles 4 steps 1 begin [0, 2] count [2, 2] banks [0, 1] offsets [17920, 36864]
  plan.placement striped vectors 16384 layer_bytes 512 blob 40960
  plan.segment 0 at 0 bytes 20480 used 18944 layer_stride 8192
  plan.segment 1 at 20480 bytes 20480 used 17408 layer_stride 8192
}

// -----

plan.device @decode of @main rank 0 of 1 {
  plan.target "two" sm 90 slots 2 shared 232448 memory 300000000 banks 2 align 4096 gb_s 1.0e+03 efficiency 1.0 curve_slots [1.0] curve_rate [1.0] hand_over [1.0, 2.0] launch [1.0, 2.0] clock_mhz 1.0e+03 bytes_per_cycle 1.0e+02
  plan.shape vocab 32 layers 2 hidden 32 heads 1 kv_heads 1 head_dim 32 experts_per_token 1 expert_width 16 dense_width 0 router hash tied
  plan.bounds batch 1 seq 64 dtype bf16 activations single
  plan.experts total 2 groups 2 kept [0, 1] reached [0, 1]
  plan.assignment all
  plan.matrix qkv tiles 12 steps 1 begin [0, 6] count [6, 6] banks [0, 1] offsets [0, 20480]
  plan.matrix attn_out tiles 4 steps 1 begin [0, 2] count [2, 2] banks [0, 1] offsets [3072, 23552]
  plan.matrix gate_up expert 0 tiles 4 steps 1 begin [0, 2] count [2, 2] banks [0, 1] offsets [4096, 24576]
  plan.matrix gate_up expert 1 tiles 4 steps 1 begin [0, 2] count [2, 2] banks [1, 0] offsets [25600, 5120]
  plan.matrix down expert 0 tiles 4 steps 1 begin [0, 2] count [2, 2] banks [0, 1] offsets [6144, 26624]
  plan.matrix down expert 1 tiles 4 steps 1 begin [0, 2] count [2, 2] banks [1, 0] offsets [27648, 7168]
  plan.matrix head tiles 4 steps 1 begin [0, 2] count [2, 2] banks [0, 1] offsets [17920, 36864]
  // expected-error @below {{has 1 segments, expected one a bank (2)}}
  plan.placement striped vectors 16384 layer_bytes 512 blob 40960
  plan.segment 0 at 0 bytes 20480 used 18944 layer_stride 8192
}

// -----

plan.device @decode of @main rank 0 of 1 {
  plan.target "two" sm 90 slots 2 shared 232448 memory 300000000 banks 2 align 4096 gb_s 1.0e+03 efficiency 1.0 curve_slots [1.0] curve_rate [1.0] hand_over [1.0, 2.0] launch [1.0, 2.0] clock_mhz 1.0e+03 bytes_per_cycle 1.0e+02
  plan.shape vocab 32 layers 2 hidden 32 heads 1 kv_heads 1 head_dim 32 experts_per_token 1 expert_width 16 dense_width 0 router hash tied
  plan.bounds batch 1 seq 64 dtype bf16 activations single
  plan.experts total 2 groups 2 kept [0, 1] reached [0, 1]
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
  // expected-error @below {{of bank 0 stands where bank 1 is expected}}
  plan.segment 0 at 20480 bytes 20480 used 17408 layer_stride 8192
}

// -----

plan.device @decode of @main rank 0 of 1 {
  plan.target "two" sm 90 slots 2 shared 232448 memory 300000000 banks 2 align 4096 gb_s 1.0e+03 efficiency 1.0 curve_slots [1.0] curve_rate [1.0] hand_over [1.0, 2.0] launch [1.0, 2.0] clock_mhz 1.0e+03 bytes_per_cycle 1.0e+02
  plan.shape vocab 32 layers 2 hidden 32 heads 1 kv_heads 1 head_dim 32 experts_per_token 1 expert_width 16 dense_width 0 router hash tied
  plan.bounds batch 1 seq 64 dtype bf16 activations single
  plan.experts total 2 groups 2 kept [0, 1] reached [0, 1]
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
  // expected-error @below {{of bank 1 begins at byte 24576, expected the end of the one before, 20480}}
  plan.segment 1 at 24576 bytes 16384 used 16384 layer_stride 8192
}

// -----

plan.device @decode of @main rank 0 of 1 {
  plan.target "two" sm 90 slots 2 shared 232448 memory 300000000 banks 2 align 4096 gb_s 1.0e+03 efficiency 1.0 curve_slots [1.0] curve_rate [1.0] hand_over [1.0, 2.0] launch [1.0, 2.0] clock_mhz 1.0e+03 bytes_per_cycle 1.0e+02
  plan.shape vocab 32 layers 2 hidden 32 heads 1 kv_heads 1 head_dim 32 experts_per_token 1 expert_width 16 dense_width 0 router hash tied
  plan.bounds batch 1 seq 64 dtype bf16 activations single
  plan.experts total 2 groups 2 kept [0, 1] reached [0, 1]
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
  // expected-error @below {{of bank 1 has 20000 bytes, expected a multiple of the bank alignment 4096}}
  plan.segment 1 at 20480 bytes 20000 used 17408 layer_stride 8192
}

// -----

plan.device @decode of @main rank 0 of 1 {
  plan.target "two" sm 90 slots 2 shared 232448 memory 300000000 banks 2 align 4096 gb_s 1.0e+03 efficiency 1.0 curve_slots [1.0] curve_rate [1.0] hand_over [1.0, 2.0] launch [1.0, 2.0] clock_mhz 1.0e+03 bytes_per_cycle 1.0e+02
  plan.shape vocab 32 layers 2 hidden 32 heads 1 kv_heads 1 head_dim 32 experts_per_token 1 expert_width 16 dense_width 0 router hash tied
  plan.bounds batch 1 seq 64 dtype bf16 activations single
  plan.experts total 2 groups 2 kept [0, 1] reached [0, 1]
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
  // expected-error @below {{of bank 1 uses 20481 of 20480 bytes}}
  plan.segment 1 at 20480 bytes 20480 used 20481 layer_stride 8192
}

// -----

plan.device @decode of @main rank 0 of 1 {
  plan.target "two" sm 90 slots 2 shared 232448 memory 300000000 banks 2 align 4096 gb_s 1.0e+03 efficiency 1.0 curve_slots [1.0] curve_rate [1.0] hand_over [1.0, 2.0] launch [1.0, 2.0] clock_mhz 1.0e+03 bytes_per_cycle 1.0e+02
  plan.shape vocab 32 layers 2 hidden 32 heads 1 kv_heads 1 head_dim 32 experts_per_token 1 expert_width 16 dense_width 0 router hash tied
  plan.bounds batch 1 seq 64 dtype bf16 activations single
  plan.experts total 2 groups 2 kept [0, 1] reached [0, 1]
  plan.assignment all
  plan.matrix qkv tiles 12 steps 1 begin [0, 6] count [6, 6] banks [0, 1] offsets [0, 20480]
  plan.matrix attn_out tiles 4 steps 1 begin [0, 2] count [2, 2] banks [0, 1] offsets [3072, 23552]
  plan.matrix gate_up expert 0 tiles 4 steps 1 begin [0, 2] count [2, 2] banks [0, 1] offsets [4096, 24576]
  plan.matrix gate_up expert 1 tiles 4 steps 1 begin [0, 2] count [2, 2] banks [1, 0] offsets [25600, 5120]
  plan.matrix down expert 0 tiles 4 steps 1 begin [0, 2] count [2, 2] banks [0, 1] offsets [6144, 26624]
  plan.matrix down expert 1 tiles 4 steps 1 begin [0, 2] count [2, 2] banks [1, 0] offsets [27648, 7168]
  plan.matrix head tiles 4 steps 1 begin [0, 2] count [2, 2] banks [0, 1] offsets [17920, 36864]
  // expected-error @below {{has a blob of 45056 bytes, but the segments end at 40960}}
  plan.placement striped vectors 16384 layer_bytes 512 blob 45056
  plan.segment 0 at 0 bytes 20480 used 18944 layer_stride 8192
  plan.segment 1 at 20480 bytes 20480 used 17408 layer_stride 8192
}

// -----

plan.device @decode of @main rank 0 of 1 {
  plan.target "two" sm 90 slots 2 shared 232448 memory 300000000 banks 2 align 4096 gb_s 1.0e+03 efficiency 1.0 curve_slots [1.0] curve_rate [1.0] hand_over [1.0, 2.0] launch [1.0, 2.0] clock_mhz 1.0e+03 bytes_per_cycle 1.0e+02
  plan.shape vocab 32 layers 2 hidden 32 heads 1 kv_heads 1 head_dim 32 experts_per_token 1 expert_width 16 dense_width 0 router hash tied
  plan.bounds batch 1 seq 64 dtype bf16 activations single
  plan.experts total 2 groups 2 kept [0, 1] reached [0, 1]
  plan.assignment all
  plan.matrix qkv tiles 12 steps 1 begin [0, 6] count [6, 6] banks [0, 1] offsets [0, 20480]
  plan.matrix attn_out tiles 4 steps 1 begin [0, 2] count [2, 2] banks [0, 1] offsets [3072, 23552]
  plan.matrix gate_up expert 0 tiles 4 steps 1 begin [0, 2] count [2, 2] banks [0, 1] offsets [4096, 24576]
  plan.matrix gate_up expert 1 tiles 4 steps 1 begin [0, 2] count [2, 2] banks [1, 0] offsets [25600, 5120]
  plan.matrix down expert 0 tiles 4 steps 1 begin [0, 2] count [2, 2] banks [0, 1] offsets [6144, 26624]
  plan.matrix down expert 1 tiles 4 steps 1 begin [0, 2] count [2, 2] banks [1, 0] offsets [27648, 7168]
  plan.matrix head tiles 4 steps 1 begin [0, 2] count [2, 2] banks [0, 1] offsets [17920, 36864]
  // expected-error @below {{has 500 bytes of vectors a layer, expected 512}}
  plan.placement striped vectors 16384 layer_bytes 500 blob 40960
  plan.segment 0 at 0 bytes 20480 used 18944 layer_stride 8192
  plan.segment 1 at 20480 bytes 20480 used 17408 layer_stride 8192
}

// -----

plan.device @decode of @main rank 0 of 1 {
  plan.target "two" sm 90 slots 2 shared 232448 memory 300000000 banks 2 align 4096 gb_s 1.0e+03 efficiency 1.0 curve_slots [1.0] curve_rate [1.0] hand_over [1.0, 2.0] launch [1.0, 2.0] clock_mhz 1.0e+03 bytes_per_cycle 1.0e+02
  plan.shape vocab 32 layers 2 hidden 32 heads 1 kv_heads 1 head_dim 32 experts_per_token 1 expert_width 16 dense_width 0 router hash tied
  plan.bounds batch 1 seq 64 dtype bf16 activations single
  plan.experts total 2 groups 2 kept [0, 1] reached [0, 1]
  plan.assignment all
  plan.matrix qkv tiles 12 steps 1 begin [0, 6] count [6, 6] banks [0, 1] offsets [0, 20480]
  plan.matrix attn_out tiles 4 steps 1 begin [0, 2] count [2, 2] banks [0, 1] offsets [3072, 23552]
  plan.matrix gate_up expert 0 tiles 4 steps 1 begin [0, 2] count [2, 2] banks [0, 1] offsets [4096, 24576]
  plan.matrix gate_up expert 1 tiles 4 steps 1 begin [0, 2] count [2, 2] banks [1, 0] offsets [25600, 5120]
  plan.matrix down expert 0 tiles 4 steps 1 begin [0, 2] count [2, 2] banks [0, 1] offsets [6144, 26624]
  plan.matrix down expert 1 tiles 4 steps 1 begin [0, 2] count [2, 2] banks [1, 0] offsets [27648, 7168]
  plan.matrix head tiles 4 steps 1 begin [0, 2] count [2, 2] banks [0, 1] offsets [17920, 36864]
  // expected-error @below {{stands in a device whose banks are not placed}}
  plan.segment 0 at 0 bytes 20480 used 18944 layer_stride 8192
  plan.segment 1 at 20480 bytes 20480 used 17408 layer_stride 8192
}

// -----

plan.device @decode of @main rank 0 of 1 {
  plan.target "two" sm 90 slots 2 shared 232448 memory 300000000 banks 2 align 4096 gb_s 1.0e+03 efficiency 1.0 curve_slots [1.0] curve_rate [1.0] hand_over [1.0, 2.0] launch [1.0, 2.0] clock_mhz 1.0e+03 bytes_per_cycle 1.0e+02
  plan.shape vocab 32 layers 2 hidden 32 heads 1 kv_heads 1 head_dim 32 experts_per_token 1 expert_width 16 dense_width 0 router hash
  plan.bounds batch 1 seq 64 dtype bf16 activations single
  plan.experts total 2 groups 2 kept [0, 1] reached [0, 1]
  plan.assignment all
  plan.matrix qkv tiles 12 steps 1 begin [0, 6] count [6, 6] banks [0, 1] offsets [0, 20480]
  plan.matrix attn_out tiles 4 steps 1 begin [0, 2] count [2, 2] banks [0, 1] offsets [3072, 23552]
  plan.matrix gate_up expert 0 tiles 4 steps 1 begin [0, 2] count [2, 2] banks [0, 1] offsets [4096, 24576]
  plan.matrix gate_up expert 1 tiles 4 steps 1 begin [0, 2] count [2, 2] banks [1, 0] offsets [25600, 5120]
  plan.matrix down expert 0 tiles 4 steps 1 begin [0, 2] count [2, 2] banks [0, 1] offsets [6144, 26624]
  plan.matrix down expert 1 tiles 4 steps 1 begin [0, 2] count [2, 2] banks [1, 0] offsets [27648, 7168]
  plan.matrix head tiles 4 steps 1 begin [0, 2] count [2, 2] banks [0, 1] offsets [17920, 36864]
  // expected-error @below {{comes without an embedding table, but the head is not tied to it}}
  plan.placement striped vectors 16384 layer_bytes 512 blob 40960
  plan.segment 0 at 0 bytes 20480 used 18944 layer_stride 8192
  plan.segment 1 at 20480 bytes 20480 used 17408 layer_stride 8192
}

// -----

plan.device @decode of @main rank 0 of 1 {
  plan.target "two" sm 90 slots 2 shared 232448 memory 300000000 banks 2 align 4096 gb_s 1.0e+03 efficiency 1.0 curve_slots [1.0] curve_rate [1.0] hand_over [1.0, 2.0] launch [1.0, 2.0] clock_mhz 1.0e+03 bytes_per_cycle 1.0e+02
  plan.shape vocab 32 layers 2 hidden 32 heads 1 kv_heads 1 head_dim 32 experts_per_token 1 expert_width 16 dense_width 0 router hash tied
  plan.bounds batch 1 seq 64 dtype bf16 activations single
  plan.experts total 2 groups 2 kept [0, 1] reached [0, 1]
  plan.assignment all
  plan.matrix qkv tiles 12 steps 1 begin [0, 6] count [6, 6] banks [0, 1] offsets [0, 20480]
  plan.matrix attn_out tiles 4 steps 1 begin [0, 2] count [2, 2] banks [0, 1] offsets [3072, 23552]
  plan.matrix gate_up expert 0 tiles 4 steps 1 begin [0, 2] count [2, 2] banks [0, 1] offsets [4096, 24576]
  plan.matrix gate_up expert 1 tiles 4 steps 1 begin [0, 2] count [2, 2] banks [1, 0] offsets [25600, 5120]
  plan.matrix down expert 0 tiles 4 steps 1 begin [0, 2] count [2, 2] banks [0, 1] offsets [6144, 26624]
  plan.matrix down expert 1 tiles 4 steps 1 begin [0, 2] count [2, 2] banks [1, 0] offsets [27648, 7168]
  plan.matrix head tiles 4 steps 1 begin [0, 2] count [2, 2] banks [0, 1] offsets [17920, 36864]
  // expected-error @below {{comes with an embedding table, but the head is tied to it}}
  plan.placement striped vectors 16384 layer_bytes 512 blob 40960
  plan.segment 0 at 0 bytes 20480 used 18944 layer_stride 8192
  plan.segment 1 at 20480 bytes 20480 used 17408 layer_stride 8192
  plan.embedding rows [0, 16] count [16, 16] banks [0, 1] offsets [24576, 53248]
}

// -----

plan.device @decode of @main rank 0 of 1 {
  plan.target "two" sm 90 slots 2 shared 232448 memory 300000000 banks 2 align 4096 gb_s 1.0e+03 efficiency 1.0 curve_slots [1.0] curve_rate [1.0] hand_over [1.0, 2.0] launch [1.0, 2.0] clock_mhz 1.0e+03 bytes_per_cycle 1.0e+02
  plan.shape vocab 32 layers 2 hidden 32 heads 1 kv_heads 1 head_dim 32 experts_per_token 1 expert_width 16 dense_width 0 router hash
  plan.bounds batch 1 seq 64 dtype bf16 activations single
  plan.experts total 2 groups 2 kept [0, 1] reached [0, 1]
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
  // expected-error @below {{holds 31 rows, expected the vocabulary's 32}}
  plan.embedding rows [0, 16] count [16, 15] banks [0, 1] offsets [24576, 53248]
}

// -----

plan.device @decode of @main rank 0 of 1 {
  plan.target "two" sm 90 slots 2 shared 232448 memory 300000000 banks 2 align 4096 gb_s 1.0e+03 efficiency 1.0 curve_slots [1.0] curve_rate [1.0] hand_over [1.0, 2.0] launch [1.0, 2.0] clock_mhz 1.0e+03 bytes_per_cycle 1.0e+02
  plan.shape vocab 32 layers 2 hidden 32 heads 1 kv_heads 1 head_dim 32 experts_per_token 1 expert_width 16 dense_width 0 router hash
  plan.bounds batch 1 seq 64 dtype bf16 activations single
  plan.experts total 2 groups 2 kept [0, 1] reached [0, 1]
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
  // expected-error @below {{slot 1 holds rows from 15, expected 16: every row lies in one slot, in order}}
  plan.embedding rows [0, 15] count [16, 16] banks [0, 1] offsets [24576, 53248]
}

// -----

plan.device @decode of @main rank 0 of 1 {
  plan.target "two" sm 90 slots 2 shared 232448 memory 300000000 banks 2 align 4096 gb_s 1.0e+03 efficiency 1.0 curve_slots [1.0] curve_rate [1.0] hand_over [1.0, 2.0] launch [1.0, 2.0] clock_mhz 1.0e+03 bytes_per_cycle 1.0e+02
  plan.shape vocab 32 layers 2 hidden 32 heads 1 kv_heads 1 head_dim 32 experts_per_token 1 expert_width 16 dense_width 0 router hash
  plan.bounds batch 1 seq 64 dtype bf16 activations single
  plan.experts total 2 groups 2 kept [0, 1] reached [0, 1]
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
  // expected-error @below {{expected one entry a slot (2)}}
  plan.embedding rows [0, 16] count [16, 16] banks [0] offsets [24576, 53248]
}

// -----

plan.device @decode of @main rank 0 of 1 {
  plan.target "two" sm 90 slots 2 shared 232448 memory 300000000 banks 2 align 4096 gb_s 1.0e+03 efficiency 1.0 curve_slots [1.0] curve_rate [1.0] hand_over [1.0, 2.0] launch [1.0, 2.0] clock_mhz 1.0e+03 bytes_per_cycle 1.0e+02
  plan.shape vocab 32 layers 2 hidden 32 heads 1 kv_heads 1 head_dim 32 experts_per_token 1 expert_width 16 dense_width 0 router hash
  plan.bounds batch 1 seq 64 dtype bf16 activations single
  plan.experts total 2 groups 2 kept [0, 1] reached [0, 1]
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
  // expected-error @below {{embedding rows of slot 0: bytes [24576, 25600) lie outside bank 0's used bytes [0, 18944)}}
  plan.embedding rows [0, 16] count [16, 16] banks [0, 1] offsets [24576, 53248]
}

// -----

// Of many layers those between the second and the last are one piece.
plan.device @decode of @main rank 0 of 1 {
  plan.target "two" sm 90 slots 2 shared 232448 memory 300000000 banks 2 align 4096 gb_s 1.0e+03 efficiency 1.0 curve_slots [1.0] curve_rate [1.0] hand_over [1.0, 2.0] launch [1.0, 2.0] clock_mhz 1.0e+03 bytes_per_cycle 1.0e+02
  plan.shape vocab 32 layers 6 hidden 32 heads 1 kv_heads 1 head_dim 32 experts_per_token 1 expert_width 16 dense_width 0 router hash tied
  plan.bounds batch 1 seq 64 dtype bf16 activations single
  plan.experts total 2 groups 2 kept [0, 1] reached [0, 1]
  plan.assignment all
  plan.matrix qkv tiles 12 steps 1 begin [0, 6] count [6, 6] banks [0, 1] offsets [0, 57344]
  plan.matrix attn_out tiles 4 steps 1 begin [0, 2] count [2, 2] banks [0, 1] offsets [3072, 60416]
  plan.matrix gate_up expert 0 tiles 4 steps 1 begin [0, 2] count [2, 2] banks [0, 1] offsets [4096, 61440]
  plan.matrix gate_up expert 1 tiles 4 steps 1 begin [0, 2] count [2, 2] banks [1, 0] offsets [62464, 5120]
  plan.matrix down expert 0 tiles 4 steps 1 begin [0, 2] count [2, 2] banks [0, 1] offsets [6144, 63488]
  // expected-note @below {{the other is here}}
  plan.matrix down expert 1 tiles 4 steps 1 begin [0, 2] count [2, 2] banks [1, 0] offsets [64512, 7168]
  plan.matrix head tiles 4 steps 1 begin [0, 2] count [2, 2] banks [0, 1] offsets [52736, 106496]
  // expected-error @below {{vectors at byte 25088 of bank 0 overlaps layers 2 to 4}}
  plan.placement striped vectors 25088 layer_bytes 512 blob 114688
  plan.segment 0 at 0 bytes 57344 used 53760 layer_stride 8192
  plan.segment 1 at 57344 bytes 57344 used 50176 layer_stride 8192
}

// -----

// Nothing overlaps, but a layer begins before the one before it ends.
plan.device @decode of @main rank 0 of 1 {
  plan.target "two" sm 90 slots 2 shared 232448 memory 300000000 banks 2 align 4096 gb_s 1.0e+03 efficiency 1.0 curve_slots [1.0] curve_rate [1.0] hand_over [1.0, 2.0] launch [1.0, 2.0] clock_mhz 1.0e+03 bytes_per_cycle 1.0e+02
  plan.shape vocab 32 layers 2 hidden 32 heads 1 kv_heads 1 head_dim 32 experts_per_token 1 expert_width 16 dense_width 0 router hash tied
  plan.bounds batch 1 seq 64 dtype bf16 activations single
  plan.experts total 2 groups 2 kept [0, 1] reached [0, 1]
  plan.assignment all
  plan.matrix qkv tiles 12 steps 1 begin [0, 6] count [6, 6] banks [0, 1] offsets [0, 20480]
  plan.matrix attn_out tiles 4 steps 1 begin [0, 2] count [2, 2] banks [0, 1] offsets [11264, 23552]
  plan.matrix gate_up expert 0 tiles 4 steps 1 begin [0, 2] count [2, 2] banks [0, 1] offsets [4096, 24576]
  plan.matrix gate_up expert 1 tiles 4 steps 1 begin [0, 2] count [2, 2] banks [1, 0] offsets [25600, 5120]
  plan.matrix down expert 0 tiles 4 steps 1 begin [0, 2] count [2, 2] banks [0, 1] offsets [6144, 26624]
  plan.matrix down expert 1 tiles 4 steps 1 begin [0, 2] count [2, 2] banks [1, 0] offsets [27648, 7168]
  plan.matrix head tiles 4 steps 1 begin [0, 2] count [2, 2] banks [0, 1] offsets [17920, 36864]
  plan.placement striped vectors 16384 layer_bytes 512 blob 40960
  // expected-error @below {{of bank 0 has layers 8192 bytes apart, expected at least the 12288 of a layer}}
  plan.segment 0 at 0 bytes 20480 used 20480 layer_stride 8192
  plan.segment 1 at 20480 bytes 20480 used 17408 layer_stride 8192
}
