// One of ckpt-0's pickles, as the table of the embedding and as a matrix.
#include "runtime/checkpoint/FileSet.h"
#include "test/fuzz/Places.h"

using namespace grok;
using namespace grok::fuzz;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  for (const char *name : {"language_model/in_out_embed/embeddings",
                           "transformer/decoder_layer_0/moe/linear/w"}) {
    absl::StatusOr<StoredTensor> tensor = readJax({data, size}, kFile, 0, name);
    if (tensor.ok())
      requireInside(*tensor, size);
    else
      requireRefusal(tensor.status());
  }
  return 0;
}
