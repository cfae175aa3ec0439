// Every feature of Grok-2, in small.
grok.model @main vocab 100 context 128 dtype bf16 bos 1 eos 2 pad 0 {
  %e = grok.embed multiplier 8.5 : tensor<?x48xf32>
  %hl = grok.layers 2 (%h = %e) : tensor<?x48xf32> {
    %a = grok.rms_norm %h, pre_attn eps 1.0e-05 : tensor<?x48xf32>
    %q, %k, %v = grok.qkv %a heads 4 kv_heads 2 head_dim 16 : tensor<?x48xf32> -> tensor<?x64xf32>, tensor<?x32xf32>
    %qr = grok.rope %q theta 208533496.0 head_dim 16 : tensor<?x64xf32>
    %kr = grok.rope %k theta 208533496.0 head_dim 16 : tensor<?x32xf32>
    %o = grok.attention %qr, %kr, %v heads 4 kv_heads 2 head_dim 16 scale 0.25 cap 30.0 temperature_length 64 : tensor<?x64xf32>, tensor<?x32xf32>
    %y = grok.linear %o, attn_out : tensor<?x64xf32> -> tensor<?x48xf32>
    %yn = grok.rms_norm %y, post_attn eps 1.0e-05 : tensor<?x48xf32>
    %h1 = grok.add %h, %yn : tensor<?x48xf32>
    %b = grok.rms_norm %h1, pre_moe eps 1.0e-05 : tensor<?x48xf32>
    %r = grok.topk_route %b experts 4 k 2 cap 30.0 : tensor<?x48xf32> -> !grok.routing<2 of 4>
    %m = grok.experts %b, %r experts 4 width 24 gelu erf kept [0, 2, 3] : tensor<?x48xf32>, !grok.routing<2 of 4>
    %d = grok.dense_mlp %b width 40 gelu erf : tensor<?x48xf32>
    %f = grok.scaled_add %d, %m scale 0.70710678118654757 : tensor<?x48xf32>
    %fn = grok.rms_norm %f, post_moe eps 1.0e-05 : tensor<?x48xf32>
    %h2 = grok.add %h1, %fn : tensor<?x48xf32>
    grok.yield %h2 : tensor<?x48xf32>
  }
  %x = grok.rms_norm %hl, final eps 1.0e-05 : tensor<?x48xf32>
  %l = grok.lm_head %x multiplier 0.5 cap 50.0 : tensor<?x48xf32> -> tensor<?x100xf32>
  grok.return %l : tensor<?x100xf32>
}
