// The pickle of a PyTorch file: the input is put into an archive whose records
// agree, beside two storages, so that its length may change.
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/checkpoint/FileSet.h"
#include "test/fuzz/Places.h"

using namespace grok;
using namespace grok::fuzz;

namespace {

void put(std::string &out, uint64_t value, unsigned bytes) {
  for (unsigned i = 0; i < bytes; ++i)
    out += char(value >> (8 * i));
}

void zeros(std::string &out, size_t bytes) { out.append(bytes, '\0'); }

/// An archive of stored entries, in the form that is read.
class Archive {
public:
  void add(std::string_view name, std::string_view content) {
    uint64_t at = out_.size();
    put(out_, 0x04034b50, 4);
    head(out_, content.size(), name.size());
    out_ += name;
    out_ += content;
    put(directory_, 0x02014b50, 4);
    put(directory_, 0, 2); // made by
    head(directory_, content.size(), name.size());
    zeros(directory_, 10); // comment, disk, attributes
    put(directory_, at, 4);
    directory_ += name;
    ++count_;
  }
  std::string finish() {
    uint64_t at = out_.size();
    out_ += directory_;
    put(out_, 0x06054b50, 4);
    put(out_, 0, 4); // disks
    put(out_, count_, 2);
    put(out_, count_, 2);
    put(out_, directory_.size(), 4);
    put(out_, at, 4);
    put(out_, 0, 2); // comment
    return std::move(out_);
  }

private:
  /// What both records of an entry have, from the version on.
  static void head(std::string &out, uint64_t bytes, uint64_t nameBytes) {
    zeros(out, 10); // version, flags, method, time
    put(out, 0, 4); // CRC, which is not read
    put(out, bytes, 4);
    put(out, bytes, 4);
    put(out, nameBytes, 2);
    put(out, 0, 2); // extra
  }
  std::string out_, directory_;
  unsigned count_ = 0;
};

} // namespace

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  Archive archive;
  archive.add("archive/data.pkl", textOf(data, size));
  archive.add("archive/data/0", std::string(64, '\0'));
  archive.add("archive/data/1", std::string(96, '\0'));
  std::string file = archive.finish();
  absl::StatusOr<std::vector<NamedTensor>> tensors = readTorch(
      {reinterpret_cast<const uint8_t *>(file.data()), file.size()}, kFile, 0);
  if (!tensors.ok()) {
    require(!absl::StartsWith(tensors.status().message(),
                              absl::StrCat(kFile, ": ZIP ")),
            "the archive is well formed");
    requireRefusal(tensors.status());
    return 0;
  }
  for (const NamedTensor &t : *tensors)
    requireInside(t.tensor, file.size());
  return 0;
}
