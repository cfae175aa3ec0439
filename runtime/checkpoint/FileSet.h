// The tensors of a checkpoint directory by their stored names, whatever the
// files' arrangement: one file, shards with an index, tensor-parallel slices.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/checkpoint/MappedFile.h"
#include "runtime/checkpoint/SafetensorsHeader.h"

namespace grok {

/// A tensor as the files hold it: whole, or in equal slices along one
/// dimension.
struct StoredTensor {
  struct Part {
    uint32_t file = 0;   // index into FileSet::files
    uint64_t offset = 0; // bytes from the start of the file
    bool operator==(const Part &) const = default;
  };
  ElementType type = ElementType::kBF16;
  std::vector<uint64_t> shape; // of the whole
  std::vector<Part> parts;     // in rank order
  unsigned splitDimension = 0; // where there are several parts
};

struct FileSet {
  std::string directory;
  std::string index; // path of the index, if the arrangement has one
  std::vector<MappedFile> files;
  std::map<std::string, StoredTensor> tensors;
  std::vector<std::string> notes; // oddities that are no errors

  /// Maps and checks a file of the directory; its entries come back, its index
  /// is files.size() - 1.
  absl::StatusOr<std::vector<TensorEntry>> add(const std::string &name);
  /// Enters a whole tensor of the file that was added last. InvalidArgument if
  /// another file has the name.
  absl::Status insert(const TensorEntry &entry);
};

/// Opens the directory's checkpoint and checks all that can be checked without
/// knowing the model. NotFound or InvalidArgument with the file and a remedy.
absl::StatusOr<FileSet> openFileSet(const std::string &directory);

// The arrangements, for openFileSet. `names` are the directory's entries.
absl::Status openShards(FileSet &set, const std::string &indexName);
absl::Status openTensorParallel(FileSet &set,
                                const std::vector<std::string> &names);
/// Whether a file belongs to a tensor-parallel set, well named or not.
bool isTensorParallelName(const std::string &name);

} // namespace grok
