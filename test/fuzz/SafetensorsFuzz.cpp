// A safetensors file: the length, the header, and data that it describes.
#include "runtime/checkpoint/SafetensorsHeader.h"
#include "test/fuzz/Fuzz.h"

using namespace grok;
using namespace grok::fuzz;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  absl::StatusOr<std::vector<TensorEntry>> entries =
      parseSafetensors({data, size}, kFile);
  if (!entries.ok()) {
    requireRefusal(entries.status());
    return 0;
  }
  uint64_t at = entries->empty() ? size : entries->front().begin;
  for (const TensorEntry &entry : *entries) {
    require(entry.begin == at && entry.end >= entry.begin,
            "tensors follow one another");
    unsigned __int128 bits = elementBits(entry.type);
    for (uint64_t length : entry.shape)
      bits *= length;
    require(bits == (unsigned __int128)(entry.end - entry.begin) * 8,
            "a tensor has the bytes of its shape");
    at = entry.end;
  }
  require(at == size, "tensors fill the file");
  return 0;
}
