// GROK_VECTOR_CLONES: two versions of a loop, picked at load time: the
// baseline's vectors are four wide and lack the variable blends.
#pragma once

#if defined(__x86_64__) && defined(__ELF__)
#define GROK_VECTOR_CLONES                                                     \
  __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define GROK_VECTOR_CLONES
#endif
