#include "codegen/Emit/Constants.h"

namespace grok {

static void hashConstants(Constants &c, const HashRouting &hash) {
  c.count("kNumGroups", hash.numGroups);
  c.count("kExpertsPerGroup", hash.expertsPerGroup);
  c.count("kTokenMultiplier", hash.tokenMultiplier);
  c.count("kPositionMultiplier", hash.positionMultiplier);
  c.count("kHashBits", hash.hashBits);
  c.count("kIndexShift", hash.indexShift);
  c.count("kIndexMask", hash.indexMask);
  c.count("kPositionOffsetMask", hash.positionOffsetMask);
}

Constants modelConstants(const ModelConfig &m, DType dtype) {
  Constants c;
  c.count("kVocab", m.vocabSize);
  c.count("kHidden", m.hiddenSize);
  c.count("kLayers", m.numLayers);
  c.count("kHeads", m.numHeads);
  c.count("kKvHeads", m.numKvHeads);
  c.count("kHeadDim", m.headDim);
  c.count("kExperts", m.numExperts);
  c.count("kExpertsPerToken", m.expertsPerToken);
  c.count("kExpertWidth", m.expertWidth);
  c.count("kDenseWidth", m.denseWidth);
  c.count("kTemperatureLength", m.attentionTemperatureLength);
  c.real("kEmbeddingMultiplier", m.embeddingMultiplier);
  c.real("kOutputMultiplier", m.outputMultiplier);
  c.real("kAttentionScale", m.attentionScale);
  c.real("kAttentionCap", m.attentionCap);
  c.real("kRouterCap", m.routerCap);
  c.real("kFinalCap", m.finalCap);
  c.real("kNormEps", m.normEps);
  c.flag("kGeluErf", m.gelu == Gelu::kErf);
  c.flag("kTiedHead", m.tiedHead);
  c.flag("kHashRouting", m.hash.has_value());
  c.flag("kBF16", dtype == DType::kBF16);
  hashConstants(c, m.hash.value_or(HashRouting{}));
  return c;
}

Constants sharedPlanConstants(const PlanTables &plan, uint32_t sm) {
  Constants c;
  c.count("kSm", sm);
  c.count("kMaxBatch", plan.maxBatch);
  c.count("kMaxSeq", plan.maxSeq);
  c.count("kPlanes", plan.activations == Activations::kSplit ? 2 : 1);
  c.count("kBlockSteps", plan.blockSteps);
  c.bytes("kKvOffset", offsetOf(plan, "kv"));
  c.bytes("kVectorsOffset", plan.vectorsOffset);
  c.bytes("kVectorsLayerBytes", plan.vectorsLayerBytes);
  return c;
}

uint64_t offsetOf(const PlanTables &plan, const char *region) {
  const ArenaRegion *placed = plan.findRegion(region);
  return placed ? placed->offset : 0;
}

std::vector<uint64_t> offsetsOf(const PlanTables &plan,
                                std::span<const RegionSize> regions) {
  std::vector<uint64_t> offsets;
  for (const RegionSize &region : regions)
    offsets.push_back(offsetOf(plan, region.name));
  return offsets;
}

} // namespace grok
