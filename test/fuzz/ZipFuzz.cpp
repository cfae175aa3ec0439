// PyTorch's file as a whole: the archive, and the pickle in it.
#include "runtime/checkpoint/FileSet.h"
#include "test/fuzz/Places.h"

using namespace grok;
using namespace grok::fuzz;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  absl::StatusOr<std::vector<NamedTensor>> tensors =
      readTorch({data, size}, kFile, 0);
  if (!tensors.ok()) {
    requireRefusal(tensors.status());
    return 0;
  }
  for (const NamedTensor &t : *tensors)
    requireInside(t.tensor, size);
  return 0;
}
