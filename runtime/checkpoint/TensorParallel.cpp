// Grok-2's release: pytorch_model-NNNNN-TP-common.safetensors holds whole
// tensors, pytorch_model-NNNNN-TP-RRR.safetensors rank RRR's slice of each of
// its tensors. The slices of a tensor have the same name in every file.
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/checkpoint/FileSet.h"
#include "runtime/checkpoint/Messages.h"
#include "runtime/checkpoint/TensorNames.h"

namespace grok {
namespace {

constexpr std::string_view kStart = "pytorch_model-";
constexpr std::string_view kMiddle = "-TP-";
constexpr std::string_view kEnd = ".safetensors";
constexpr size_t kGroupDigits = 5, kRankDigits = 3;

struct PartName {
  uint32_t group = 0;
  std::optional<uint32_t> rank; // none: common
};

std::optional<uint32_t> digits(std::string_view text, size_t count) {
  uint32_t value = 0;
  if (text.size() != count ||
      text.find_first_not_of("0123456789") != text.npos ||
      !absl::SimpleAtoi(absl::string_view(text.data(), text.size()), &value))
    return std::nullopt;
  return value;
}

std::optional<PartName> parsePartName(std::string_view name) {
  if (!name.starts_with(kStart) || !name.ends_with(kEnd))
    return std::nullopt;
  std::string_view rest = name.substr(kStart.size());
  rest.remove_suffix(kEnd.size());
  size_t middle = rest.find(kMiddle);
  if (middle == rest.npos)
    return std::nullopt;
  std::optional<uint32_t> group = digits(rest.substr(0, middle), kGroupDigits);
  std::string_view which = rest.substr(middle + kMiddle.size());
  std::optional<uint32_t> rank = digits(which, kRankDigits);
  if (!group || (!rank && which != "common"))
    return std::nullopt;
  return PartName{*group, rank};
}

std::string rankName(uint32_t group, uint32_t rank) {
  return absl::StrFormat("pytorch_model-%05u-TP-%03u.safetensors", group, rank);
}

using RankFiles = std::map<uint32_t, std::string>; // rank -> file
struct Names {
  std::vector<std::string> common;
  std::map<uint32_t, RankFiles> groups;
};

absl::StatusOr<Names> sortNames(const FileSet &set,
                                const std::vector<std::string> &names) {
  Names out;
  for (const std::string &name : names) {
    if (!isTensorParallelName(name))
      continue;
    std::optional<PartName> part = parsePartName(name);
    if (!part)
      return absl::InvalidArgumentError(absl::StrCat(
          set.directory, ": found file ", inQuotes(name),
          ", expected pytorch_model-NNNNN-TP-common.safetensors or "
          "pytorch_model-NNNNN-TP-RRR.safetensors; rename or remove it"));
    if (part->rank)
      out.groups[part->group][*part->rank] = name;
    else
      out.common.push_back(name);
  }
  return out;
}

/// Ranks without gaps, as many in every group.
absl::Status checkRanks(const FileSet &set, const Names &names) {
  uint32_t count = 0;
  std::string last; // the file of the highest rank
  for (const auto &[group, files] : names.groups)
    if (const auto &[rank, file] = *files.rbegin(); rank >= count) {
      count = rank + 1;
      last = file;
    }
  Listing missing;
  size_t found = 0; // in the first group that is not whole
  for (const auto &[group, files] : names.groups) {
    if (missing.count == 0)
      found = files.size();
    for (uint32_t rank = 0; rank < count && files.size() < count; ++rank)
      if (!files.count(rank))
        missing.add(rankName(group, rank));
  }
  if (missing.count == 0)
    return absl::OkStatus();
  return missingFiles(
      set.directory, missing,
      absl::StrCat("found ", found, " of the ", count, " ranks that ", last,
                   " asks for, expected all of them in every group; download "
                   "it, or move away what is of another set"));
}

/// Rank 0 defines the group's tensors.
absl::Status insertFirst(FileSet &set, const std::vector<TensorEntry> &entries,
                         uint32_t ranks) {
  const std::string &path = set.files.back().path();
  for (const TensorEntry &entry : entries) {
    std::optional<unsigned> dimension = splitDimension(entry.name);
    if (!dimension)
      return absl::InvalidArgumentError(absl::StrCat(
          path, ": tensor ", inQuotes(entry.name),
          ": found in a file of one rank, expected only expert matrices (w1, "
          "w2, w3) there; it belongs in a file named ...-TP-common"));
    if (entry.shape.size() != 2)
      return absl::InvalidArgumentError(absl::StrCat(
          path, ": tensor ", inQuotes(entry.name), ": found shape ",
          shapeText(entry.shape), ", expected a matrix's slice"));
    if (!set.insert(entry))
      continue;
    StoredTensor &tensor = set.tensors[entry.name];
    tensor.splitDimension = *dimension;
    if (__builtin_mul_overflow(tensor.shape[*dimension], ranks,
                               &tensor.shape[*dimension]))
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": tensor ", inQuotes(entry.name),
                       ": found a size that does not fit 64 bits"));
  }
  return absl::OkStatus();
}

/// A later rank must agree with rank 0 in everything but the values.
absl::Status insertSlice(FileSet &set, const TensorEntry &entry,
                         const std::map<std::string, TensorEntry> &first,
                         const std::string &firstPath) {
  uint32_t file = uint32_t(set.files.size() - 1);
  const std::string &path = set.files.back().path();
  auto error = [&](const std::string &found, const std::string &expected) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": tensor ", inQuotes(entry.name), ": found ", found,
        ", expected ", expected, " as in ", firstPath,
        "; the files are of different exports: download both again"));
  };
  auto it = first.find(entry.name);
  if (it == first.end())
    return error("a tensor", "none of this name");
  const TensorEntry &model = it->second;
  if (entry.type != model.type)
    return error(std::string(elementName(entry.type)),
                 std::string(elementName(model.type)));
  if (entry.shape != model.shape)
    return error(absl::StrCat("shape ", shapeText(entry.shape)),
                 shapeText(model.shape));
  set.tensors[entry.name].parts.push_back({file, entry.begin});
  return absl::OkStatus();
}

absl::Status openGroup(FileSet &set, const RankFiles &files) {
  uint32_t ranks = uint32_t(files.size());
  std::map<std::string, TensorEntry> first;
  std::string firstPath;
  for (const auto &[rank, name] : files) {
    absl::StatusOr<std::vector<TensorEntry>> entries = set.add(name);
    if (!entries.ok())
      return entries.status();
    if (rank == 0) {
      if (absl::Status status = insertFirst(set, *entries, ranks); !status.ok())
        return status;
      if (set.misplaced.count) // slices would be added to another's
        return absl::OkStatus();
      firstPath = set.files.back().path();
      for (TensorEntry &entry : *entries)
        first.emplace(entry.name, entry);
      continue;
    }
    for (const TensorEntry &entry : *entries)
      if (absl::Status status = insertSlice(set, entry, first, firstPath);
          !status.ok())
        return status;
    for (const auto &[tensor, entry] : first)
      if (set.tensors[tensor].parts.size() != rank + 1)
        return absl::InvalidArgumentError(absl::StrCat(
            set.files.back().path(), ": tensor ", inQuotes(tensor),
            ": found nothing, expected a slice as in ", firstPath,
            "; the files are of different exports: download both again"));
  }
  return absl::OkStatus();
}

} // namespace

bool isTensorParallelName(const std::string &name) {
  return name.starts_with(kStart) && name.ends_with(kEnd) &&
         name.find(kMiddle) != name.npos;
}

absl::Status openTensorParallel(FileSet &set,
                                const std::vector<std::string> &fileNames) {
  set.layout = "safetensors, tensor-parallel set (Grok-2's)";
  absl::StatusOr<Names> names = sortNames(set, fileNames);
  if (!names.ok())
    return names.status();
  if (absl::Status status = checkRanks(set, *names); !status.ok())
    return status;
  for (const std::string &name : names->common) {
    absl::StatusOr<std::vector<TensorEntry>> entries = set.add(name);
    if (!entries.ok())
      return entries.status();
    for (const TensorEntry &entry : *entries)
      set.insert(entry);
  }
  size_t ranks = 0;
  for (const auto &[group, files] : names->groups) {
    if (absl::Status status = openGroup(set, files); !status.ok())
      return status;
    ranks = files.size();
  }
  set.layout = absl::StrCat("safetensors, tensor-parallel set of ", ranks,
                            " ranks (Grok-2's)");
  return absl::OkStatus();
}

} // namespace grok
