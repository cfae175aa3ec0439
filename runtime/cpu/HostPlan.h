// The plan's matrices cut into the threads' shares. Every thread owns the same
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
      segments; // all threads', in thread order, ascending in row
  std::vector<uint32_t> threadBegin; // [threads + 1]

  std::span<const Segment> share(unsigned thread) const {
    return std::span(segments).subspan(
        threadBegin[thread], threadBegin[thread + 1] - threadBegin[thread]);
  }
};

/// Rows [begin, end) of a matrix of `tiles` tiles that a thread owns, padding
/// rows included.
struct RowRange {
  uint32_t begin, end;
};
RowRange rowsOf(uint32_t tiles, unsigned thread, unsigned threads);

HostMatrix cutMatrix(const PlanMatrix &matrix, const PlanTables &plan,
                     unsigned threads);

/// Where the fragments of one matrix row begin: byte offset of its first
/// fragment row in each K block.
class RowLocator {
public:
  RowLocator() = default;
  RowLocator(const PlanMatrix &matrix, uint32_t blockSteps);
  /// Byte offset in the blob of the row's 64 bytes at K step `step`, the first
  /// of a block.
  uint64_t at(uint32_t row, uint32_t step) const;
  uint32_t steps() const { return steps_; }

private:
  std::vector<SlotExtent> extents_; // with tiles, ascending
  uint32_t steps_ = 0, blockSteps_ = 0;
};

} // namespace grok::cpu
