// mbarriers and the asynchronous copies that complete on them. Addresses are
// 32-bit shared addresses.
#pragma once

#include "codegen/Device/ptx/threads.h"

namespace grok::ptx {

GROK_DEVICE void mbarrierInit(uint32_t barrier, uint32_t count) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(barrier), "r"(count)
               : "memory");
}

GROK_DEVICE void mbarrierArrive(uint32_t barrier) {
  asm volatile(
      "{\n.reg .b64 t;\nmbarrier.arrive.shared.b64 t, [%0];\n}" ::"r"(barrier)
      : "memory");
}

/// Predicated: lanes that don't arrive stay with those that do.
GROK_DEVICE void mbarrierArriveIf(bool arrives, uint32_t barrier) {
  asm volatile("{\n.reg .b64 t;\n.reg .pred p;\nsetp.ne.u32 p, %1, 0;\n"
               "@p mbarrier.arrive.shared.b64 t, [%0];\n}" ::"r"(barrier),
               "r"(uint32_t(arrives))
               : "memory");
}

/// True when the phase with this parity has completed. Without a suspend-time
/// hint: with one, lanes that wait for different barriers leave the warp.
template <unsigned Sm>
GROK_DEVICE bool mbarrierTest(uint32_t barrier, uint32_t parity) {
  uint32_t done;
  if constexpr (Sm >= 90)
    asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 "
                 "p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
                 : "=r"(done)
                 : "r"(barrier), "r"(parity)
                 : "memory");
  else
    asm volatile("{\n.reg .pred p;\nmbarrier.test_wait.parity.shared.b64 p, "
                 "[%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
                 : "=r"(done)
                 : "r"(barrier), "r"(parity)
                 : "memory");
  return done != 0;
}

/// sm_90: the barrier expects this many bytes of bulk copies in its current
/// phase, and one arrival less.
GROK_DEVICE void mbarrierExpect(uint32_t barrier, uint32_t bytes) {
  asm volatile(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier),
      "r"(bytes)
      : "memory");
}

/// sm_90: one thread copies `bytes` (a multiple of 16) from global to shared
/// memory.
GROK_DEVICE void bulkCopy(uint32_t shared, const void *global, uint32_t bytes,
                          uint32_t barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::"
               "bytes [%0], [%1], %2, [%3];" ::"r"(shared),
               "l"(global), "r"(bytes), "r"(barrier)
               : "memory");
}

/// sm_90: how L2 treats what is read once: it gives those lines up before all
/// others.
GROK_DEVICE uint64_t evictFirstPolicy() {
  uint64_t policy;
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;"
               : "=l"(policy));
  return policy;
}
/// sm_90: what it does without a policy.
GROK_DEVICE uint64_t evictNormalPolicy() {
  uint64_t policy;
  asm volatile("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;"
               : "=l"(policy));
  return policy;
}

/// The same copy, through L2 by a policy.
GROK_DEVICE void bulkCopy(uint32_t shared, const void *global, uint32_t bytes,
                          uint32_t barrier, uint64_t policy) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::"
               "bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;" ::"r"(shared),
               "l"(global), "r"(bytes), "r"(barrier), "l"(policy)
               : "memory");
}

/// sm_90: brings `bytes` (a multiple of 16) of global memory into L2.
GROK_DEVICE void fetchBulk(const void *global, uint32_t bytes) {
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(global),
               "r"(bytes)
               : "memory");
}

/// sm_90: one thread copies `bytes` (a multiple of 16) from this block's shared
/// memory to another's of the cluster, counted on a barrier there.
GROK_DEVICE void bulkCopyRemote(uint32_t remote, uint32_t shared,
                                uint32_t bytes, uint32_t remoteBarrier) {
  asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_"
               "tx::bytes [%0], [%1], %2, [%3];" ::"r"(remote),
               "r"(shared), "r"(bytes), "r"(remoteBarrier)
               : "memory");
}

/// sm_90: orders ordinary accesses to global memory and bulk copies of it.
GROK_DEVICE void fenceAsyncProxy() {
  asm volatile("fence.proxy.async.global;" ::: "memory");
}

/// sm_90: the same of shared memory.
GROK_DEVICE void fenceAsyncProxyShared() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/// sm_80: one thread copies 16 bytes, past L1.
GROK_DEVICE void copyAsync16(uint32_t shared, const void *global) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared),
               "l"(global)
               : "memory");
}

/// sm_80: an arrival on the barrier when this thread's copies so far are
/// complete.
GROK_DEVICE void copyAsyncArrive(uint32_t barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(barrier)
               : "memory");
}

} // namespace grok::ptx
