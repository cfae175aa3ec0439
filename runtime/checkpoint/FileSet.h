// The tensors of a checkpoint by their stored names, whatever the files'
// arrangement and container.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/checkpoint/MappedFile.h"
#include "runtime/checkpoint/Messages.h"
#include "runtime/checkpoint/SafetensorsHeader.h"
#include "runtime/checkpoint/StoredTensor.h"

namespace grok {

struct NamedTensor {
  std::string name;
  StoredTensor tensor;
};

struct FileSet {
  std::string directory;
  std::string index; // path of the index, if the arrangement has one
  std::vector<MappedFile> files;
  std::map<std::string, StoredTensor> tensors;
  /// Messages for tensors of a name that there is already, and for those that
  /// lie in another file than the index says. openFileSet fails on them in the
  /// end, so that all are known.
  Listing misplaced;
  std::vector<std::string> notes; // oddities that are no errors
  std::string layout;             // what the files are, for people
  /// What GGUF files state of the model themselves, by key; lists without what
  /// is in them.
  std::map<std::string, double> numbers;
  std::map<std::string, std::string> texts;
  std::set<std::string> lists;

  /// Maps a file of the directory; its index is files.size() - 1.
  absl::Status map(const std::string &name);
  /// The same for a safetensors file, whose entries come back.
  absl::StatusOr<std::vector<TensorEntry>> add(const std::string &name);
  /// Enters a tensor. False: there is one of the name, and this one is
  /// misplaced.
  bool insert(const std::string &name, StoredTensor tensor);
  /// Enters a whole tensor of the safetensors file that was added last.
  bool insert(const TensorEntry &entry);
  /// Such a tensor, not entered.
  NamedTensor tensorOf(const TensorEntry &entry) const;
};

/// Opens the checkpoint, a directory, a GGUF file or a part of one, and checks
/// all that can be checked without knowing the model. NotFound or
/// InvalidArgument with the file and a remedy; `set` has what was found until
/// then.
absl::Status openFileSet(const std::string &path, FileSet &set);

// The arrangements, for openFileSet. `names` are the directory's entries.
absl::Status openShards(FileSet &set, const std::string &indexName);
absl::Status openTensorParallel(FileSet &set,
                                const std::vector<std::string> &names);
absl::Status openJax(FileSet &set, const std::vector<std::string> &names);
absl::Status openGguf(FileSet &set, const std::vector<std::string> &names);
/// The files of the checkpoint that a GGUF file is, or is a part of.
std::vector<std::string> ggufNamed(const std::string &name,
                                   const std::vector<std::string> &names);
/// The tensor that one of ckpt-0's files holds. `index` is the file's in
/// FileSet::files, `tensor` the parameter's name.
absl::StatusOr<StoredTensor> readJax(std::span<const uint8_t> file,
                                     const std::string &path, uint32_t index,
                                     const std::string &tensor);
/// The tensors of one of PyTorch's files, each inside of it.
absl::StatusOr<std::vector<NamedTensor>>
readTorch(std::span<const uint8_t> file, const std::string &path,
          uint32_t index);
/// Maps one, whose tensors come back.
absl::StatusOr<std::vector<NamedTensor>> addTorch(FileSet &set,
                                                  const std::string &name);
/// Whether a file belongs to a tensor-parallel set, well named or not.
bool isTensorParallelName(const std::string &name);
/// Whether a file is one of xAI's ckpt-0.
bool isJaxName(const std::string &name);

} // namespace grok
