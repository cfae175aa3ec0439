#include "tools/grokrun/Output.h"

#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstdio>

#include "absl/strings/str_cat.h"

namespace grok::grokrun {
namespace {

std::span<const uint8_t> bytesOf(std::string_view text) {
  return {reinterpret_cast<const uint8_t *>(text.data()), text.size()};
}

} // namespace

OutputFile::OutputFile(const std::string &path)
    : path_(path), staged_(absl::StrCat(path, ".tmp-", getpid())) {}

absl::StatusOr<std::unique_ptr<OutputFile>>
OutputFile::create(const std::string &path, uint64_t bytes) {
  std::unique_ptr<OutputFile> file(new OutputFile(path));
  if (absl::Status s = file->writer_.create(file->staged_, bytes); !s.ok()) {
    file->staged_.clear(); // it isn't ours to remove
    return s;
  }
  return file;
}

OutputFile::~OutputFile() {
  if (!staged_.empty())
    unlink(staged_.c_str());
}

absl::Status OutputFile::commit() {
  if (absl::Status s = writer_.close(); !s.ok())
    return s;
  if (std::rename(staged_.c_str(), path_.c_str()) != 0)
    return systemError(path_, "renaming the finished file", errno);
  staged_.clear();
  return absl::OkStatus();
}

absl::Status writeText(const std::string &path, std::string_view text) {
  absl::StatusOr<std::unique_ptr<OutputFile>> file =
      OutputFile::create(path, text.size());
  if (!file.ok())
    return file.status();
  if (absl::Status s = (*file)->write(bytesOf(text)); !s.ok())
    return s;
  return (*file)->commit();
}

absl::StatusOr<MatrixFile> MatrixFile::create(const std::string &path,
                                              const std::string &tensor,
                                              uint64_t rows, uint64_t columns) {
  uint64_t bytes = rows * columns * sizeof(float);
  std::string header =
      absl::StrCat("{\"", tensor, "\":{\"dtype\":\"F32\",\"shape\":[", rows,
                   ",", columns, "],\"data_offsets\":[0,", bytes, "]}}");
  header.resize((header.size() + 7) / 8 * 8, ' ');
  std::string start(8, '\0');
  for (int i = 0; i != 8; ++i)
    start[i] = char(uint64_t(header.size()) >> (8 * i));
  start += header;
  MatrixFile matrix;
  absl::StatusOr<std::unique_ptr<OutputFile>> file =
      OutputFile::create(path, start.size() + bytes);
  if (!file.ok())
    return file.status();
  matrix.file_ = std::move(*file);
  if (absl::Status s = matrix.file_->write(bytesOf(start)); !s.ok())
    return s;
  return matrix;
}

absl::Status MatrixFile::addRow(std::span<const float> row) {
  static_assert(std::endian::native == std::endian::little,
                "safetensors files are little-endian");
  return file_->write({reinterpret_cast<const uint8_t *>(row.data()),
                       row.size() * sizeof(float)});
}

} // namespace grok::grokrun
