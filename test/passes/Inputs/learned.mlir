// A model of two layers with a learned router: two of four experts a token, a residual MLP and a tied head.
grok.model @main vocab 100 context 128 dtype bf16 {
  %0 = grok.embed multiplier 1.0 : tensor<?x64xf32>
  %1 = grok.layers 2 (%h = %0) : tensor<?x64xf32> {
    %a = grok.rms_norm %h, pre_attn eps 1.0e-05 : tensor<?x64xf32>
    %q, %k, %v = grok.qkv %a heads 2 kv_heads 1 head_dim 32 : tensor<?x64xf32> -> tensor<?x64xf32>, tensor<?x32xf32>
    %qr = grok.rope %q theta 1.0e+04 head_dim 32 : tensor<?x64xf32>
    %kr = grok.rope %k theta 1.0e+04 head_dim 32 : tensor<?x32xf32>
    %o = grok.attention %qr, %kr, %v heads 2 kv_heads 1 head_dim 32 scale 0.125 : tensor<?x64xf32>, tensor<?x32xf32>
    %y = grok.linear %o, attn_out : tensor<?x64xf32> -> tensor<?x64xf32>
    %yn = grok.rms_norm %y, post_attn eps 1.0e-05 : tensor<?x64xf32>
    %h1 = grok.add %h, %yn : tensor<?x64xf32>
    %b = grok.rms_norm %h1, pre_moe eps 1.0e-05 : tensor<?x64xf32>
    %r = grok.topk_route %b experts 4 k 2 : tensor<?x64xf32> -> !grok.routing<2 of 4>
    %m = grok.experts %b, %r experts 4 width 32 gelu erf : tensor<?x64xf32>, !grok.routing<2 of 4>
    %d = grok.dense_mlp %b width 64 gelu erf : tensor<?x64xf32>
    %f = grok.scaled_add %d, %m scale 0.70710678118654757 : tensor<?x64xf32>
    %mn = grok.rms_norm %f, post_moe eps 1.0e-05 : tensor<?x64xf32>
    %h2 = grok.add %h1, %mn : tensor<?x64xf32>
    grok.yield %h2 : tensor<?x64xf32>
  }
  %x = grok.rms_norm %1, final eps 1.0e-05 : tensor<?x64xf32>
  %l = grok.lm_head %x tied multiplier 1.0 : tensor<?x64xf32> -> tensor<?x100xf32>
  grok.return %l : tensor<?x100xf32>
}
