// Which instruction sets this machine has.
#include "runtime/cpu/Kernels.h"

#include "runtime/bundle/Quantized.h"

namespace grok::cpu {
namespace baseline {
extern const Kernels kernels;
}
#ifdef __x86_64__
namespace avx2 {
extern const Kernels kernels;
}
namespace avx512 {
extern const Kernels kernels;
}
#endif

uint32_t permutedIndex(Storage storage, uint32_t n, uint32_t f) {
  const Quantization q = storage == Storage::kInt8  ? Quantization::kInt8
                         : storage == Storage::kFp8 ? Quantization::kFp8
                                                    : Quantization::kNone;
  uint32_t place = streamPlace(q, n, f), in = place % kTileK;
  // fragmentElement of row 0 is the place among a row's 32 elements.
  uint32_t element =
      q == Quantization::kNone ? fragmentElement(0, in) : quantizedElement(in);
  if (storage == Storage::kBF16)
    element = element % 2 * 16 + element / 2;
  return place - in + element;
}

std::span<const Kernels *const> supportedKernels() {
  static constexpr const Kernels *kAll[] = {
#ifdef __x86_64__
      &avx512::kernels, &avx2::kernels,
#endif
      &baseline::kernels};
  static const size_t unsupported = [] {
#ifdef __x86_64__
    __builtin_cpu_init();
    return __builtin_cpu_supports("x86-64-v4")   ? 0
           : __builtin_cpu_supports("x86-64-v3") ? 1
                                                 : 2;
#else
    return 0;
#endif
  }();
  return std::span(kAll).subspan(unsupported);
}

const Kernels &bestKernels() { return *supportedKernels().front(); }

} // namespace grok::cpu
