#include "runtime/cpu/HostPlan.h"

#include <algorithm>

#include "runtime/bundle/Fragment.h"

namespace grok::cpu {
namespace {

std::vector<SlotExtent> occupiedExtents(const PlanMatrix &matrix) {
  std::vector<SlotExtent> extents;
  for (const SlotExtent &extent : matrix.slots)
    if (extent.tileCount)
      extents.push_back(extent);
  std::sort(extents.begin(), extents.end(),
            [](const SlotExtent &a, const SlotExtent &b) {
              return a.tileBegin < b.tileBegin;
            });
  return extents;
}

} // namespace

RowRange rowsOf(uint32_t tiles, unsigned share, unsigned shares) {
  return {uint32_t(uint64_t(tiles) * share / shares) * kTileRows,
          uint32_t(uint64_t(tiles) * (share + 1) / shares) * kTileRows};
}

HostMatrix cutMatrix(const PlanMatrix &matrix, const PlanTables &plan,
                     unsigned shares) {
  HostMatrix host;
  host.steps = matrix.steps;
  std::vector<SlotExtent> extents = occupiedExtents(matrix);
  for (unsigned share = 0; share != shares; ++share) {
    host.shareBegin.push_back(uint32_t(host.segments.size()));
    RowRange rows = rowsOf(matrix.tiles, share, shares);
    uint32_t begin = rows.begin / kTileRows, end = rows.end / kTileRows;
    for (const SlotExtent &extent : extents) {
      uint32_t from = std::max(begin, extent.tileBegin);
      uint32_t to = std::min(end, extent.tileBegin + extent.tileCount);
      if (from < to)
        host.segments.push_back({extent.offset,
                                 plan.banks[extent.bank].layerStride,
                                 extent.tileCount, from - extent.tileBegin,
                                 to - from, from * kTileRows});
    }
  }
  host.shareBegin.push_back(uint32_t(host.segments.size()));
  return host;
}

RowLocator::RowLocator(const PlanMatrix &matrix, const PlanTables &plan)
    : extents_(occupiedExtents(matrix)), steps_(matrix.steps),
      blockSteps_(plan.blockSteps), quantization_(plan.quantization) {}

const SlotExtent &RowLocator::extentOf(uint32_t row) const {
  auto after =
      std::upper_bound(extents_.begin(), extents_.end(), row / kTileRows,
                       [](uint32_t t, const SlotExtent &extent) {
                         return t < extent.tileBegin;
                       });
  return *(after - 1);
}

uint64_t RowLocator::at(uint32_t row, uint32_t step) const {
  const SlotExtent &extent = extentOf(row);
  return extent.offset +
         fragmentOffset(quantization_, row / kTileRows - extent.tileBegin, step,
                        extent.tileCount, steps_, blockSteps_) +
         row % kTileRows * fragmentRowBytes(quantization_);
}

uint64_t RowLocator::scales(uint32_t row) const {
  const SlotExtent &extent = extentOf(row);
  return extent.offset + rowScaleOffset(quantization_,
                                        row - extent.tileBegin * kTileRows,
                                        steps_);
}

} // namespace grok::cpu
