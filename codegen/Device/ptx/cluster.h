// sm_90: blocks of a cluster, which read and write each other's shared memory.
// Addresses are 32-bit shared addresses.
#pragma once

#include "codegen/Device/ptx/threads.h"

namespace grok::ptx {

/// This block's number in its cluster.
GROK_DEVICE uint32_t clusterRank() {
  uint32_t r;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
  return r;
}

/// Barrier among all threads of the cluster; orders their accesses.
GROK_DEVICE void clusterSync() {
  asm volatile("barrier.cluster.arrive.release;\n"
               "barrier.cluster.wait.acquire;" ::
                   : "memory");
}

/// The address in the cluster's window of what lies at `shared` in block
/// `rank`.
GROK_DEVICE uint32_t clusterAddress(uint32_t shared, uint32_t rank) {
  uint32_t r;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
               : "=r"(r)
               : "r"(shared), "r"(rank));
  return r;
}

/// An arrival on a barrier of any block of the cluster. It orders nothing but
/// what this thread has read of its own block's shared memory: more would wait
/// for traffic in flight.
GROK_DEVICE void clusterArrive(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(barrier)
               : "memory");
}

/// One thread copies `bytes` (a multiple of 16) from global memory to the same
/// place of every block in `blocks` (a bit each), and completes on the barrier
/// at the same place there.
GROK_DEVICE void clusterCopy(uint32_t shared, const void *global,
                             uint32_t bytes, uint32_t barrier,
                             uint16_t blocks) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::"
      "bytes.multicast::cluster [%0], [%1], %2, [%3], %4;" ::"r"(shared),
      "l"(global), "r"(bytes), "r"(barrier), "h"(blocks)
      : "memory");
}

} // namespace grok::ptx
