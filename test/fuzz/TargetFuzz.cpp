// Target descriptions.
#include "compiler/Target/Target.h"
#include "test/fuzz/Fuzz.h"

using namespace grok;
using namespace grok::fuzz;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  absl::StatusOr<Target> target = parseTarget(textOf(data, size), kFile);
  if (!target.ok()) {
    requireRefusal(target.status());
    return 0;
  }
  absl::StatusOr<Target> again = parseTarget(target->toJson(), kFile);
  require(again.ok() && *again == *target,
          "a target survives its canonical form");
  return 0;
}
