// Which instruction sets this machine has.
#include "runtime/cpu/Kernels.h"

#include "runtime/bundle/TileLayout.h"

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

uint32_t permutedIndex(Storage storage, uint32_t f) {
  // fragmentElement of row 0 is the place among a row's 32 elements.
  uint32_t element = fragmentElement(0, f);
  return storage == Storage::kBF16 ? (element % 2) * 16 + element / 2 : element;
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
