// Where weights come from, whatever the container: a checkpoint, a bundle, or a
// generator.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "runtime/bundle/Quantize.h"
#include "runtime/bundle/WeightLayout.h"

namespace grok {

/// A logical tensor of the model; `layer` and `expert` are 0 where they don't
/// apply.
struct TensorId {
  TensorKind kind = TensorKind::kTokenEmbedding;
  uint32_t layer = 0, expert = 0;
  auto operator<=>(const TensorId &) const = default;
};

/// Shape [rows, columns]; vectors are [1, D]. Columns are the fan-in of a
/// matrix.
struct TensorShape {
  uint32_t rows, columns;
};
TensorShape tensorShape(const ModelConfig &model, TensorKind kind);
/// "layers.3.experts.5.gate" and the like, for messages.
std::string tensorName(const TensorId &id);

/// Rows of logical tensors. Implementations are safe to call from one thread at
/// a time and hold no more than a bounded window of the model in memory.
class TensorSource {
public:
  virtual ~TensorSource() = default;

  /// Text that differs whenever a value may; empty: unknown. By it, packing
  /// goes on where an earlier run was killed.
  virtual std::string identity() const { return ""; }
  /// An error if a file was written to since it was opened: what was read may
  /// be neither what it was nor what it is.
  virtual absl::Status checkUnchanged() const { return absl::OkStatus(); }
  /// Whether a row costs almost as much as the whole matrix, as where columns
  /// lie together: the packer then finishes one matrix before the next.
  virtual bool wantsWholeMatrices() const { return false; }

  /// Announces rows that will be read soon: a disk can begin with them.
  virtual void expect(const TensorId &, uint32_t /*firstRow*/,
                      uint32_t /*count*/) {}

  /// One row, converted to float32 (exact for 16-bit sources). `out` has
  /// `columns` elements.
  virtual absl::Status readRow(const TensorId &id, uint32_t row,
                               std::span<float> out) = 0;

  /// One row in 16-bit storage, rounded to nearest even when the source is
  /// wider or of the other 16-bit type (a finite value that overflows f16 is an
  /// error). The default goes through readRow.
  virtual absl::Status readRow16(const TensorId &id, uint32_t row, DType dtype,
                                 std::span<uint16_t> out);

  /// One row as codes of `q`, in the order of the inputs, with their scales: as
  /// stored where the source has them, else quantised, which adds to `error`.
  /// An element that is not finite is an error. The default goes through
  /// readRow.
  virtual absl::Status readCodes(const TensorId &id, uint32_t row,
                                 Quantization q, std::span<uint8_t> codes,
                                 RowScales &scales, QuantizationError &error);

private:
  std::vector<float> values_, stored_; // a row
};

/// Rounds a row as readRow16 does, with its error.
absl::Status roundRow(const TensorId &id, uint32_t row, DType dtype,
                      std::span<const float> in, std::span<uint16_t> out);

} // namespace grok
