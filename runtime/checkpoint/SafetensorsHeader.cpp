#include "runtime/checkpoint/SafetensorsHeader.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "runtime/checkpoint/HeaderJson.h"
#include "runtime/checkpoint/Messages.h"

static_assert(std::endian::native == std::endian::little,
              "safetensors is little-endian and is read without swapping");

namespace grok {
namespace {

/// What the bytes look like, for files that are no safetensors at all.
std::string_view lookalike(std::span<const uint8_t> file) {
  std::string_view start(reinterpret_cast<const char *>(file.data()),
                         std::min<size_t>(file.size(), 64));
  if (start.starts_with("version https://git-lfs"))
    return "; this is a Git LFS pointer, fetch the file itself (git lfs pull)";
  if (start.find_first_not_of(" \t\r\n") != start.npos &&
      start[start.find_first_not_of(" \t\r\n")] == '<')
    return "; this looks like a web page, most likely an error message saved "
           "in the file's place: download it again";
  if (start.starts_with("PK\x03\x04"))
    return "; this is a ZIP archive, as PyTorch writes: name it "
           "pytorch_model.bin";
  if (start.starts_with("GGUF"))
    return "; this is a GGUF file: name it *.gguf";
  return "; the file is damaged or no safetensors file: download it again";
}

/// Offset of the first byte that is no valid UTF-8 or is NUL, which no JSON
/// text holds.
std::optional<size_t> findBadText(std::span<const uint8_t> text) {
  size_t i = 0;
  while (i < text.size()) {
    uint8_t lead = text[i];
    if (lead == 0)
      return i;
    if (lead < 0x80) {
      ++i;
      continue;
    }
    size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    if (lead < 0xc2 || lead > 0xf4 || text.size() - i < length)
      return i;
    // The second byte's range excludes overlong forms, surrogates and what is
    // above U+10FFFF.
    uint8_t low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
    uint8_t high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
    if (text[i + 1] < low || text[i + 1] > high)
      return i;
    for (size_t j = 2; j < length; ++j)
      if ((text[i + j] & 0xc0) != 0x80)
        return i;
    i += length;
  }
  return std::nullopt;
}

bool multiply(uint64_t a, uint64_t b, uint64_t &out) {
  return !__builtin_mul_overflow(a, b, &out);
}

/// Bits of a tensor; none if they don't fit 64 bits. A zero dimension makes a
/// tensor empty wherever it stands among the dimensions.
std::optional<uint64_t> tensorBits(const TensorEntry &entry) {
  if (std::ranges::find(entry.shape, 0u) != entry.shape.end())
    return 0;
  uint64_t product = 1;
  for (uint64_t dimension : entry.shape)
    if (!multiply(product, dimension, product))
      return std::nullopt;
  if (!multiply(product, elementBits(entry.type), product))
    return std::nullopt;
  return product;
}

/// Why an entry is wrong, given where the one before it ended; empty if it
/// isn't. Offsets are still relative to the buffer.
std::string checkEntry(const TensorEntry &entry, uint64_t previousEnd) {
  if (entry.begin != previousEnd)
    return absl::StrCat("found data_offsets that begin at ", entry.begin,
                        ", expected ", previousEnd,
                        ", where the tensor before it ends");
  if (entry.end < entry.begin)
    return absl::StrCat("found data_offsets [", entry.begin, ", ", entry.end,
                        "], expected an end that is not before the begin");
  std::string type(elementName(entry.type));
  std::optional<uint64_t> bits = tensorBits(entry);
  if (!bits)
    return absl::StrCat("found shape ", shapeText(entry.shape), " of ", type,
                        ", expected a size that fits 64 bits");
  if (*bits % 8 != 0)
    return absl::StrCat("found shape ", shapeText(entry.shape), " of ", type,
                        ", which is ", *bits, " bits, expected whole bytes");
  if (*bits / 8 != entry.end - entry.begin)
    return absl::StrCat("found ", entry.end - entry.begin,
                        " bytes in data_offsets, expected ", *bits / 8,
                        " for shape ", shapeText(entry.shape), " of ", type);
  return "";
}

absl::Status damaged(const std::string &path, const std::string &what) {
  return absl::InvalidArgumentError(absl::StrCat(
      path, ": ", what, "; the file is damaged: download or export it again"));
}

/// The buffer must be what the header promises, no less and no more.
absl::Status checkCoverage(const std::vector<TensorEntry> &entries,
                           uint64_t buffer, const std::string &path) {
  uint64_t promised = entries.empty() ? 0 : entries.back().end;
  if (promised < buffer)
    return damaged(path,
                   absl::StrCat("found ", buffer,
                                " bytes after the header, expected ", promised,
                                " (", buffer - promised, " trailing bytes)"));
  if (promised == buffer)
    return absl::OkStatus();
  auto cut = std::ranges::find_if(
      entries, [&](const TensorEntry &e) { return e.end > buffer; });
  return damaged(path,
                 absl::StrCat("tensor ", inQuotes(cut->name), ": found ",
                              buffer, " bytes after the header, expected ",
                              promised, " (truncated)"));
}

/// Checks 1 to 3: the header's length.
absl::StatusOr<uint64_t> headerLength(std::span<const uint8_t> file,
                                      const std::string &path) {
  auto error = [&](const std::string &what) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": ", what, std::string(lookalike(file))));
  };
  if (file.empty())
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": found an empty file, expected a safetensors file; download "
              "it again"));
  if (file.size() < 8)
    return error(absl::StrCat("found ", file.size(),
                              " bytes, expected at least the 8 of the header's "
                              "length"));
  uint64_t length;
  std::memcpy(&length, file.data(), 8);
  if (length > kMaxHeaderBytes)
    return error(absl::StrCat("found a header length of ", length,
                              ", expected at most ", kMaxHeaderBytes));
  if (length > file.size() - 8)
    return error(absl::StrCat("found a header length of ", length,
                              ", expected at most the ", file.size() - 8,
                              " bytes that follow it"));
  return length;
}

} // namespace

absl::StatusOr<std::vector<TensorEntry>>
parseSafetensors(std::span<const uint8_t> file, const std::string &path) {
  absl::StatusOr<uint64_t> length = headerLength(file, path);
  if (!length.ok())
    return length.status();
  std::span<const uint8_t> text = file.subspan(8, *length);
  if (std::optional<size_t> bad = findBadText(text))
    return damaged(path, absl::StrCat("header, byte ", 8 + *bad, ": found 0x",
                                      absl::Hex(text[*bad], absl::kZeroPad2),
                                      ", expected UTF-8 text"));
  // nlohmann skips a byte order mark; the format does not have one.
  if (text.size() >= 3 && text[0] == 0xef && text[1] == 0xbb && text[2] == 0xbf)
    return damaged(path, "header, byte 8: found a byte order mark, expected "
                         "one JSON object");

  std::vector<TensorEntry> entries;
  if (std::string what = readHeaderJson(text, entries); !what.empty())
    return damaged(path, what);

  // An empty tensor comes before the one that begins where it lies.
  std::ranges::sort(entries, [](const TensorEntry &a, const TensorEntry &b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  uint64_t end = 0;
  for (const TensorEntry &entry : entries) {
    if (std::string what = checkEntry(entry, end); !what.empty())
      return damaged(path,
                     absl::StrCat("tensor ", inQuotes(entry.name), ": ", what));
    end = entry.end;
  }
  if (absl::Status status =
          checkCoverage(entries, file.size() - 8 - *length, path);
      !status.ok())
    return status;
  for (TensorEntry &entry : entries) {
    entry.begin += 8 + *length;
    entry.end += 8 + *length;
  }
  return entries;
}

} // namespace grok
