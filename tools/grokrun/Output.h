// Safetensors files, which appear whole or not at all.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/bundle/OutputFile.h"

namespace grok::grokrun {

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
