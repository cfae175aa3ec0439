// Thread identity, barriers and shuffles: one function an instruction.
#pragma once

#include <stdint.h>

#define GROK_DEVICE inline __attribute__((always_inline))

namespace grok::ptx {

struct U4 {
  uint32_t x, y, z, w;
};

GROK_DEVICE uint32_t tid() { return __nvvm_read_ptx_sreg_tid_x(); }

GROK_DEVICE uint32_t ntid() { return __nvvm_read_ptx_sreg_ntid_x(); }
GROK_DEVICE uint32_t ctaid() { return __nvvm_read_ptx_sreg_ctaid_x(); }
GROK_DEVICE uint32_t nctaid() { return __nvvm_read_ptx_sreg_nctaid_x(); }

GROK_DEVICE uint32_t smid() {
  uint32_t r;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(r));
  return r;
}

/// Nanoseconds of a clock that all SMs share; ticks coarsely.
GROK_DEVICE uint64_t globaltimer() {
  uint64_t r;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(r));
  return r;
}

/// sm_90: true in one lane of the whole warp.
GROK_DEVICE bool elect() {
  uint32_t elected;
  asm volatile("{\n.reg .pred p;\nelect.sync _|p, 0xffffffff;\n"
               "selp.u32 %0, 1, 0, p;\n}"
               : "=r"(elected));
  return elected != 0;
}

/// The SM's cycle counter, its low half.
GROK_DEVICE uint32_t clock() {
  uint32_t r;
  asm volatile("mov.u32 %0, %%clock;" : "=r"(r));
  return r;
}

/// Leaves the SM to others for about so long.
GROK_DEVICE void sleep(uint32_t nanoseconds) {
  asm volatile("nanosleep.u32 %0;" ::"r"(nanoseconds));
}

/// Barrier `id` among `threads` threads of the block.
GROK_DEVICE void barSync(uint32_t id, uint32_t threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

GROK_DEVICE void warpSync() { asm volatile("bar.warp.sync -1;" ::: "memory"); }

GROK_DEVICE uint32_t ballot(bool p) {
  uint32_t r;
  asm volatile("{\n.reg .pred p;\nsetp.ne.u32 p, %1, 0;\nvote.sync.ballot.b32 "
               "%0, p, -1;\n}"
               : "=r"(r)
               : "r"(uint32_t(p)));
  return r;
}

/// v, which the optimiser can't compute again.
GROK_DEVICE uint32_t opaque(uint32_t v) {
  asm volatile("" : "+r"(v));
  return v;
}

/// sm_90: blocks of the next launch may take the place of those of this one
/// that end.
GROK_DEVICE void letNextLaunchStart() {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}
/// sm_90: until the launch before this one has ended and its stores are seen.
GROK_DEVICE void awaitLaunchBefore() {
  asm volatile("griddepcontrol.wait;" ::: "memory");
}

/// Whether p holds in every lane. A loop that ends by it keeps the warp
/// together; one that lanes leave one by one makes every later warp-wide
/// instruction slow.
GROK_DEVICE bool all(bool p) {
  uint32_t r;
  asm volatile("{\n.reg .pred p;\nsetp.ne.u32 p, %1, 0;\nvote.sync.all.pred "
               "p, p, -1;\nselp.u32 %0, 1, 0, p;\n}"
               : "=r"(r)
               : "r"(uint32_t(p)));
  return r != 0;
}

GROK_DEVICE uint32_t shuffleXor(uint32_t v, uint32_t mask) {
  uint32_t r;
  asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 31, -1;"
               : "=r"(r)
               : "r"(v), "r"(mask));
  return r;
}

GROK_DEVICE uint32_t shuffle(uint32_t v, uint32_t lane) {
  uint32_t r;
  asm volatile("shfl.sync.idx.b32 %0, %1, %2, 31, -1;"
               : "=r"(r)
               : "r"(v), "r"(lane));
  return r;
}

/// Largest and smallest v of the warp.
GROK_DEVICE uint32_t warpMax(uint32_t v) {
  uint32_t r;
  asm volatile("redux.sync.max.u32 %0, %1, -1;" : "=r"(r) : "r"(v));
  return r;
}
GROK_DEVICE uint32_t warpMin(uint32_t v) {
  uint32_t r;
  asm volatile("redux.sync.min.u32 %0, %1, -1;" : "=r"(r) : "r"(v));
  return r;
}

GROK_DEVICE float shuffle(float v, uint32_t lane) {
  return __builtin_bit_cast(float,
                            shuffle(__builtin_bit_cast(uint32_t, v), lane));
}

GROK_DEVICE float shuffleXor(float v, uint32_t mask) {
  return __builtin_bit_cast(float,
                            shuffleXor(__builtin_bit_cast(uint32_t, v), mask));
}

} // namespace grok::ptx
