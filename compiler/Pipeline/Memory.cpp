#include "compiler/Pipeline/Memory.h"

#include "llvm/Support/ErrorHandling.h"

namespace grok {

void endWithoutMemory(void (*end)()) {
  llvm::install_bad_alloc_error_handler(
      [](void *self, const char *, bool) {
        reinterpret_cast<void (*)()>(self)();
      },
      reinterpret_cast<void *>(end));
}

} // namespace grok
