// The kernels for the compiler's baseline.
#define GROK_ISA baseline
#define GROK_ISA_NAME "baseline"
#include "runtime/cpu/Kernels.inc"
