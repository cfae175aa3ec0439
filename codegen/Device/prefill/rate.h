// The matrix rate: what the tensor cores do when nothing but multiplying
// happens, in the shape of a product's whole tile.
#pragma once

#include "codegen/Device/prefill/product.h"
#include "runtime/bundle/Synthetic.h"

namespace grok::device {

/// Every block multiplies the panels that its stages hold, made of random
/// values, params.rateSteps times.
template <class M, class P>
GROK_DEVICE void measureRate(const abi::PrefillParams &params) {
  using Pass = device::Pass<M, P>;
  using Product = device::Product<Pass, AttnOutJob<Pass>>;
  Pass pass{params};
  Product product(pass);
  uint8_t *stages =
      pass.shared() + (product.base - ptx::sharedAddress(pass.shared()));
  for (uint32_t i = pass.tid * 2; i < P::kStages * Product::kStageRoom;
       i += productThreads(P::kSm) * 2) {
    float v = synthetic::matrixElement(17, i, 1.0f);
    *(uint16_t *)(stages + i) = to16<M::kBF16>(v);
  }
  if constexpr (P::kSm >= 90)
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  ptx::barSync(0, productThreads(P::kSm));
  if (pass.warp() >= kProductWarps) {
    if constexpr (P::kSm >= 90)
      ptx::releaseRegisters<kLoadRegisters>();
  } else {
    if constexpr (P::kSm >= 90)
      ptx::claimRegisters<kMultiplyRegisters>();
    product.measure(params.rateSteps,
                    pass.template region<float>(PrefillRegion::kOutput));
  }
}

} // namespace grok::device
