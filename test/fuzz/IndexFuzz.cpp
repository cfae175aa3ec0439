// The index of a checkpoint in shards, as safetensors' and as PyTorch's.
#include "absl/strings/str_cat.h"
#include "runtime/checkpoint/ShardedIndex.h"
#include "test/fuzz/Fuzz.h"

using namespace grok;
using namespace grok::fuzz;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  for (const char *end : {".safetensors.index.json", ".bin.index.json"}) {
    absl::StatusOr<ShardIndex> index =
        parseShardIndex(textOf(data, size), absl::StrCat(kFile, end));
    if (!index.ok()) {
      requireRefusal(index.status());
      continue;
    }
    require(!index->weights.empty(), "an index lists tensors");
    for (const std::string &file : index->files)
      require(file.find_first_of(std::string_view("/\\\0", 3)) == file.npos &&
                  file != "." && file != ".." && file.ends_with(index->end),
              "a shard is a plain file of the index's kind");
  }
  return 0;
}
