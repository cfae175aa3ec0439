// Rows of stored tensors, decoded.
#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "runtime/bundle/Quantize.h"
#include "runtime/bundle/Worker.h"
#include "runtime/checkpoint/MappedFile.h"
#include "runtime/checkpoint/StoredTensor.h"

namespace grok {

/// Why a coded value is not finite.
struct BadScale {
  size_t column = 0;      // the first
  bool overflows = false; // it is its product with the code; else the scale
};

class RowReader {
public:
  explicit RowReader(std::vector<MappedFile> files)
      : files_(std::move(files)) {}

  /// A row of a matrix, or the one row of a vector, in float32. The tensor's
  /// elements are F32, F16 or BF16, or coded; its data may lie at any address.
  /// What is not finite in it because of a scale, if anything.
  [[nodiscard]] std::optional<BadScale>
  read(const StoredTensor &tensor, uint64_t row, std::span<float> out);
  /// The same as stored, for plain 16-bit tensors.
  void readStored(const StoredTensor &tensor, uint64_t row,
                  std::span<uint16_t> out);
  /// Whether a tensor is int8 and the blocks of its scales can be told apart in
  /// RowScales.
  static bool hasCodes(const StoredTensor &tensor);
  /// Codes and scales of such a tensor as stored. What read() returns.
  [[nodiscard]] std::optional<BadScale> readCodes(const StoredTensor &tensor,
                                                  uint64_t row,
                                                  std::span<uint8_t> codes,
                                                  RowScales &scales);
  /// Has the system begin to read rows from the disk, where they lie together.
  void expect(const StoredTensor &tensor, uint64_t row, uint64_t count) const;
  const std::vector<MappedFile> &files() const { return files_; }
  /// Of the file that a tensor begins in.
  const std::string &path(const StoredTensor &tensor) const {
    return files_[tensor.parts[0].file].path();
  }

private:
  /// The bf16 scale of a block of inputs of a row.
  uint16_t blockScale(const StoredTensor &tensor, uint64_t row, uint64_t block);

  /// Bytes that may be touched before the pages are given back. A page fault
  /// maps up to kFaultBytes around it, which a read is charged for unless it
  /// continues the one before.
  static constexpr uint64_t kWindowBytes = uint64_t(256) << 20;
  static constexpr uint64_t kFaultBytes = uint64_t(64) << 10;
  /// What transposed bands may take together, how large one may be, and how
  /// many are kept: a matrix of Grok-1's is one band, and the packer reads two
  /// in turn.
  static constexpr uint64_t kBandsBytes = uint64_t(512) << 20;
  static constexpr uint64_t kBandBytes = uint64_t(192) << 20;
  static constexpr size_t kMostBands = 4;

  /// Rows [first, first + count) of a matrix whose columns are far apart in the
  /// file, row by row.
  struct Band {
    StoredTensor::Part part;
    ElementType type;                     // two may share a storage
    std::vector<uint64_t> shape, strides; // of the whole matrix
    uint64_t first, count;
    std::vector<uint8_t> bytes;
  };

  /// The stored bytes of a row as one run; `row_` holds them where the file
  /// does not.
  std::span<const uint8_t> rowBytes(const StoredTensor &tensor, uint64_t row,
                                    uint64_t columns);
  const Band &bandOf(const StoredTensor &tensor, uint64_t row);
  /// Makes room for a band.
  std::vector<uint8_t> bandMemory(uint64_t bytes);
  /// Calls `turn(begin, end)` for columns [begin, end) of `columns`, whole
  /// squares of them, on several threads.
  void turnBeside(uint64_t columns,
                  absl::FunctionRef<void(uint64_t, uint64_t)> turn);
  const uint8_t *touch(uint32_t file, uint64_t offset, uint64_t bytes);

  std::vector<MappedFile> files_;
  std::list<Band> bands_; // the one that was used last is first
  std::deque<Worker> turners_;
  uint64_t bandsBytes_ = 0;
  std::vector<uint8_t> row_;
  uint64_t touched_ = 0, lastEnd_ = 0;
  uint32_t lastFile_ = UINT32_MAX;
};

} // namespace grok
