// Files that appear whole or not at all.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/bundle/FileIO.h"

namespace grok::grokrun {

/// Written beside `path` and renamed by commit(); removed if it isn't called.
class OutputFile {
public:
  /// `bytes`: the size that it will have.
  static absl::StatusOr<std::unique_ptr<OutputFile>>
  create(const std::string &path, uint64_t bytes);
  ~OutputFile();
  OutputFile(const OutputFile &) = delete;
  absl::Status write(std::span<const uint8_t> bytes) {
    return writer_.write(bytes);
  }
  absl::Status commit();

private:
  explicit OutputFile(const std::string &path);
  std::string path_, staged_;
  FileWriter writer_;
};

absl::Status writeText(const std::string &path, std::string_view text);

/// A safetensors file with one float32 tensor [rows, columns], row by row.
class MatrixFile {
public:
  static absl::StatusOr<MatrixFile> create(const std::string &path,
                                           const std::string &tensor,
                                           uint64_t rows, uint64_t columns);
  absl::Status addRow(std::span<const float> row);
  absl::Status commit() { return file_->commit(); }

private:
  std::unique_ptr<OutputFile> file_;
};

/// A float32 tensor [values / columns, columns] in memory.
struct Matrix {
  std::string name;
  uint64_t columns = 0;
  std::vector<float> values;
};
/// A safetensors file of them, in order.
absl::Status writeMatrices(const std::string &path,
                           const std::vector<Matrix> &matrices);

} // namespace grok::grokrun
