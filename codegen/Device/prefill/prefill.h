// The kernels of a prefill pass. Per pass: tokens (hash routing: their experts
// and order), embedding; per layer qkv, attention, attn_out, add; with a
// learned router its scores, choice, order and sorting; gate_up, down, the
// dense ones, add; then for the tokens whose logits are wanted the head.
#pragma once

#include "codegen/Device/prefill/attention.h"
#include "codegen/Device/prefill/choose.h"
#include "codegen/Device/prefill/linear.h"
#include "codegen/Device/prefill/qkv.h"
#include "codegen/Device/prefill/rate.h"
#include "codegen/Device/prefill/residual.h"
#include "codegen/Device/prefill/routing.h"

namespace grok::device {

template <template <class> class Job, class M, class P>
GROK_DEVICE void multiply(const abi::PrefillParams &params) {
  using Pass = device::Pass<M, P>;
  static_assert(productSharedBytes(Pass::kShape) <= P::kSharedBytes,
                "the plan reserves the block's shared memory");
  Pass pass{params};
  Product<Pass, Job<Pass>>::run(pass);
}

} // namespace grok::device
