// sm_90a: matrix products of a warpgroup, asynchronous, with the weights in
// registers and the activations in shared memory.
#pragma once

#include "codegen/Device/ptx/threads.h"

namespace grok::ptx {

/// Before the first product, and after registers that one reads or adds to were
/// written.
GROK_DEVICE void wgmmaFence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
GROK_DEVICE void wgmmaCommit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
/// Waits until at most kPending of the groups that were committed are at work.
template <uint32_t kPending> GROK_DEVICE void wgmmaWait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}
/// By every warp of a warpgroup: its threads have kCount registers from here
/// on, fewer or more than before. More are waited for.
template <uint32_t kCount> GROK_DEVICE void releaseRegisters() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kCount));
}
template <uint32_t kCount> GROK_DEVICE void claimRegisters() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kCount));
}

/// The value is one that a product has left and is not read before; or one that
/// it will take, and is in its register before the fence.
GROK_DEVICE void settled(float &v) { asm volatile("" : "+f"(v)::"memory"); }
GROK_DEVICE void settled(uint32_t &v) { asm volatile("" : "+r"(v)::"memory"); }

/// The same values in other registers. `zero` is what ptxas does not know to be
/// zero.
GROK_DEVICE U4 copied(const U4 &v, uint32_t zero) {
  U4 c;
  asm volatile("xor.b32 %0, %4, %8;\n"
               "xor.b32 %1, %5, %8;\n"
               "xor.b32 %2, %6, %8;\n"
               "xor.b32 %3, %7, %8;"
               : "=r"(c.x), "=r"(c.y), "=r"(c.z), "=r"(c.w)
               : "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w), "r"(zero));
  return c;
}

/// Rows of 64 values of 16 bits, eight by eight in 1024 bytes, a row's groups
/// of 16 bytes in the order group ^ row % 8 (the 128-byte swizzle). `shared` is
/// a multiple of 1024, but for the 32 bytes a step of 16 values.
GROK_DEVICE uint64_t wgmmaOperand(uint32_t shared) {
  constexpr uint64_t kSwizzle128 = 1ull << 62, kRowGroup = 1024 >> 4;
  return kSwizzle128 | kRowGroup << 32 | 1ull << 16 | (shared & 0x3ffff) >> 4;
}

#define GROK_D4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define GROK_D16(i) GROK_D4(i), GROK_D4(i + 4), GROK_D4(i + 8), GROK_D4(i + 12)
#define GROK_WGMMA_OF(columns, type, registers, a0, a1, a2, a3, operand, ...)  \
  asm volatile("{\n.reg .pred p;\nsetp.eq.u32 p, 0, 0;\n"                      \
               "wgmma.mma_async.sync.aligned.m64n" columns "k16.f32." type     \
               "." type " {" registers "}, {" a0 ", " a1 ", " a2 ", " a3       \
               "}, " operand ", p, 1, 1, 0;\n}"                                \
               : __VA_ARGS__                                                   \
               : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "l"(b)                \
               : "memory")
#define GROK_WGMMA(columns, ...)                                               \
  {                                                                            \
    if constexpr (BF16)                                                        \
      GROK_WGMMA_OF(columns, "bf16", __VA_ARGS__);                             \
    else                                                                       \
      GROK_WGMMA_OF(columns, "f16", __VA_ARGS__);                              \
  }
// clang-format off
#define GROK_R0 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#define GROK_R16 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define GROK_R32 "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
#define GROK_R48 "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define GROK_R64 "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79"
#define GROK_R80 "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define GROK_R96 "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111"
#define GROK_R112 "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define GROK_H64 "%64, %65, %66, %67, %68, %69, %70, %71"
#define GROK_H80 "%80, %81, %82, %83, %84, %85, %86, %87"
#define GROK_H96 "%96, %97, %98, %99, %100, %101, %102, %103"
#define GROK_H112 "%112, %113, %114, %115, %116, %117, %118, %119"
// clang-format on

/// d += a b: a is 64 x 16, 16 rows a warp in the register order of
/// mma.m16n8k16, b 16 x kColumns. d[4 j ..] is the warp's 16 x 8 part of
/// columns 8 j ..
template <bool BF16, uint32_t kColumns, uint32_t kSize>
GROK_DEVICE void wgmma(float (&d)[kSize], const U4 &a, uint64_t b) {
  static_assert(kColumns / 2 <= kSize);
  if constexpr (kColumns == 32)
    GROK_WGMMA("32", GROK_R0, "%16", "%17", "%18", "%19", "%20", GROK_D16(0))
  else if constexpr (kColumns == 64)
    GROK_WGMMA("64", GROK_R0 ", " GROK_R16, "%32", "%33", "%34", "%35", "%36",
               GROK_D16(0), GROK_D16(16))
  else if constexpr (kColumns == 128)
    GROK_WGMMA("128", GROK_R0 ", " GROK_R16 ", " GROK_R32 ", " GROK_R48, "%64",
               "%65", "%66", "%67", "%68", GROK_D16(0), GROK_D16(16),
               GROK_D16(32), GROK_D16(48))
  else if constexpr (kColumns == 144)
    GROK_WGMMA("144",
               GROK_R0 ", " GROK_R16 ", " GROK_R32 ", " GROK_R48 ", " GROK_H64,
               "%72", "%73", "%74", "%75", "%76", GROK_D16(0), GROK_D16(16),
               GROK_D16(32), GROK_D16(48), GROK_D4(64), GROK_D4(68))
  else if constexpr (kColumns == 176)
    GROK_WGMMA("176",
               GROK_R0 ", " GROK_R16 ", " GROK_R32 ", " GROK_R48 ", " GROK_R64
                       ", " GROK_H80,
               "%88", "%89", "%90", "%91", "%92", GROK_D16(0), GROK_D16(16),
               GROK_D16(32), GROK_D16(48), GROK_D16(64), GROK_D4(80),
               GROK_D4(84))
  else if constexpr (kColumns == 208)
    GROK_WGMMA("208",
               GROK_R0 ", " GROK_R16 ", " GROK_R32 ", " GROK_R48 ", " GROK_R64
                       ", " GROK_R80 ", " GROK_H96,
               "%104", "%105", "%106", "%107", "%108", GROK_D16(0),
               GROK_D16(16), GROK_D16(32), GROK_D16(48), GROK_D16(64),
               GROK_D16(80), GROK_D4(96), GROK_D4(100))
  else if constexpr (kColumns == 240)
    GROK_WGMMA("240",
               GROK_R0 ", " GROK_R16 ", " GROK_R32 ", " GROK_R48 ", " GROK_R64
                       ", " GROK_R80 ", " GROK_R96 ", " GROK_H112,
               "%120", "%121", "%122", "%123", "%124", GROK_D16(0),
               GROK_D16(16), GROK_D16(32), GROK_D16(48), GROK_D16(64),
               GROK_D16(80), GROK_D16(96), GROK_D4(112), GROK_D4(116))
  else if constexpr (kColumns == 256)
    GROK_WGMMA("256",
               GROK_R0 ", " GROK_R16 ", " GROK_R32 ", " GROK_R48 ", " GROK_R64
                       ", " GROK_R80 ", " GROK_R96 ", " GROK_R112,
               "%128", "%129", "%130", "%131", "%132", GROK_D16(0),
               GROK_D16(16), GROK_D16(32), GROK_D16(48), GROK_D16(64),
               GROK_D16(80), GROK_D16(96), GROK_D16(112))
  else
    static_assert(kColumns == 32, "a number of columns that no product has");
}

#undef GROK_H64
#undef GROK_H80
#undef GROK_H96
#undef GROK_H112
#undef GROK_R0
#undef GROK_R16
#undef GROK_R32
#undef GROK_R48
#undef GROK_R64
#undef GROK_R80
#undef GROK_R96
#undef GROK_R112
#undef GROK_WGMMA
#undef GROK_WGMMA_OF
#undef GROK_D16
#undef GROK_D4

} // namespace grok::ptx
