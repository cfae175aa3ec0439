#include "runtime/checkpoint/ShardedIndex.h"

#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/bundle/JsonReader.h"
#include "runtime/checkpoint/FileSet.h"
#include "runtime/checkpoint/Messages.h"
#include "runtime/checkpoint/TensorNames.h"

namespace grok {
namespace {

constexpr size_t kMaxIndexBytes = size_t(32) << 20;
constexpr const char *kSafetensors = ".safetensors", *kTorch = ".bin",
                     *kTorchIndex = ".bin.index.json";

std::string pointerTo(const std::string &tensor) {
  std::string pointer = "/weight_map/";
  for (char c : tensor)
    pointer += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  return pointer;
}

/// A plain file name: nothing that could lead out of the directory.
absl::Status checkFileName(const std::string &place, const std::string &tensor,
                           const std::string &file, std::string_view end) {
  constexpr std::string_view kForbidden("/\\\0", 3);
  std::string where = absl::StrCat(place, ": key ", inQuotes(tensor),
                                   ": found file ", inQuotes(file));
  if (file.empty() || file == "." || file == ".." ||
      file.find_first_of(kForbidden) != file.npos)
    return absl::InvalidArgumentError(absl::StrCat(
        where, ", expected the name of a file in the index's own directory; "
               "don't use this index"));
  if (!file.ends_with(end))
    return absl::InvalidArgumentError(
        absl::StrCat(where, ", expected a ", std::string(end),
                     " file as the index's name says; convert the checkpoint"));
  return absl::OkStatus();
}

/// "PREFIX-NNNNN-of-MMMMM.END": every number up to M must be listed.
absl::Status checkShardNumbers(const ShardIndex &index) {
  std::set<std::pair<std::string, uint32_t>> complete; // sets, with their sizes
  for (const std::string &file : index.files) {
    constexpr size_t kTail = std::string_view("-00001-of-00002").size();
    std::string_view stem(file);
    stem.remove_suffix(index.end.size());
    if (stem.size() < kTail)
      continue;
    std::string_view tail = stem.substr(stem.size() - kTail);
    uint32_t count = 0;
    auto number = [](std::string_view text, uint32_t *out) {
      return text.find_first_not_of("0123456789") == text.npos &&
             absl::SimpleAtoi(absl::string_view(text.data(), text.size()), out);
    };
    uint32_t own = 0;
    if (tail[0] != '-' || tail.substr(6, 4) != "-of-" ||
        !number(tail.substr(1, 5), &own) || !number(tail.substr(10), &count))
      continue;
    std::string prefix(stem.substr(0, stem.size() - kTail));
    if (!complete.emplace(prefix, count).second)
      continue;
    for (uint32_t i = 1; i <= count; ++i) {
      std::string expected =
          absl::StrFormat("%s-%05u-of-%05u%s", prefix, i, count, index.end);
      if (!index.files.count(expected))
        return absl::InvalidArgumentError(absl::StrCat(
            index.path, ": found ", inQuotes(file), " but no tensor in ",
            inQuotes(expected),
            ", expected all shards of the set; download the index again"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<ShardIndex> readIndex(const FileSet &set,
                                     const std::string &name) {
  absl::StatusOr<MappedFile> file =
      MappedFile::open(absl::StrCat(set.directory, "/", name));
  if (!file.ok())
    return file.status();
  if (file->bytes().size() > kMaxIndexBytes)
    return absl::InvalidArgumentError(
        absl::StrCat(file->path(), ": found ", file->bytes().size(),
                     " bytes, expected an index of at most ", kMaxIndexBytes));
  return parseShardIndex({reinterpret_cast<const char *>(file->bytes().data()),
                          file->bytes().size()},
                         file->path());
}

absl::Status checkPresence(const FileSet &set, const ShardIndex &index) {
  namespace fs = std::filesystem;
  Listing missing;
  for (const std::string &name : index.files)
    if (std::error_code error;
        fs::status(absl::StrCat(set.directory, "/", name), error).type() ==
        fs::file_type::not_found)
      missing.add(name);
  if (missing.count == 0)
    return absl::OkStatus();
  return missingFiles(set.directory, missing,
                      "found nothing, expected a shard that the index lists; "
                      "download it");
}

/// A listed file may be a link, but not out of the directory. The one
/// exception is a download cache that keeps its files in `blobs` beside
/// `snapshots/REVISION` and links them from there.
absl::Status checkLink(const FileSet &set, const std::string &name) {
  namespace fs = std::filesystem;
  std::string path = absl::StrCat(set.directory, "/", name);
  std::error_code error;
  fs::path home = fs::canonical(set.directory, error);
  fs::path target = error ? fs::path() : fs::canonical(path, error);
  if (error)
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": cannot resolve the name: ", error.message()));
  bool cache =
      home.parent_path().filename() == "snapshots" &&
      target.parent_path() == home.parent_path().parent_path() / "blobs";
  if (target.parent_path() == home || cache)
    return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      path, ": found a link to ", inQuotes(target.string()),
      ", expected a file in the index's own directory; copy the file there"));
}

/// A tensor that the index has in another file than this one.
struct Misplaced {
  std::string tensor, path;
};

std::string misplacedText(const FileSet &set, const ShardIndex &index,
                          const Misplaced &misplaced) {
  const ShardIndex::Target &target = index.weights.at(misplaced.tensor);
  return absl::StrCat(
      misplaced.path, ": tensor ", inQuotes(misplaced.tensor),
      set.tensors.count(misplaced.tensor) ? ": found a duplicate of that in "
                                          : ": found here, expected only in ",
      inQuotes(target.file), " (", target.place, ")",
      set.tensors.count(misplaced.tensor) ? ", expected it once" : "",
      "; download index and shards again");
}

/// A tensor that a shard holds must be mapped to it; false: to be ignored, or
/// added to `misplaced`.
absl::StatusOr<bool> belongsHere(const FileSet &set, const ShardIndex &index,
                                 const std::string &name,
                                 const std::string &tensor,
                                 std::vector<Misplaced> &misplaced) {
  auto it = index.weights.find(tensor);
  if (it == index.weights.end()) {
    if (isIgnoredTensor(tensor))
      return false;
    return absl::InvalidArgumentError(
        absl::StrCat(set.files.back().path(), ": tensor ", inQuotes(tensor),
                     ": found in the file, expected in ", index.path,
                     " as well; download the index again"));
  }
  if (it->second.file == name)
    return true;
  misplaced.push_back({tensor, set.files.back().path()});
  return false;
}

absl::StatusOr<std::vector<NamedTensor>>
readShard(FileSet &set, const ShardIndex &index, const std::string &name) {
  if (index.end == kTorch)
    return addTorch(set, name);
  absl::StatusOr<std::vector<TensorEntry>> entries = set.add(name);
  if (!entries.ok())
    return entries.status();
  std::vector<NamedTensor> tensors;
  for (const TensorEntry &entry : *entries)
    tensors.push_back(set.tensorOf(entry));
  return tensors;
}

/// Enters the tensors of one shard; their bytes come back.
absl::StatusOr<uint64_t> addShard(FileSet &set, const ShardIndex &index,
                                  const std::string &name,
                                  std::vector<Misplaced> &misplaced) {
  if (absl::Status status = checkLink(set, name); !status.ok())
    return status;
  absl::StatusOr<std::vector<NamedTensor>> tensors =
      readShard(set, index, name);
  if (!tensors.ok())
    return tensors.status();
  uint64_t bytes = 0;
  for (NamedTensor &t : *tensors) {
    absl::StatusOr<bool> here =
        belongsHere(set, index, name, t.name, misplaced);
    if (!here.ok())
      return here.status();
    if (!*here)
      continue;
    uint64_t elements = 1;
    for (uint64_t size : t.tensor.shape)
      elements *= size;
    bytes += storedBytes(t.tensor, elements);
    set.insert(t.name, std::move(t.tensor));
  }
  return bytes;
}

} // namespace

absl::StatusOr<ShardIndex> parseShardIndex(std::string_view text,
                                           const std::string &path) {
  absl::StatusOr<json::Document> document = json::parse(text, path);
  if (!document.ok())
    return document.status();

  ShardIndex index;
  index.path = path;
  index.end = path.ends_with(kTorchIndex) ? kTorch : kSafetensors;
  const nlohmann::json &root = document->root;
  if (!root.is_object() || !root.contains("weight_map") ||
      !root["weight_map"].is_object())
    return absl::InvalidArgumentError(absl::StrCat(
        document->place("/weight_map"), ": key 'weight_map': found ",
        root.is_object() && root.contains("weight_map")
            ? root["weight_map"].type_name()
            : "nothing",
        ", expected an object from tensor to file; download the index again"));
  for (const auto &[tensor, target] : root["weight_map"].items()) {
    std::string place = document->place(pointerTo(tensor));
    if (!target.is_string())
      return absl::InvalidArgumentError(absl::StrCat(
          place, ": key ", inQuotes(tensor), ": found ", target.type_name(),
          ", expected the name of a file; download the index again"));
    std::string shard = target.get<std::string>();
    if (absl::Status status = checkFileName(place, tensor, shard, index.end);
        !status.ok())
      return status;
    index.files.insert(shard);
    index.weights[tensor] = {std::move(shard), std::move(place)};
  }
  if (index.weights.empty())
    return absl::InvalidArgumentError(absl::StrCat(
        document->place("/weight_map"),
        ": key 'weight_map': found no tensor, "
        "expected all of the checkpoint's; download the index again"));
  if (auto metadata = root.find("metadata"); metadata != root.end() &&
                                             metadata->is_object() &&
                                             metadata->contains("total_size"))
    index.totalSize = (*metadata)["total_size"];
  if (absl::Status status = checkShardNumbers(index); !status.ok())
    return status;
  return index;
}

absl::Status openShards(FileSet &set, const std::string &indexName) {
  absl::StatusOr<ShardIndex> index = readIndex(set, indexName);
  if (!index.ok())
    return index.status();
  set.index = index->path;
  set.layout =
      absl::StrCat(index->end == kTorch ? "PyTorch .bin" : "safetensors", ", ",
                   index->files.size(), " shards with an index");
  if (absl::Status status = checkPresence(set, *index); !status.ok())
    return status;
  uint64_t bytes = 0;
  std::vector<Misplaced> misplaced;
  for (const std::string &name : index->files) {
    absl::StatusOr<uint64_t> added = addShard(set, *index, name, misplaced);
    if (!added.ok())
      return added.status();
    bytes += *added;
  }
  // Which of them are duplicates is known when all shards are read.
  for (const Misplaced &m : misplaced)
    set.misplaced.add(misplacedText(set, *index, m));
  if (set.misplaced.count)
    return absl::OkStatus(); // those are what is wrong
  for (const auto &[tensor, target] : index->weights)
    if (!set.tensors.count(tensor))
      return absl::InvalidArgumentError(
          absl::StrCat(target.place, ": key ", inQuotes(tensor),
                       ": found no such tensor in ", inQuotes(target.file),
                       ", expected it there; download index and shards again"));
  // The total is only advice: exporters disagree on what it counts.
  if (!index->totalSize.is_null() && index->totalSize != bytes)
    set.notes.push_back(absl::StrCat(index->path, ": key 'total_size': found ",
                                     json::shown(index->totalSize),
                                     ", expected ", bytes));
  return absl::OkStatus();
}

} // namespace grok
