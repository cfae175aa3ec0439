// A GGUF file: metadata, tensor infos, and data that they describe.
#include "runtime/checkpoint/GgufHeader.h"
#include "test/fuzz/Places.h"

using namespace grok;
using namespace grok::fuzz;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  absl::StatusOr<GgufHeader> header = parseGguf({data, size}, kFile);
  if (!header.ok()) {
    requireRefusal(header.status());
    return 0;
  }
  for (const GgufTensor &t : header->tensors) {
    require(t.begin <= t.end && t.end <= size, "a tensor lies inside its file");
    StoredTensor stored;
    stored.type = t.type;
    stored.coding = t.coding;
    stored.shape = t.shape;
    stored.parts = {{0, t.begin}};
    requireInside(stored, size);
  }
  return 0;
}
