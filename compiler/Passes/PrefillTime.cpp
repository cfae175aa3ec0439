#include "compiler/Passes/PrefillTime.h"

#include <algorithm>
#include <cmath>

#include "compiler/Passes/Calibration.h"
#include "ir/Plan/PlanFacts.h"

using namespace grok;
using namespace grok::plan;
using namespace grok::plan::calibration;

namespace {

/// Bytes that a launch between two sub-blocks moves of each element of the
/// stream: the residual, read and written, a product's result, an operand.
constexpr double kNormBytes = 14;

class PrefillModel {
public:
  PrefillModel(DeviceOp device, const Target &target, double partTiles)
      : target(target), sizes(sizesOf(device)),
        tile(device.find<PrefillOp>().getTileTokens()), partTiles(partTiles),
        planes(device.find<BoundsOp>().getActivations() == OperandKind::Split
                   ? 2
                   : 1) {}

  /// One pass: `tokens` of prompts of which a query meets `pairs` / tokens
  /// keys.
  double passUs(double tokens, double pairs, double experts) const;

private:
  double slotFlopsPerUs() const {
    // Dense products of 16-bit operands, by the architecture.
    const double flopsPerCycle = target.sm >= 90 ? 4096 : 2048;
    return flopsPerCycle * target.clockMhz;
  }
  double streamUs(double bytes) const {
    return bytes / target.streamBytesPerSecond(target.smCount) * 1e6;
  }
  /// A product of `tokens` columns with `matrices` matrices, of which each
  /// column meets one.
  double productUs(MatrixKind kind, double tokens, double matrices = 1) const {
    const MatrixShape shape = matrixShape(sizes, kind);
    const double k = planes * double(shape.k), rows = shape.rows;
    if (rows == 0)
      return 0;
    double all = 2 * rows * k * tokens /
                 (slotFlopsPerUs() * target.smCount * kProductShare),
           one = 2.0 * kTileHeight * tile * k / (slotFlopsPerUs() * kTileShare),
           bytes = streamUs(2 * rows * shape.k * matrices);
    return std::max({all, one, bytes, kPrefillLaunchUs}) +
           kTileStartUs * tilesOfSlot(shape.rows, tokens, matrices);
  }
  /// Tiles of a product that follow one another on a slot. A matrix's columns
  /// fill whole tiles and part of one.
  double tilesOfSlot(uint32_t rows, double tokens, double matrices) const {
    const double ofRow = std::max(1.0, tokens / (matrices * tile) + partTiles);
    return std::max(1.0, ceilDiv(rows, kTileHeight) * matrices * ofRow /
                             target.smCount);
  }
  /// A learned router's scores. A block of tokens stages its rows and the
  /// router's part after part, and waits for each; then its warps read both
  /// from shared memory, which serves one of them in a cycle.
  double scoresUs(double tokens) const {
    const double parts = ceilDiv(sizes.hiddenSize, kRouterK),
                 blocks = std::ceil(tokens / kRouterTokens / target.smCount);
    const uint32_t ofThread =
        ceilDiv(sizes.numExperts, kTokenThreads / kRouterTokens);
    const double cycles =
        double(kTokenThreads / 32) * sizes.hiddenSize * (ofThread + 1);
    return parts * kRouterTrips * target.handOverUs +
           blocks * cycles / target.clockMhz;
  }

  const Target &target;
  const ModelConfig sizes;
  const double tile, partTiles, planes;
};

double PrefillModel::passUs(double tokens, double pairs, double experts) const {
  const double used = tokens * sizes.expertsPerToken,
               slots = slotFlopsPerUs() * target.smCount;
  double layer = productUs(MatrixKind::kQkv, tokens) +
                 productUs(MatrixKind::kAttnOut, tokens) +
                 productUs(MatrixKind::kGateUp, used, experts) +
                 productUs(MatrixKind::kDown, used, experts) +
                 productUs(MatrixKind::kDenseGateUp, tokens) +
                 productUs(MatrixKind::kDenseDown, tokens);
  layer += std::max(4 * pairs * sizes.numHeads * sizes.headDim /
                        (slots * kAttentionShare),
                    kPrefillLaunchUs);
  layer += 2 * std::max(streamUs(kNormBytes * tokens * sizes.hiddenSize),
                        kPrefillLaunchUs);
  if (!sizes.hash) // and choice, groups, order
    layer += scoresUs(tokens) + 3 * kPrefillLaunchUs;
  return sizes.numLayers * layer;
}

} // namespace

double plan::prefillUs(DeviceOp device, const Target &target, uint32_t batch,
                       uint32_t prompt, double experts, double partTiles) {
  const PrefillModel model(device, target, partTiles);
  const double all = double(batch) * prompt,
               pairs = double(batch) * prompt * (prompt + 1) / 2;
  const double most = device.find<PrefillOp>().getTokens();
  double us = 0;
  for (double left = all; left > 0; left -= most) {
    const double tokens = std::min(left, most);
    us += model.passUs(tokens, pairs * tokens / all, experts);
  }
  return us;
}
