// The kernels for x86-64-v3 (AVX2, F16C).
#define GROK_ISA avx2
#define GROK_ISA_NAME "avx2"
#include "runtime/cpu/Kernels.inc"
