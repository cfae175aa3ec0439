#include "runtime/checkpoint/FileSet.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/checkpoint/Messages.h"

namespace grok {
namespace {

constexpr const char *kSingle = "model.safetensors";
constexpr std::string_view kIndexEnd = ".safetensors.index.json";

absl::StatusOr<std::vector<std::string>>
listDirectory(const std::string &directory) {
  std::error_code error;
  std::filesystem::directory_iterator it(directory, error), end;
  std::vector<std::string> names;
  for (; !error && it != end; it.increment(error))
    names.push_back(it->path().filename().string());
  if (error == std::errc::no_such_file_or_directory)
    return absl::NotFoundError(absl::StrCat(
        directory, ": found nothing, expected a checkpoint directory"));
  if (error)
    return absl::InvalidArgumentError(absl::StrCat(
        directory,
        ": cannot list the checkpoint directory: ", error.message()));
  std::ranges::sort(names);
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
        return n.ends_with(".bin") || n.ends_with(".bin.index.json") ||
               n.ends_with(".pth") || n.ends_with(".pt");
      }))
    return "; PyTorch files are not read: convert them to safetensors";
  if (has([](const std::string &n) { return n.ends_with(".gguf"); }))
    return "; GGUF files are not read: convert them to safetensors";
  if (has([](const std::string &n) { return n == "ckpt-0"; }))
    return "; JAX checkpoints are not read: convert them to safetensors";
  return "; name the directory that holds the weights";
}

absl::Status noCheckpoint(const std::string &directory,
                          const std::vector<std::string> &names) {
  std::vector<std::string> weights;
  std::ranges::copy_if(names, std::back_inserter(weights),
                       [](const std::string &n) {
                         return n.ends_with(".safetensors") ||
                                n.ends_with(".bin") || n.ends_with(".gguf");
                       });
  std::string found = "no weight file";
  if (!weights.empty())
    found = absl::StrCat(
        inQuotes(weights[0]),
        weights.size() > 1
            ? absl::StrCat(" and ", weights.size() - 1, " more weight files")
            : "");
  return absl::NotFoundError(absl::StrCat(
      directory, ": found ", found, ", expected ", kSingle,
      ", an index model.safetensors.index.json, or a tensor-parallel set "
      "pytorch_model-NNNNN-TP-*.safetensors",
      remedyFor(names)));
}

absl::Status openSingle(FileSet &set) {
  absl::StatusOr<std::vector<TensorEntry>> entries = set.add(kSingle);
  if (!entries.ok())
    return entries.status();
  for (const TensorEntry &entry : *entries)
    if (absl::Status status = set.insert(entry); !status.ok())
      return status;
  return absl::OkStatus();
}

/// Weight files of the directory that the checkpoint does not consist of.
void noteExtraFiles(FileSet &set, const std::vector<std::string> &names) {
  for (const std::string &name : names) {
    if (!name.ends_with(".safetensors") && !name.ends_with(kIndexEnd))
      continue;
    std::string path = absl::StrCat(set.directory, "/", name);
    if (path != set.index &&
        std::ranges::none_of(
            set.files, [&](const MappedFile &f) { return f.path() == path; }))
      set.notes.push_back(
          absl::StrCat(path, ": not part of the checkpoint, ignored"));
  }
}

absl::Status openArrangement(FileSet &set,
                             const std::vector<std::string> &names) {
  std::vector<std::string> indexes;
  std::ranges::copy_if(
      names, std::back_inserter(indexes),
      [](const std::string &n) { return n.ends_with(kIndexEnd); });
  bool single = std::ranges::binary_search(names, kSingle);
  // An index cannot say that a tensor is spread over several files, so one that
  // lies beside a tensor-parallel set does not describe it.
  if (std::ranges::any_of(names, isTensorParallelName)) {
    if (single)
      return absl::InvalidArgumentError(absl::StrCat(
          set.directory, ": found both ", kSingle,
          " and a tensor-parallel set pytorch_model-NNNNN-TP-*.safetensors, "
          "expected one of them; remove the other"));
    return openTensorParallel(set, names);
  }
  if (indexes.size() > 1)
    return absl::InvalidArgumentError(absl::StrCat(
        set.directory, ": found ", indexes.size(), " indexes (",
        absl::StrJoin(indexes, ", "), "), expected one; remove the others"));
  if (!indexes.empty())
    return openShards(set, indexes[0]);
  if (single)
    return openSingle(set);
  return noCheckpoint(set.directory, names);
}

} // namespace

absl::StatusOr<std::vector<TensorEntry>> FileSet::add(const std::string &name) {
  absl::StatusOr<MappedFile> file =
      MappedFile::open(absl::StrCat(directory, "/", name));
  if (!file.ok())
    return file.status();
  absl::StatusOr<std::vector<TensorEntry>> entries =
      parseSafetensors(file->bytes(), file->path());
  file->evict();
  if (entries.ok())
    files.push_back(*std::move(file));
  return entries;
}

absl::Status FileSet::insert(const TensorEntry &entry) {
  uint32_t file = uint32_t(files.size() - 1);
  auto [it, isNew] = tensors.try_emplace(
      entry.name,
      StoredTensor{entry.type, entry.shape, {{file, entry.begin}}, 0});
  if (isNew)
    return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(files[file].path(), ": tensor ", inQuotes(entry.name),
                   ": found also in ", files[it->second.parts[0].file].path(),
                   ", expected in one file; remove one of them"));
}

absl::StatusOr<FileSet> openFileSet(const std::string &directory) {
  FileSet set;
  set.directory = directory;
  while (set.directory.size() > 1 && set.directory.ends_with('/'))
    set.directory.pop_back();
  absl::StatusOr<std::vector<std::string>> names = listDirectory(set.directory);
  if (!names.ok())
    return names.status();
  if (absl::Status status = openArrangement(set, *names); !status.ok())
    return status;
  noteExtraFiles(set, *names);
  return set;
}

} // namespace grok
