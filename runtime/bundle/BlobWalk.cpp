#include "runtime/bundle/BlobWalk.h"

#include <algorithm>
#include <vector>

#include "runtime/bundle/PlanCheck.h"

namespace grok {
namespace {

struct BankParts {
  std::vector<BlobPart> layered; // of layer 0
  std::vector<BlobPart> single;
};

std::vector<BankParts> collect(const ModelConfig &model,
                               const PlanTables &plan) {
  std::vector<BankParts> banks(plan.banks.size());
  for (uint32_t i = 0; i < plan.matrices.size(); ++i) {
    const PlanMatrix &matrix = plan.matrices[i];
    for (uint32_t s = 0; s < plan.slots; ++s) {
      const SlotExtent &extent = matrix.slots[s];
      if (!extent.tileCount)
        continue;
      BankParts &bank = banks[extent.bank];
      (isPerLayer(matrix.kind) ? bank.layered : bank.single)
          .push_back({BlobPart::Kind::kExtent, i, s, 0, extent.offset,
                      extentBytes(plan, matrix, extent)});
    }
  }
  for (uint32_t s = 0; s < plan.embedding.size(); ++s) {
    const EmbeddingExtent &extent = plan.embedding[s];
    if (extent.rowCount)
      banks[extent.bank].single.push_back(
          {BlobPart::Kind::kEmbedding, 0, s, 0, extent.offset,
           uint64_t(extent.rowCount) * model.hiddenSize * 2});
  }
  banks[0].single.push_back({BlobPart::Kind::kVectors, 0, 0, 0,
                             plan.vectorsOffset,
                             model.numLayers * plan.vectorsLayerBytes +
                                 uint64_t(model.hiddenSize) * sizeof(float)});
  return banks;
}

} // namespace

absl::Status
forEachBlobPart(const ModelConfig &model, const PlanTables &plan,
                const std::function<absl::Status(const BlobPart &)> &visit) {
  auto byOffset = [](const BlobPart &a, const BlobPart &b) {
    return a.offset < b.offset;
  };
  std::vector<BankParts> banks = collect(model, plan);
  for (size_t b = 0; b < banks.size(); ++b) {
    auto &[layered, single] = banks[b];
    std::sort(layered.begin(), layered.end(), byOffset);
    std::sort(single.begin(), single.end(), byOffset);
    // The layers are one run of bytes among the single parts.
    auto after = single.begin();
    if (!layered.empty())
      after = std::lower_bound(single.begin(), single.end(), layered.front(),
                               byOffset);
    for (auto part = single.begin(); part != after; ++part)
      if (absl::Status status = visit(*part); !status.ok())
        return status;
    for (uint32_t layer = 0; layer < model.numLayers && !layered.empty();
         ++layer)
      for (BlobPart part : layered) {
        part.layer = layer;
        part.offset += layer * plan.banks[b].layerStride;
        if (absl::Status status = visit(part); !status.ok())
          return status;
      }
    for (auto part = after; part != single.end(); ++part)
      if (absl::Status status = visit(*part); !status.ok())
        return status;
  }
  return absl::OkStatus();
}

} // namespace grok
