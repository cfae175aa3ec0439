// Global and shared memory accesses with an explicit meaning: one function an
// instruction.
#pragma once

#include "codegen/Device/ptx/threads.h"

namespace grok::ptx {

/// Several float32 in one access.
template <uint32_t kCount> struct alignas(kCount * 4) Floats {
  float v[kCount];
};
/// The same of 32-bit words.
template <uint32_t kCount> struct alignas(kCount * 4) Words {
  uint32_t v[kCount];
};
/// kCount neighbouring values, aligned to their size.
template <uint32_t kCount>
GROK_DEVICE void loadFloats(const float *p, float (&v)[kCount]) {
  auto all = *(const Floats<kCount> *)p;
#pragma unroll
  for (uint32_t i = 0; i < kCount; ++i)
    v[i] = all.v[i];
}
template <uint32_t kCount>
GROK_DEVICE void storeFloats(float *p, const float (&v)[kCount]) {
  Floats<kCount> all;
#pragma unroll
  for (uint32_t i = 0; i < kCount; ++i)
    all.v[i] = v[i];
  *(Floats<kCount> *)p = all;
}

/// 16 bytes that are not written meanwhile, and that no one near reads again;
/// as they were without `asks`.
GROK_DEVICE void loadOnce16If(bool asks, const void *p, U4 &v) {
  asm volatile("{\n.reg .pred p;\nsetp.ne.u32 p, %5, 0;\n"
               "@p ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, "
               "[%4];\n}"
               : "+r"(v.x), "+r"(v.y), "+r"(v.z), "+r"(v.w)
               : "l"(p), "r"(uint32_t(asks)));
}

/// The value before.
GROK_DEVICE uint32_t fetchAdd(uint32_t *p, uint32_t v) {
  uint32_t before;
  asm volatile("atom.relaxed.gpu.global.add.u32 %0, [%1], %2;"
               : "=r"(before)
               : "l"(p), "r"(v)
               : "memory");
  return before;
}

/// A hand-over word must be one access: PTX treats a vector access as separate
/// scalar ones, a 64-bit scalar is atomic.
GROK_DEVICE uint64_t loadRelaxed(const uint64_t *p) {
  uint64_t v;
  asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];"
               : "=l"(v)
               : "l"(p)
               : "memory");
  return v;
}

/// Two words, each one access; as they were without `asks`.
GROK_DEVICE void loadRelaxedPairIf(bool asks, const uint64_t *p,
                                   uint64_t (&word)[2]) {
  asm volatile("{\n.reg .pred p;\nsetp.ne.u32 p, %3, 0;\n"
               "@p ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];\n}"
               : "+l"(word[0]), "+l"(word[1])
               : "l"(p), "r"(uint32_t(asks))
               : "memory");
}

GROK_DEVICE void storeRelaxed(uint64_t *p, uint64_t v) {
  asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(p), "l"(v)
               : "memory");
}

/// Neighbouring values in one access, aligned to their size; zero without
/// `there`. Issued where it stands, so that they are on their way while the
/// thread waits for something else.
GROK_DEVICE void loadGlobalIf(bool there, const float *p, float (&v)[2]) {
  asm volatile("{\n.reg .pred p;\nsetp.ne.u32 p, %3, 0;\n"
               "mov.f32 %0, 0f00000000;\nmov.f32 %1, 0f00000000;\n"
               "@p ld.global.v2.f32 {%0, %1}, [%2];\n}"
               : "=&f"(v[0]), "=&f"(v[1])
               : "l"(p), "r"(uint32_t(there))
               : "memory");
}
GROK_DEVICE void loadGlobalIf(bool there, const float *p, float (&v)[4]) {
  asm volatile("{\n.reg .pred p;\nsetp.ne.u32 p, %5, 0;\n"
               "mov.f32 %0, 0f00000000;\nmov.f32 %1, 0f00000000;\n"
               "mov.f32 %2, 0f00000000;\nmov.f32 %3, 0f00000000;\n"
               "@p ld.global.v4.f32 {%0, %1, %2, %3}, [%4];\n}"
               : "=&f"(v[0]), "=&f"(v[1]), "=&f"(v[2]), "=&f"(v[3])
               : "l"(p), "r"(uint32_t(there))
               : "memory");
}

/// Has the line fetched as near as it can be.
GROK_DEVICE void prefetchL1(const void *p) {
  asm volatile("prefetch.global.L1 [%0];" ::"l"(p));
}

GROK_DEVICE uint32_t exchange(uint32_t *p, uint32_t v) {
  uint32_t old;
  asm volatile("atom.acq_rel.gpu.global.exch.b32 %0, [%1], %2;"
               : "=r"(old)
               : "l"(p), "r"(v)
               : "memory");
  return old;
}

GROK_DEVICE uint32_t compareExchangeSystem(uint32_t *p, uint32_t expected,
                                           uint32_t v) {
  uint32_t old;
  asm volatile("atom.acq_rel.sys.global.cas.b32 %0, [%1], %2, %3;"
               : "=r"(old)
               : "l"(p), "r"(expected), "r"(v)
               : "memory");
  return old;
}

GROK_DEVICE uint32_t loadAcquireSystem(const uint32_t *p) {
  uint32_t v;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];"
               : "=r"(v)
               : "l"(p)
               : "memory");
  return v;
}

GROK_DEVICE void storeReleaseSystem(uint32_t *p, uint32_t v) {
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(p), "r"(v)
               : "memory");
}

/// Orders this thread's accesses (and what it has seen of others') for the
/// whole GPU. It waits for traffic in flight: once a step, never inside a
/// layer.
GROK_DEVICE void fenceGpu() { asm volatile("fence.acq_rel.gpu;" ::: "memory"); }

GROK_DEVICE U4 loadShared16(uint32_t address) {
  U4 v;
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "r"(address)
               : "memory");
  return v;
}

GROK_DEVICE void storeShared(uint32_t address, uint32_t v) {
  asm volatile("st.shared.u32 [%0], %1;" ::"r"(address), "r"(v) : "memory");
}

GROK_DEVICE void storeShared16(uint32_t address, uint16_t v) {
  asm volatile("st.shared.u16 [%0], %1;" ::"r"(address), "h"(v) : "memory");
}

// The forms with a condition are predicated: lanes that don't take part stay
// with the others, where a branch would part them.

/// 32-bit address of what lies in shared memory.
GROK_DEVICE uint32_t sharedAddress(const void *p) {
  return uint32_t(
      (__UINTPTR_TYPE__)(__attribute__((address_space(3))) const void *)p);
}

/// Zero without `there`.
GROK_DEVICE U4 loadShared16If(bool there, uint32_t address) {
  U4 v;
  asm volatile("{\n.reg .pred p;\nsetp.ne.u32 p, %5, 0;\n"
               "mov.u32 %0, 0;\nmov.u32 %1, 0;\nmov.u32 %2, 0;\n"
               "mov.u32 %3, 0;\n"
               "@p ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];\n}"
               : "=&r"(v.x), "=&r"(v.y), "=&r"(v.z), "=&r"(v.w)
               : "r"(address), "r"(uint32_t(there))
               : "memory");
  return v;
}

/// 16 bits; zero without `there`.
GROK_DEVICE uint32_t loadSharedHalfIf(bool there, uint32_t address) {
  uint16_t v;
  asm volatile("{\n.reg .pred p;\nsetp.ne.u32 p, %2, 0;\n"
               "mov.u16 %0, 0;\n@p ld.shared.u16 %0, [%1];\n}"
               : "=&h"(v)
               : "r"(address), "r"(uint32_t(there))
               : "memory");
  return v;
}

/// Zero without `there`.
GROK_DEVICE float loadSharedFloatIf(bool there, uint32_t address) {
  float v;
  asm volatile("{\n.reg .pred p;\nsetp.ne.u32 p, %2, 0;\n"
               "mov.f32 %0, 0f00000000;\n@p ld.shared.f32 %0, [%1];\n}"
               : "=&f"(v)
               : "r"(address), "r"(uint32_t(there))
               : "memory");
  return v;
}

GROK_DEVICE void storeSharedFloatIf(bool there, uint32_t address, float v) {
  asm volatile("{\n.reg .pred p;\nsetp.ne.u32 p, %2, 0;\n"
               "@p st.shared.f32 [%0], %1;\n}" ::"r"(address),
               "f"(v), "r"(uint32_t(there))
               : "memory");
}

/// kCount float32 values, by 16 bytes where they are aligned to them.
template <uint32_t kCount>
GROK_DEVICE void loadSharedFloats(const float *p, float (&v)[kCount]) {
  if constexpr (kCount % 4 == 0) {
#pragma unroll
    for (uint32_t i = 0; i < kCount; i += 4) {
      U4 word = loadShared16(sharedAddress(p + i));
      v[i] = __builtin_bit_cast(float, word.x);
      v[i + 1] = __builtin_bit_cast(float, word.y);
      v[i + 2] = __builtin_bit_cast(float, word.z);
      v[i + 3] = __builtin_bit_cast(float, word.w);
    }
  } else {
#pragma unroll
    for (uint32_t i = 0; i < kCount; ++i)
      v[i] = p[i];
  }
}

GROK_DEVICE void storeSharedPair(uint32_t address, float x, float y) {
  asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(address), "f"(x), "f"(y)
               : "memory");
}

GROK_DEVICE void loadSharedWords(uint32_t address, uint32_t (&v)[4]) {
  U4 all = loadShared16(address);
  v[0] = all.x;
  v[1] = all.y;
  v[2] = all.z;
  v[3] = all.w;
}

GROK_DEVICE void loadSharedWords(uint32_t address, uint32_t (&v)[2]) {
  asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];"
               : "=r"(v[0]), "=r"(v[1])
               : "r"(address)
               : "memory");
}

/// Zero without `there`.
GROK_DEVICE void loadSharedWordsIf(bool there, uint32_t address,
                                   uint32_t (&v)[4]) {
  U4 all = loadShared16If(there, address);
  v[0] = all.x;
  v[1] = all.y;
  v[2] = all.z;
  v[3] = all.w;
}

GROK_DEVICE void loadSharedWordsIf(bool there, uint32_t address,
                                   uint32_t (&v)[2]) {
  asm volatile("{\n.reg .pred p;\nsetp.ne.u32 p, %3, 0;\n"
               "mov.u32 %0, 0;\nmov.u32 %1, 0;\n"
               "@p ld.shared.v2.u32 {%0, %1}, [%2];\n}"
               : "=&r"(v[0]), "=&r"(v[1])
               : "r"(address), "r"(uint32_t(there))
               : "memory");
}

GROK_DEVICE void loadSharedWords(uint32_t address, uint32_t (&v)[1]) {
  asm volatile("ld.shared.u32 %0, [%1];"
               : "=r"(v[0])
               : "r"(address)
               : "memory");
}

} // namespace grok::ptx
