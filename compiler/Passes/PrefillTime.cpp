#include "compiler/Passes/PrefillTime.h"

#include <algorithm>

#include "ir/Plan/PlanFacts.h"

using namespace grok;
using namespace grok::plan;

namespace {

// Shares of what the units could do, fitted to the launches of 8 x 512 ids of
// the reference model on an H200 (docs/performance.md): of the tensor cores'
// rate that many tiles reach together, that one tile reaches, and attention.
constexpr double kProductShare = 0.45, kTileShare = 0.5, kAttentionShare = 0.17;
/// Bytes that a launch between two sub-blocks moves of each element of the
/// stream: the residual, read and written, a product's result, an operand.
constexpr double kNormBytes = 14;
/// Between two launches in a row, however short they are.
constexpr double kLaunchUs = 2;

class PrefillModel {
public:
  PrefillModel(DeviceOp device, const Target &target)
      : target(target), sizes(sizesOf(device)),
        tile(device.find<PrefillOp>().getTileTokens()),
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
    return std::max({all, one, bytes, kLaunchUs});
  }

  const Target &target;
  const ModelConfig sizes;
  const double tile, planes;
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
                    kLaunchUs);
  layer +=
      2 * std::max(streamUs(kNormBytes * tokens * sizes.hiddenSize), kLaunchUs);
  if (!sizes.hash) { // scores, choice, groups, order
    // In float32, a sixteenth of the tensor cores' rate.
    double scores =
        16 * 2 * tokens * sizes.numExperts * sizes.hiddenSize / slots;
    layer += std::max(scores, kLaunchUs) + 3 * kLaunchUs;
  }
  return sizes.numLayers * layer;
}

} // namespace

double plan::prefillUs(DeviceOp device, const Target &target, uint32_t batch,
                       uint32_t prompt, uint32_t experts) {
  const PrefillModel model(device, target);
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
