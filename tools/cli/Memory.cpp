#include "tools/cli/Memory.h"

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <unistd.h>

#include "runtime/bundle/Temporaries.h"
#include "tools/cli/Printable.h"

namespace grok::cli {
namespace {

[[noreturn]] void terminated() {
  try {
    if (std::current_exception())
      throw;
  } catch (const std::bad_alloc &) {
    exitWithoutMemory();
  } catch (...) {
  }
  std::abort();
}

} // namespace

/// What is printed already stays in its buffer: it is not whole.
void exitWithoutMemory() {
  std::fprintf(stderr, "error: %s\n", kOutOfMemory);
  removeTemporaries(writePrintable);
  ::_exit(EXIT_FAILURE);
}

void explainTermination() { std::set_terminate(terminated); }

} // namespace grok::cli
