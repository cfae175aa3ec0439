#include "runtime/checkpoint/FileSet.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/bundle/FileIO.h"
#include "runtime/checkpoint/Messages.h"

namespace grok {
namespace {

constexpr const char *kSingle = "model.safetensors";
constexpr const char *kTorchSingle = "pytorch_model.bin";
constexpr std::string_view kIndexEnd = ".safetensors.index.json";
constexpr std::string_view kTorchIndexEnd = ".bin.index.json";
constexpr std::string_view kGgufEnd = ".gguf";
constexpr const char *kJaxFolder = "ckpt-0";

bool isIndexName(const std::string &name) {
  return name.ends_with(kIndexEnd) || name.ends_with(kTorchIndexEnd);
}
bool isWeightName(const std::string &name) {
  return name.ends_with(".safetensors") || name.ends_with(".bin") ||
         name.ends_with(kGgufEnd) || isJaxName(name);
}

/// Whether a file of this name alone says what the checkpoint consists of.
bool isArrangement(const std::string &name) {
  return name == kSingle || name == kTorchSingle || isIndexName(name) ||
         name.ends_with(kGgufEnd) || isTensorParallelName(name) ||
         isJaxName(name);
}

absl::StatusOr<std::vector<std::string>>
listCheckpoint(const std::string &directory) {
  std::error_code error;
  if (std::filesystem::exists(directory, error) &&
      !std::filesystem::is_directory(directory, error))
    return absl::InvalidArgumentError(absl::StrCat(
        directory, ": found a file, expected a checkpoint directory or a .gguf "
                   "file; name the directory that the file is in"));
  absl::StatusOr<std::vector<std::string>> names = listDirectory(directory);
  if (absl::IsNotFound(names.status()))
    return absl::NotFoundError(absl::StrCat(
        directory, ": found nothing, expected a checkpoint directory"));
  if (!names.ok())
    return absl::InvalidArgumentError(
        absl::StrCat("cannot list the checkpoint directory ",
                     std::string(names.status().message())));
  return names;
}

/// What else lies there that looks like weights, to tell the user what is
/// wrong.
std::string remedyFor(const std::vector<std::string> &names) {
  auto has = [&](auto predicate) {
    return std::ranges::any_of(names, predicate);
  };
  if (has([](const std::string &n) {
        return n.starts_with("model-") && n.ends_with(".safetensors");
      }))
    return "; the shards' index is missing: add model.safetensors.index.json";
  if (has([](const std::string &n) {
        return n.starts_with("pytorch_model-") && n.ends_with(".bin");
      }))
    return "; the shards' index is missing: add pytorch_model.bin.index.json";
  if (has([](const std::string &n) {
        return n.ends_with(".pth") || n.ends_with(".pt") || n.ends_with(".bin");
      }))
    return "; name one of PyTorch's files pytorch_model.bin";
  return "; name the directory that holds the weights";
}

absl::Status noCheckpoint(const std::string &directory,
                          const std::vector<std::string> &names) {
  std::vector<std::string> weights;
  std::ranges::copy_if(names, std::back_inserter(weights), isWeightName);
  std::string found = "no weight file";
  if (!weights.empty())
    found = absl::StrCat(
        inQuotes(weights[0]),
        weights.size() > 1
            ? absl::StrCat(" and ", weights.size() - 1, " more weight files")
            : "");
  return absl::NotFoundError(absl::StrCat(
      directory, ": found ", found, ", expected ", kSingle,
      ", an index model.safetensors.index.json, a tensor-parallel set "
      "pytorch_model-NNNNN-TP-*.safetensors, ",
      kTorchSingle,
      ", an index pytorch_model.bin.index.json, a .gguf file, or ", kJaxFolder,
      remedyFor(names)));
}

absl::Status openSingle(FileSet &set) {
  set.layout = "safetensors, one file";
  absl::StatusOr<std::vector<TensorEntry>> entries = set.add(kSingle);
  if (!entries.ok())
    return entries.status();
  for (const TensorEntry &entry : *entries)
    set.insert(entry);
  return absl::OkStatus();
}

absl::Status openTorchSingle(FileSet &set) {
  set.layout = "PyTorch .bin, one file";
  absl::StatusOr<std::vector<NamedTensor>> tensors =
      addTorch(set, kTorchSingle);
  if (!tensors.ok())
    return tensors.status();
  for (NamedTensor &t : *tensors)
    set.insert(t.name, std::move(t.tensor));
  return absl::OkStatus();
}

/// What lies in a directory and looks like weights, but is no part of the
/// checkpoint.
void noteExtraFiles(FileSet &set, const std::string &directory,
                    const std::vector<std::string> &names) {
  for (const std::string &name : names) {
    if (!isWeightName(name) && !isIndexName(name) && name != kJaxFolder)
      continue;
    std::string path = absl::StrCat(directory, "/", name);
    if (path != set.index && path != set.directory &&
        std::ranges::none_of(
            set.files, [&](const MappedFile &f) { return f.path() == path; }))
      set.notes.push_back(
          absl::StrCat(path, ": not part of the checkpoint, ignored"));
  }
}

/// The one kind of files that the directory's checkpoint consists of.
absl::Status openArrangement(FileSet &set,
                             const std::vector<std::string> &names) {
  std::vector<std::string> indexes, torchIndexes;
  for (const std::string &name : names)
    if (isIndexName(name))
      (name.ends_with(kIndexEnd) ? indexes : torchIndexes).push_back(name);
  auto has = [&](auto predicate) {
    return std::ranges::any_of(names, predicate);
  };
  bool single = std::ranges::binary_search(names, kSingle);
  // An index cannot say that a tensor is spread over several files, so one that
  // lies beside a tensor-parallel set does not describe it.
  if (has(isTensorParallelName)) {
    if (single)
      return absl::InvalidArgumentError(absl::StrCat(
          set.directory, ": found both ", kSingle,
          " and a tensor-parallel set pytorch_model-NNNNN-TP-*.safetensors, "
          "expected one of them; remove the other"));
    return openTensorParallel(set, names);
  }
  // Both kinds are often published side by side; safetensors are read.
  for (const std::vector<std::string> *of : {&indexes, &torchIndexes}) {
    if (of->size() > 1)
      return absl::InvalidArgumentError(absl::StrCat(
          set.directory, ": found ", of->size(), " indexes (",
          absl::StrJoin(*of, ", "), "), expected one; remove the others"));
    if (!of->empty())
      return openShards(set, of->front());
    if (of == &indexes && single)
      return openSingle(set);
  }
  if (std::ranges::binary_search(names, kTorchSingle))
    return openTorchSingle(set);
  if (has([](const std::string &n) { return n.ends_with(kGgufEnd); }))
    return openGguf(set, names);
  if (has(isJaxName))
    return openJax(set, names);
  return noCheckpoint(set.directory, names);
}

/// The names to choose among: those of the directory, or of the ckpt-0 in it,
/// or of the GGUF file that was named.
absl::StatusOr<std::vector<std::string>> choose(FileSet &set) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (set.directory.ends_with(kGgufEnd) &&
      fs::is_regular_file(set.directory, error)) {
    fs::path file(set.directory);
    set.directory = file.has_parent_path() ? file.parent_path().string() : ".";
    absl::StatusOr<std::vector<std::string>> names =
        listCheckpoint(set.directory);
    return names.ok() ? ggufNamed(file.filename().string(), *names) : names;
  }
  absl::StatusOr<std::vector<std::string>> names =
      listCheckpoint(set.directory);
  if (!names.ok() || std::ranges::any_of(*names, isArrangement) ||
      !std::ranges::binary_search(*names, kJaxFolder))
    return names;
  std::string above = std::exchange(
      set.directory, absl::StrCat(set.directory, "/", kJaxFolder));
  noteExtraFiles(set, above, *names);
  return listCheckpoint(set.directory);
}

absl::Status misplacedError(const Listing &misplaced) {
  const uint64_t more = misplaced.count - 1;
  return absl::InvalidArgumentError(absl::StrCat(
      misplaced.first[0],
      more ? absl::StrCat(", and ", more, " more like it (grokrun check)")
           : ""));
}

} // namespace

absl::Status FileSet::map(const std::string &name) {
  absl::StatusOr<MappedFile> file =
      MappedFile::open(absl::StrCat(directory, "/", name));
  if (file.ok())
    files.push_back(*std::move(file));
  return file.status();
}

absl::StatusOr<std::vector<TensorEntry>> FileSet::add(const std::string &name) {
  if (absl::Status status = map(name); !status.ok())
    return status;
  absl::StatusOr<std::vector<TensorEntry>> entries =
      parseSafetensors(files.back().bytes(), files.back().path());
  files.back().evict();
  return entries;
}

bool FileSet::insert(const std::string &name, StoredTensor tensor) {
  const std::string &path = files[tensor.parts[0].file].path();
  auto [it, isNew] = tensors.try_emplace(name, std::move(tensor));
  if (isNew)
    return true;
  const std::string &other = files[it->second.parts[0].file].path();
  misplaced.add(absl::StrCat(
      path, ": tensor ", inQuotes(name),
      other == path
          ? ": found a second one of this name, expected one; the file is "
            "damaged"
          : absl::StrCat(": found also in ", other,
                         ", expected in one file; remove one of them")));
  return false;
}

bool FileSet::insert(const TensorEntry &entry) {
  return insert(entry.name, tensorOf(entry).tensor);
}

NamedTensor FileSet::tensorOf(const TensorEntry &entry) const {
  NamedTensor named{entry.name, {}};
  named.tensor.type = entry.type;
  named.tensor.shape = entry.shape;
  named.tensor.parts = {{uint32_t(files.size() - 1), entry.begin}};
  return named;
}

absl::Status openFileSet(const std::string &path, FileSet &set) {
  set.directory = path;
  while (set.directory.size() > 1 && set.directory.ends_with('/'))
    set.directory.pop_back();
  absl::StatusOr<std::vector<std::string>> names = choose(set);
  if (!names.ok())
    return names.status();
  absl::Status status = openArrangement(set, *names);
  if (set.misplaced.count) // what else is wrong may follow from it
    return misplacedError(set.misplaced);
  if (!status.ok())
    return status;
  noteExtraFiles(set, set.directory, *names);
  return absl::OkStatus();
}

} // namespace grok
