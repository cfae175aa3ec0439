// The plan's matrices cut into shares, which threads take. A share has the same
// range of tiles of all matrices of one height, so that the sum over experts of
// an output row is taken by one thread, in order.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/bundle/PlanTables.h"

namespace grok::cpu {

/// Consecutive tiles of one slot's extent.
struct Segment {
  uint64_t offset;      // of the extent in the blob, layer 0
  uint64_t layerStride; // bytes
  uint32_t extentTiles;
  uint32_t firstTile; // in the extent
  uint32_t tiles;
  uint32_t row; // first matrix row of the segment
};

struct HostMatrix {
  uint32_t steps = 0;
  std::vector<Segment>
      segments; // all shares', in their order, ascending in row
  std::vector<uint32_t> shareBegin; // [shares + 1]

  std::span<const Segment> share(unsigned index) const {
    return std::span(segments).subspan(
        shareBegin[index], shareBegin[index + 1] - shareBegin[index]);
  }
};

/// Rows [begin, end) of a matrix of `tiles` tiles that a share has, padding
/// rows included.
struct RowRange {
  uint32_t begin, end;
};
RowRange rowsOf(uint32_t tiles, unsigned share, unsigned shares);

HostMatrix cutMatrix(const PlanMatrix &matrix, const PlanTables &plan,
                     unsigned shares);

/// Where the parts of one matrix row lie.
class RowLocator {
public:
  RowLocator() = default;
  RowLocator(const PlanMatrix &matrix, const PlanTables &plan);
  /// Byte offset in the blob of the row's part of the fragment of step `step`
  /// of the stream. Those of a K block follow one another.
  uint64_t at(uint32_t row, uint32_t step) const;
  /// Byte offset of the row's scales, if it has any.
  uint64_t scales(uint32_t row) const;
  uint32_t steps() const { return steps_; }

private:
  const SlotExtent &extentOf(uint32_t row) const;

  std::vector<SlotExtent> extents_; // with tiles, ascending
  uint32_t steps_ = 0, blockSteps_ = 0;
  Quantization quantization_ = Quantization::kNone;
};

} // namespace grok::cpu
