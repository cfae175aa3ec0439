// sm_90: blocks of a cluster and each other's shared memory. Remote addresses
// are 32-bit addresses of the cluster's shared window.
#pragma once

#include "codegen/Device/ptx/threads.h"

namespace grok::ptx {

/// The block's place in its cluster.
GROK_DEVICE uint32_t clusterRank() {
  uint32_t r;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
  return r;
}

/// Where the block `rank` of the cluster has what this one has at `address`.
GROK_DEVICE uint32_t remoteAddress(uint32_t address, uint32_t rank) {
  uint32_t r;
  asm("mapa.shared::cluster.u32 %0, %1, %2;"
      : "=r"(r)
      : "r"(address), "r"(rank));
  return r;
}

/// All threads of the cluster; what they wrote before, to each other's shared
/// memory too, is seen after.
GROK_DEVICE void clusterSync() {
  asm volatile("barrier.cluster.arrive.release.aligned;\n"
               "barrier.cluster.wait.acquire.aligned;" ::
                   : "memory");
}

GROK_DEVICE void storeRemote(uint32_t remote, uint32_t v) {
  asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(remote), "r"(v)
               : "memory");
}

GROK_DEVICE void mbarrierArriveRemote(uint32_t remoteBarrier) {
  asm volatile(
      "mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(remoteBarrier)
      : "memory");
}

} // namespace grok::ptx
