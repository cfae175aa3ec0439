// A batch whose rows all route to a pruned expert runs none.
// RUN: %grok-opt %s --plan-assign-slots --plan-predict | FileCheck %s
// CHECK: plan.prediction step batch 1 {{.*}} experts 0 {{.*}} worst {{.*}} experts 1 {

plan.device @decode of @main rank 0 of 1 {
  plan.target "two" sm 90 slots 2 shared 232448 memory 300000000 banks 2 align 4096 gb_s 1.0e+03 efficiency 1.0 curve_slots [1.0] curve_rate [1.0] hand_over [1.0, 2.0] launch [1.0, 2.0] clock_mhz 1.0e+03 bytes_per_cycle 1.0e+02
  plan.shape vocab 32 layers 2 hidden 32 heads 1 kv_heads 1 head_dim 32 experts_per_token 1 expert_width 16 dense_width 0 router hash tied
  plan.bounds batch 1 seq 64 dtype bf16 activations single
  plan.experts total 2 groups 2 kept [1] reached [0, 1]
  plan.matrix qkv tiles 12 steps 1
  plan.matrix attn_out tiles 4 steps 1
  plan.matrix gate_up expert 1 tiles 4 steps 1
  plan.matrix down expert 1 tiles 4 steps 1
  plan.matrix head tiles 4 steps 1
}
