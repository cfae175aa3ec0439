// Which instruction sets this machine has.
#include "runtime/cpu/Kernels.h"

#include "runtime/bundle/WeightLayout.h"

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

uint32_t permutedIndex(DType dtype, uint32_t f) {
  // fragmentElement of row 0 is the place among a row's 32 elements.
  uint32_t element = fragmentElement(0, f);
  return dtype == DType::kBF16 ? (element % 2) * 16 + element / 2 : element;
}

std::vector<const Kernels *> supportedKernels() {
  std::vector<const Kernels *> found;
#ifdef __x86_64__
  __builtin_cpu_init();
  if (__builtin_cpu_supports("x86-64-v4"))
    found.push_back(&avx512::kernels);
  if (__builtin_cpu_supports("x86-64-v3"))
    found.push_back(&avx2::kernels);
#endif
  found.push_back(&baseline::kernels);
  return found;
}

const Kernels &bestKernels() {
  static const Kernels &best = *supportedKernels().front();
  return best;
}

} // namespace grok::cpu
