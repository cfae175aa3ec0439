// A checkpoint of one GGUF file, or of one that was split.
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/checkpoint/FileSet.h"
#include "runtime/checkpoint/GgufHeader.h"
#include "runtime/checkpoint/Messages.h"

namespace grok {
namespace {

constexpr std::string_view kEnd = ".gguf";

/// PREFIX-NNNNN-of-MMMMM.gguf.
struct SplitName {
  std::string prefix;
  uint32_t number = 0, count = 0;
};

std::optional<SplitName> parseSplitName(std::string_view name) {
  constexpr size_t kTail = std::string_view("-00001-of-00002.gguf").size();
  if (name.size() < kTail || !name.ends_with(kEnd))
    return std::nullopt;
  std::string_view tail = name.substr(name.size() - kTail);
  auto digits = [](std::string_view text, uint32_t *out) {
    return text.find_first_not_of("0123456789") == text.npos &&
           absl::SimpleAtoi(absl::string_view(text.data(), text.size()), out);
  };
  SplitName split{std::string(name.substr(0, name.size() - kTail))};
  if (tail[0] != '-' || tail.substr(6, 4) != "-of-" ||
      !digits(tail.substr(1, 5), &split.number) ||
      !digits(tail.substr(10, 5), &split.count))
    return std::nullopt;
  return split;
}

/// The files of the checkpoint, in order.
absl::StatusOr<std::vector<std::string>>
chooseFiles(const FileSet &set, const std::vector<std::string> &names) {
  std::vector<std::string> files;
  std::ranges::copy_if(names, std::back_inserter(files),
                       [](const std::string &n) { return n.ends_with(kEnd); });
  std::optional<SplitName> first = parseSplitName(files[0]);
  if (!first) {
    if (files.size() > 1)
      return absl::InvalidArgumentError(
          absl::StrCat(set.directory, ": found ", files.size(), " GGUF files (",
                       inQuotes(files[0]), ", ", inQuotes(files[1]),
                       files.size() > 2 ? ", ..." : "",
                       "), expected one checkpoint; name the file itself"));
    return files;
  }
  if (first->number == 0 || first->number > first->count)
    return absl::InvalidArgumentError(
        absl::StrCat(set.directory, "/", files[0], ": found part ",
                     first->number, " of ", first->count,
                     " by its name, expected parts from 1 on, as many as the "
                     "name says; download them under their own names"));
  std::vector<std::string> parts;
  Listing missing;
  for (uint32_t i = 1; i <= first->count; ++i) {
    std::string name =
        absl::StrFormat("%s-%05u-of-%05u.gguf", first->prefix, i, first->count);
    if (!std::ranges::binary_search(files, name))
      missing.add(name);
    parts.push_back(std::move(name));
  }
  if (missing.count)
    return missingFiles(set.directory, missing,
                        absl::StrCat("found ", first->count - missing.count,
                                     " of ", first->count,
                                     " parts, expected all; download it"));
  if (parts.size() != files.size())
    return absl::InvalidArgumentError(absl::StrCat(
        set.directory, ": found ", files.size(), " GGUF files, expected the ",
        parts.size(), " parts of ", inQuotes(first->prefix),
        " alone; name one of the files themselves"));
  return parts;
}

/// The norm after the experts had another name at first.
std::string currentName(const std::string &name) {
  constexpr std::string_view kOld = ".layer_output_norm.weight";
  if (!name.ends_with(kOld))
    return name;
  return absl::StrCat(name.substr(0, name.size() - kOld.size()),
                      ".post_ffw_norm.weight");
}

void addTensors(FileSet &set, const GgufHeader &header) {
  for (const GgufTensor &tensor : header.tensors) {
    StoredTensor stored;
    stored.type = tensor.type;
    stored.coding = tensor.coding;
    stored.shape = tensor.shape;
    stored.parts = {{uint32_t(set.files.size() - 1), tensor.begin}};
    set.insert(currentName(tensor.name), std::move(stored));
  }
}

/// What a part of a split file says of the whole.
absl::Status checkSplit(const std::string &path, const GgufHeader &header,
                        size_t number, size_t count) {
  auto claim = [&](const char *key, double fallback) {
    auto it = header.numbers.find(key);
    return it == header.numbers.end() ? fallback : it->second;
  };
  if (double found = claim("split.count", count > 1 ? 0 : 1);
      found != double(count) && !(count == 1 && found == 0))
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": key 'split.count': found ", found, ", expected ", count,
        " as the names say; download the parts again, under their own names"));
  if (double found = claim("split.no", 0); found != double(number))
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": key 'split.no': found ", found, ", expected ", number,
        " as the name says; download the parts again, under their own names"));
  return absl::OkStatus();
}

} // namespace

std::vector<std::string> ggufNamed(const std::string &name,
                                   const std::vector<std::string> &names) {
  std::optional<SplitName> own = parseSplitName(name);
  if (!own)
    return {name};
  std::vector<std::string> parts;
  std::ranges::copy_if(names, std::back_inserter(parts),
                       [&](const std::string &other) {
                         std::optional<SplitName> split = parseSplitName(other);
                         return split && split->prefix == own->prefix &&
                                split->count == own->count;
                       });
  return parts;
}

absl::Status openGguf(FileSet &set, const std::vector<std::string> &names) {
  set.layout = "GGUF";
  absl::StatusOr<std::vector<std::string>> files = chooseFiles(set, names);
  if (!files.ok())
    return files.status();
  double promised = -1;
  for (size_t i = 0; i < files->size(); ++i) {
    if (absl::Status status = set.map((*files)[i]); !status.ok())
      return status;
    const MappedFile &file = set.files.back();
    absl::StatusOr<GgufHeader> header = parseGguf(file.bytes(), file.path());
    file.evict();
    if (!header.ok())
      return header.status();
    if (absl::Status status =
            checkSplit(file.path(), *header, i, files->size());
        !status.ok())
      return status;
    if (i == 0) {
      if (header->architecture != "grok")
        return absl::InvalidArgumentError(
            absl::StrCat(file.path(), ": key 'general.architecture': found ",
                         inQuotes(header->architecture),
                         ", expected 'grok'; this is another model"));
      set.numbers = std::move(header->numbers);
      set.texts = std::move(header->texts);
      set.lists = std::move(header->arrays);
      if (auto it = set.numbers.find("split.tensors.count");
          it != set.numbers.end())
        promised = it->second;
    }
    addTensors(set, *header);
  }
  if (promised >= 0 && promised != double(set.tensors.size()))
    return absl::InvalidArgumentError(
        absl::StrCat(set.files[0].path(), ": key 'split.tensors.count': found ",
                     promised, ", expected the ", set.tensors.size(),
                     " that the parts hold; download the parts again"));
  set.layout = files->size() == 1
                   ? std::string("GGUF, one file")
                   : absl::StrCat("GGUF, ", files->size(), " parts");
  return absl::OkStatus();
}

} // namespace grok
