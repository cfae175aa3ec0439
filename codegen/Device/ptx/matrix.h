// Operands of matrix products out of shared memory, and what the prefill
// kernels need beside them: one function an instruction.
#pragma once

#include "codegen/Device/ptx/threads.h"

namespace grok::ptx {

/// Four 8 x 8 matrices of 16-bit values; lane l gives the address of row l % 8
/// of matrix l / 8, and gets elements (row l / 4, columns l % 4 * 2 + {0, 1})
/// of each.
GROK_DEVICE U4 loadMatrices(uint32_t address) {
  U4 v;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, "
               "[%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "r"(address)
               : "memory");
  return v;
}

/// The same matrices transposed.
GROK_DEVICE U4 loadMatricesTransposed(uint32_t address) {
  U4 v;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, "
               "%3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "r"(address)
               : "memory");
  return v;
}

/// One thread copies the first `bytes` of 16 past L1, and writes zeros for the
/// others.
GROK_DEVICE void copyAsync16(uint32_t shared, const void *global,
                             uint32_t bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared),
               "l"(global), "r"(bytes)
               : "memory");
}
GROK_DEVICE void copyAsyncCommit() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
/// Waits until at most kPending of the thread's groups are on their way.
template <uint32_t kPending> GROK_DEVICE void copyAsyncWait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

/// Lanes among `members`, of which this is one, that have the same value.
GROK_DEVICE uint32_t matchAny(uint32_t members, uint32_t value) {
  uint32_t r;
  asm volatile("match.any.sync.b32 %0, %1, %2;"
               : "=r"(r)
               : "r"(value), "r"(members));
  return r;
}

} // namespace grok::ptx
