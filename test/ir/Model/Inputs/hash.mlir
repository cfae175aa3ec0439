// Hash routing, a tied head, and no feature that can be left out.
grok.model @main vocab 100 context 128 dtype f16 {
  %e = grok.embed multiplier 8.0 : tensor<?x48xf32>
  %hl = grok.layers 2 (%h = %e) : tensor<?x48xf32> {
    %a = grok.rms_norm %h, pre_attn eps 1.0e-05 : tensor<?x48xf32>
    %q, %k, %v = grok.qkv %a heads 3 kv_heads 1 head_dim 16 : tensor<?x48xf32> -> tensor<?x48xf32>, tensor<?x16xf32>
    %qr = grok.rope %q theta 10000.0 head_dim 16 : tensor<?x48xf32>
    %kr = grok.rope %k theta 10000.0 head_dim 16 : tensor<?x16xf32>
    %o = grok.attention %qr, %kr, %v heads 3 kv_heads 1 head_dim 16 scale 0.25 : tensor<?x48xf32>, tensor<?x16xf32>
    %y = grok.linear %o, attn_out : tensor<?x48xf32> -> tensor<?x48xf32>
    %yn = grok.rms_norm %y, post_attn eps 1.0e-05 : tensor<?x48xf32>
    %h1 = grok.add %h, %yn : tensor<?x48xf32>
    %b = grok.rms_norm %h1, pre_moe eps 1.0e-05 : tensor<?x48xf32>
    %r = grok.hash_route groups 4 experts_per_group 8 token_multiplier 2654435761 position_multiplier 123456789 hash_bits 6 index_shift 4 index_mask 7 position_offset_mask 0 : !grok.routing<1 of 32>
    %m = grok.experts %b, %r experts 32 width 24 gelu tanh : tensor<?x48xf32>, !grok.routing<1 of 32>
    %mn = grok.rms_norm %m, post_moe eps 1.0e-05 : tensor<?x48xf32>
    %h2 = grok.add %h1, %mn : tensor<?x48xf32>
    grok.yield %h2 : tensor<?x48xf32>
  }
  %x = grok.rms_norm %hl, final eps 1.0e-05 : tensor<?x48xf32>
  %l = grok.lm_head %x tied multiplier 0.57735026918962573 : tensor<?x48xf32> -> tensor<?x100xf32>
  grok.return %l : tensor<?x100xf32>
}
