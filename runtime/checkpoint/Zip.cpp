#include "runtime/checkpoint/Zip.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/checkpoint/Messages.h"

namespace grok {
namespace {

constexpr size_t kMaxEntries = size_t(1) << 18;
constexpr size_t kMaxName = 1024;

// Signatures and sizes of the format's records.
constexpr uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50,
                   kEnd = 0x06054b50, kEnd64 = 0x06064b50,
                   kLocator64 = 0x07064b50;
constexpr uint64_t kLocalBytes = 30, kCentralBytes = 46, kEndBytes = 22,
                   kEnd64Bytes = 56, kLocator64Bytes = 20;
constexpr uint64_t kMaxComment = 65535;
// Flags of an entry.
constexpr uint16_t kEncrypted = 1 << 0, kSizesFollow = 1 << 3,
                   kStrongEncryption = 1 << 6;
constexpr uint32_t kIn64 = 0xffffffff; // the value stands in the extra field
constexpr uint16_t kExtra64 = 1;       // the extra field's id

class ZipReader {
public:
  ZipReader(std::span<const uint8_t> file, const std::string &path)
      : file_(file), path_(path) {}

  absl::StatusOr<std::map<std::string, ZipEntry>> read() {
    if (absl::Status status = findDirectory(); !status.ok())
      return status;
    uint64_t at = directory_;
    for (uint64_t i = 0; i < count_; ++i)
      if (absl::Status status = readEntry(at); !status.ok())
        return status;
    if (at != directory_ + directoryBytes_)
      return damaged("directory",
                     absl::StrCat("found ", at - directory_, " bytes of ",
                                  count_, " entries, expected ",
                                  directoryBytes_));
    if (absl::Status status = checkOverlap(); !status.ok())
      return status;
    return std::move(entries_);
  }

private:
  template <typename T> T get(uint64_t at) const {
    T value;
    std::memcpy(&value, file_.data() + at, sizeof value);
    return value;
  }
  bool holds(uint64_t at, uint64_t bytes) const {
    return at <= file_.size() && bytes <= file_.size() - at;
  }
  absl::Status error(const std::string &where, const std::string &what) const {
    return absl::InvalidArgumentError(
        absl::StrCat(path_, ": ZIP ", where, ": ", what));
  }
  absl::Status damaged(const std::string &where,
                       const std::string &what) const {
    return error(where, absl::StrCat(what, "; the file is damaged: download or "
                                           "export it again"));
  }

  /// The record at the file's end says where the directory is.
  absl::Status findDirectory() {
    std::optional<uint64_t> end;
    for (uint64_t comment = 0;
         comment <= kMaxComment && kEndBytes + comment <= file_.size();
         ++comment) {
      uint64_t at = file_.size() - kEndBytes - comment;
      if (get<uint32_t>(at) == kEnd && get<uint16_t>(at + 20) == comment) {
        end = at;
        break;
      }
    }
    if (!end)
      return damaged("end record", "found none, expected one at the end of "
                                   "the file (truncated)");
    count_ = get<uint16_t>(*end + 10);
    directoryBytes_ = get<uint32_t>(*end + 12);
    directory_ = get<uint32_t>(*end + 16);
    if (*end >= kLocator64Bytes &&
        get<uint32_t>(*end - kLocator64Bytes) == kLocator64) {
      uint64_t at = get<uint64_t>(*end - kLocator64Bytes + 8);
      if (!holds(at, kEnd64Bytes) || get<uint32_t>(at) != kEnd64)
        return damaged("zip64 record", absl::StrCat("found none at byte ", at));
      count_ = get<uint64_t>(at + 32);
      directoryBytes_ = get<uint64_t>(at + 40);
      directory_ = get<uint64_t>(at + 48);
    }
    if (count_ > kMaxEntries)
      return error("directory",
                   absl::StrCat("found ", count_, " entries, expected at most ",
                                kMaxEntries));
    if (!holds(directory_, directoryBytes_) ||
        directory_ + directoryBytes_ > *end)
      return damaged("directory",
                     absl::StrCat("found ", directoryBytes_, " bytes at byte ",
                                  directory_, ", expected them before byte ",
                                  *end));
    return absl::OkStatus();
  }

  struct Sizes {
    uint64_t packed, size, offset;
  };

  /// Takes what did not fit 32 bits from the extra fields.
  bool widen(uint64_t at, uint64_t bytes, Sizes &sizes) const {
    for (uint64_t end = at + bytes; end - at >= 4;) {
      uint16_t id = get<uint16_t>(at), length = get<uint16_t>(at + 2);
      at += 4;
      if (length > end - at)
        return false;
      if (id == kExtra64) {
        uint64_t next = at;
        for (uint64_t *value : {&sizes.size, &sizes.packed, &sizes.offset})
          if (*value == kIn64) {
            if (next + 8 > at + length)
              return false;
            *value = get<uint64_t>(next);
            next += 8;
          }
        return true;
      }
      at += length;
    }
    return true;
  }

  absl::Status readEntry(uint64_t &at) {
    uint64_t left = directory_ + directoryBytes_ - at;
    if (left < kCentralBytes || get<uint32_t>(at) != kCentral)
      return damaged("directory",
                     absl::StrCat("found no entry at byte ", at, ", expected ",
                                  count_, " in all"));
    uint16_t flags = get<uint16_t>(at + 8), method = get<uint16_t>(at + 10);
    Sizes sizes{get<uint32_t>(at + 20), get<uint32_t>(at + 24),
                get<uint32_t>(at + 42)};
    uint64_t nameBytes = get<uint16_t>(at + 28), extra = get<uint16_t>(at + 30),
             comment = get<uint16_t>(at + 32);
    if (left - kCentralBytes < nameBytes + extra + comment)
      return damaged("directory",
                     absl::StrCat("found an entry at byte ", at,
                                  " that is cut off, expected a whole one"));
    std::string name(
        reinterpret_cast<const char *>(file_.data() + at + kCentralBytes),
        nameBytes);
    std::string where = absl::StrCat("entry ", inQuotes(name));
    if (!widen(at + kCentralBytes + nameBytes, extra, sizes))
      return damaged(where, "found a zip64 field that is cut off");
    at += kCentralBytes + nameBytes + extra + comment;
    if (absl::Status status = checkName(name, where); !status.ok())
      return status;
    if (flags & (kEncrypted | kStrongEncryption))
      return error(where, "found it encrypted, expected it plain; export the "
                          "checkpoint again");
    if (method != 0 || sizes.packed != sizes.size)
      return error(where,
                   absl::StrCat("found compression method ", method, " and ",
                                sizes.packed, " bytes for ", sizes.size,
                                ", expected method 0 and as many: PyTorch "
                                "stores entries; save the checkpoint again"));
    return readLocal(name, where, sizes, flags);
  }

  absl::Status checkName(const std::string &name,
                         const std::string &where) const {
    std::string_view rest(name);
    bool good = !name.empty() && name.size() <= kMaxName && name[0] != '/' &&
                name.find_first_of(std::string_view("\\\0", 2)) == name.npos;
    while (good && !rest.empty()) {
      std::string_view part = rest.substr(0, rest.find('/'));
      good = part != "..";
      rest.remove_prefix(std::min(rest.size(), part.size() + 1));
    }
    if (!good)
      return error(where, "expected a relative name without '..'; don't use "
                          "this file");
    if (entries_.count(name))
      return error(where, "found a second entry of this name, expected one; "
                          "don't use this file");
    return absl::OkStatus();
  }

  /// The record in front of the content must say the same.
  absl::Status readLocal(const std::string &name, const std::string &where,
                         const Sizes &sizes, uint16_t flags) {
    uint64_t at = sizes.offset;
    if (!holds(at, kLocalBytes) || at + kLocalBytes > directory_ ||
        get<uint32_t>(at) != kLocal)
      return damaged(where, absl::StrCat("found no entry at byte ", at));
    uint64_t nameBytes = get<uint16_t>(at + 26), extra = get<uint16_t>(at + 28);
    uint64_t data = at + kLocalBytes + nameBytes + extra;
    if (data > directory_ || sizes.size > directory_ - data)
      return damaged(where,
                     absl::StrCat("found ", sizes.size, " bytes at byte ", data,
                                  ", expected them before byte ", directory_,
                                  " (truncated)"));
    std::string_view local(
        reinterpret_cast<const char *>(file_.data() + at + kLocalBytes),
        nameBytes);
    Sizes own{get<uint32_t>(at + 18), get<uint32_t>(at + 22), 0};
    if (!widen(at + kLocalBytes + nameBytes, extra, own))
      return damaged(where, "found a zip64 field that is cut off");
    bool later = flags & kSizesFollow && own.packed == 0 && own.size == 0;
    if (local != name || get<uint16_t>(at + 6) != flags ||
        get<uint16_t>(at + 8) != 0 ||
        (!later && (own.packed != sizes.size || own.size != sizes.size)))
      return damaged(where, absl::StrCat("found name ", inQuotes(local),
                                         " and ", own.size,
                                         " bytes in front of the content, "
                                         "expected ",
                                         sizes.size, " as in the directory"));
    entries_[name] = {data, sizes.size};
    extents_.push_back({at, data + sizes.size, name});
    return absl::OkStatus();
  }

  struct Extent {
    uint64_t begin, end;
    std::string name;
  };
  absl::Status checkOverlap() {
    std::ranges::sort(extents_, {}, &Extent::begin);
    for (size_t i = 1; i < extents_.size(); ++i)
      if (extents_[i].begin < extents_[i - 1].end)
        return error(absl::StrCat("entry ", inQuotes(extents_[i].name)),
                     absl::StrCat("found at byte ", extents_[i].begin,
                                  " inside ", inQuotes(extents_[i - 1].name),
                                  ", expected entries that lie apart; don't "
                                  "use this file"));
    return absl::OkStatus();
  }

  std::span<const uint8_t> file_;
  const std::string &path_;
  uint64_t directory_ = 0, directoryBytes_ = 0, count_ = 0;
  std::map<std::string, ZipEntry> entries_;
  std::vector<Extent> extents_;
};

} // namespace

absl::StatusOr<std::map<std::string, ZipEntry>>
readZip(std::span<const uint8_t> file, const std::string &path) {
  return ZipReader(file, path).read();
}

} // namespace grok
