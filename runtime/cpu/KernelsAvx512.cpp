// The kernels for x86-64-v4 (AVX-512).
#define GROK_ISA avx512
#define GROK_ISA_NAME "avx512"
#include "runtime/cpu/Kernels.inc"
