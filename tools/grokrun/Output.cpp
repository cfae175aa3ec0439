#include "tools/grokrun/Output.h"

#include <bit>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace grok::grokrun {
namespace {

std::span<const uint8_t> bytesOf(std::string_view text) {
  return {reinterpret_cast<const uint8_t *>(text.data()), text.size()};
}

std::span<const uint8_t> bytesOf(std::span<const float> values) {
  static_assert(std::endian::native == std::endian::little,
                "safetensors files are little-endian");
  return {reinterpret_cast<const uint8_t *>(values.data()),
          values.size_bytes()};
}

/// A tensor of a safetensors header; `begin`: its offset in the data.
std::string entry(const std::string &tensor, uint64_t rows, uint64_t columns,
                  uint64_t begin) {
  return absl::StrCat("\"", tensor, "\":{\"dtype\":\"F32\",\"shape\":[", rows,
                      ",", columns, "],\"data_offsets\":[", begin, ",",
                      begin + rows * columns * sizeof(float), "]}");
}

/// Everything of a safetensors file before the data.
std::string fileStart(const std::vector<std::string> &entries) {
  std::string header = absl::StrCat("{", absl::StrJoin(entries, ","), "}");
  header.resize((header.size() + 7) / 8 * 8, ' ');
  std::string start(8, '\0');
  for (int i = 0; i != 8; ++i)
    start[size_t(i)] = char(uint64_t(header.size()) >> (8 * i));
  return start + header;
}

} // namespace

absl::StatusOr<MatrixFile> MatrixFile::create(const std::string &path,
                                              const std::string &tensor,
                                              uint64_t rows, uint64_t columns) {
  std::string start = fileStart({entry(tensor, rows, columns, 0)});
  MatrixFile matrix;
  absl::StatusOr<std::unique_ptr<OutputFile>> file =
      OutputFile::create(path, start.size() + rows * columns * sizeof(float));
  if (!file.ok())
    return file.status();
  matrix.file_ = std::move(*file);
  if (absl::Status s = matrix.file_->write(bytesOf(start)); !s.ok())
    return s;
  return matrix;
}

absl::Status MatrixFile::addRow(std::span<const float> row) {
  return file_->write(bytesOf(row));
}

absl::Status writeMatrices(const std::string &path,
                           const std::vector<Matrix> &matrices) {
  std::vector<std::string> entries;
  uint64_t bytes = 0;
  for (const Matrix &m : matrices) {
    entries.push_back(
        entry(m.name, m.values.size() / m.columns, m.columns, bytes));
    bytes += m.values.size() * sizeof(float);
  }
  std::string start = fileStart(entries);
  absl::StatusOr<std::unique_ptr<OutputFile>> file =
      OutputFile::create(path, start.size() + bytes);
  if (!file.ok())
    return file.status();
  if (absl::Status s = (*file)->write(bytesOf(start)); !s.ok())
    return s;
  for (const Matrix &m : matrices)
    if (absl::Status s = (*file)->write(bytesOf(std::span(m.values))); !s.ok())
      return s;
  return (*file)->commit();
}

} // namespace grok::grokrun
