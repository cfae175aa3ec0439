#include "test/unit/bundle/TestModel.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>
#include <stdlib.h>

#include "runtime/bundle/PlanCheck.h"

namespace grok::test {
namespace {

void splitTiles(PlanMatrix &matrix, uint32_t firstSlot, uint32_t slots) {
  for (uint32_t s = 0; s < slots; ++s) {
    uint32_t begin = uint64_t(matrix.tiles) * s / slots,
             end = uint64_t(matrix.tiles) * (s + 1) / slots;
    if (begin != end) {
      matrix.slots[firstSlot + s].tileBegin = begin;
      matrix.slots[firstSlot + s].tileCount = end - begin;
    }
  }
}

void addMatrix(const ModelConfig &model, PlanTables &plan, MatrixKind kind,
               uint32_t expert) {
  MatrixShape shape = matrixShape(model, kind);
  PlanMatrix matrix{kind,
                    expert,
                    ceilDiv(shape.rows, kTileRows),
                    ceilDiv(shape.k, kTileK),
                    {}};
  matrix.slots.resize(plan.slots);
  uint32_t first = 0, count = plan.slots;
  bool isExpert = kind == MatrixKind::kGateUp || kind == MatrixKind::kDown;
  if (isExpert && plan.smPolicy == SmPolicy::kGroup) {
    count = plan.slots / model.hash->numGroups;
    first = expert / model.hash->expertsPerGroup * count;
  }
  splitTiles(matrix, first, count);
  for (uint32_t s = 0; s < plan.slots; ++s)
    if (matrix.slots[s].tileCount)
      matrix.slots[s].bank = (expert + s) % plan.banks.size();
  plan.matrices.push_back(matrix);
}

void addMatrices(const ModelConfig &model, PlanTables &plan) {
  auto experts = [&](MatrixKind kind) {
    for (uint32_t e = 0; e < model.numExperts; ++e)
      if (plan.experts[e] == PlanTables::Expert::kKept)
        addMatrix(model, plan, kind, e);
  };
  addMatrix(model, plan, MatrixKind::kQkv, 0);
  addMatrix(model, plan, MatrixKind::kAttnOut, 0);
  experts(MatrixKind::kGateUp);
  if (model.denseWidth)
    addMatrix(model, plan, MatrixKind::kDenseGateUp, 0);
  experts(MatrixKind::kDown);
  if (model.denseWidth)
    addMatrix(model, plan, MatrixKind::kDenseDown, 0);
  addMatrix(model, plan, MatrixKind::kHead, 0);
  if (!model.tiedHead)
    for (const SlotExtent &head : plan.matrices.back().slots) {
      uint32_t begin = head.tileBegin * kTileRows;
      plan.embedding.push_back(
          {begin, std::min(head.tileCount * kTileRows, model.vocabSize - begin),
           head.bank, 0});
    }
}

/// Bank by bank: vectors, the layers, head, embedding.
void placeBank(const ModelConfig &model, PlanTables &plan, uint32_t b,
               uint64_t &at) {
  auto place = [&](bool layered) {
    for (PlanMatrix &matrix : plan.matrices)
      for (SlotExtent &extent : matrix.slots)
        if (extent.tileCount && extent.bank == b &&
            isPerLayer(matrix.kind) == layered) {
          extent.offset = at;
          at += extentBytes(plan, matrix, extent);
        }
  };
  if (b == 0) {
    plan.vectorsOffset = at;
    plan.vectorsLayerBytes = alignUp(layerVectorBytes(model), 256);
    at += model.numLayers * plan.vectorsLayerBytes + model.hiddenSize * 4;
    at = alignUp(at, 512);
  }
  uint64_t begin = at;
  place(true);
  plan.banks[b].layerStride = at - begin;
  at = begin + model.numLayers * plan.banks[b].layerStride;
  place(false);
  for (EmbeddingExtent &extent : plan.embedding)
    if (extent.rowCount && extent.bank == b) {
      extent.offset = at;
      at += alignUp(uint64_t(extent.rowCount) * model.hiddenSize * 2, 16);
    }
}

void placeBanks(const ModelConfig &model, PlanTables &plan, uint64_t align) {
  uint64_t at = 0;
  for (uint32_t b = 0; b < plan.banks.size(); ++b) {
    BankSegment &bank = plan.banks[b];
    bank.offset = at;
    placeBank(model, plan, b, at);
    bank.usedBytes = at - bank.offset;
    at = alignUp(at, align);
    bank.bytes = at - bank.offset;
  }
  plan.blobBytes = at;
}

void planMemory(const ModelConfig &model, PlanTables &plan) {
  plan.chunkBytes = 4096;
  plan.inFlightChunks = 4;
  plan.paceCycles = 700;
  plan.threads = 288;
  DecodeShape shape = decodeShape(model, plan);
  plan.sharedBytes = sharedLayout(shape).total;
  uint64_t at = 0;
  for (const RegionSize &region : decodeRegions(shape).regions) {
    if (!region.bytes)
      continue;
    plan.arena.push_back({region.name, at, region.bytes,
                          uint32_t(region.firstPhase),
                          uint32_t(region.lastPhase)});
    at = alignUp(at + region.bytes, kRegionAlign);
  }
  plan.kvReserveBytes = kKvReserveUnit;
  plan.arena.push_back({"kv", at, plan.kvReserveBytes, 0, kNumPhases - 1});
  plan.arenaBytes = at + plan.kvReserveBytes;
}

} // namespace

ModelConfig learnedModel() {
  ModelConfig m;
  m.vocabSize = 83;
  m.hiddenSize = 72; // two full fragments and a quarter
  m.numLayers = 3;
  m.numHeads = 4;
  m.numKvHeads = 2;
  m.headDim = 10;
  m.numExperts = 4;
  m.expertsPerToken = 2;
  m.expertWidth = 41;
  m.denseWidth = 50;
  m.maxPositions = 128;
  m.embeddingMultiplier = 78.38367176906169;
  m.outputMultiplier = 0.5773502691896257;
  m.attentionScale = 0.08838834764831845;
  m.attentionCap = 30;
  m.gelu = Gelu::kErf;
  m.tiedHead = false;
  m.eosId = 2;
  return m;
}

ModelConfig hashModel() {
  ModelConfig m = learnedModel();
  m.hash = HashRouting{2, 2, 2654435761u, 123456789u, 6, 4, 1, 7};
  m.expertsPerToken = 1;
  m.denseWidth = 0;
  m.tiedHead = true;
  return m;
}

PlanTables makePlan(const ModelConfig &model, const PlanOptions &options) {
  PlanTables plan;
  plan.slots = options.slots;
  plan.maxBatch = 2;
  plan.maxSeq = 64;
  plan.dtype = options.dtype;
  plan.quantization = options.quantization;
  plan.smPolicy = options.smPolicy;
  plan.blockSteps = options.blockSteps;
  plan.ringStages = options.ringStages;
  plan.experts.resize(model.numExperts, PlanTables::Expert::kKept);
  for (uint32_t e : options.dropped)
    plan.experts[e] = PlanTables::Expert::kPruned;
  plan.banks.resize(options.banks);
  addMatrices(model, plan);
  placeBanks(model, plan, options.bankAlign);
  planMemory(model, plan);
  return plan;
}

CompileOptions optionsOf(const PlanTables &plan) {
  CompileOptions o;
  o.dtype = plan.dtype;
  o.quantization = plan.quantization;
  o.activations = plan.activations;
  o.smPolicy = plan.smPolicy;
  o.bankPolicy = plan.bankPolicy;
  o.maxBatch = plan.maxBatch;
  o.maxSeq = plan.maxSeq;
  return o;
}

BundleContents contentsOf(const ModelConfig &model, const PlanTables &plan,
                          WeightsRecipe recipe) {
  BundleContents c{model, optionsOf(plan), plan, {}, {}};
  c.manifest.compilerVersion = "0.1.0";
  c.manifest.target = {"test-part", "{\n  \"name\": \"test-part\"\n}\n"};
  c.manifest.sm = 80;
  c.manifest.ptxVersion = "8.0";
  c.manifest.minimumDriver = 12000;
  c.manifest.weights = recipe;
  c.manifest.predictionJson =
      "{\n  \"clock_mhz\": 1410.0,\n  \"predictions\": []\n}\n";
  c.files = {{"decode.ptx", "// ptx\n"}, {"plan.mlir", "module {}\n"}};
  return c;
}

std::string packSynthetic(const ModelConfig &model, const PlanTables &plan,
                          uint64_t seed) {
  std::string blob;
  auto sink = [&](std::span<const uint8_t> bytes) {
    blob.append(reinterpret_cast<const char *>(bytes.data()), bytes.size());
    return absl::OkStatus();
  };
  absl::Status status =
      packBlob(model, plan, *syntheticSource(model, seed), sink);
  EXPECT_TRUE(status.ok()) << status;
  return blob;
}

void forEachTensor(const ModelConfig &model,
                   const std::function<void(const TensorId &)> &visit) {
  visit({TensorKind::kTokenEmbedding, 0, 0});
  visit({TensorKind::kHead, 0, 0});
  visit({TensorKind::kFinalNorm, 0, 0});
  for (uint32_t l = 0; l < model.numLayers; ++l) {
    for (TensorKind kind :
         {TensorKind::kPreAttnNorm, TensorKind::kPostAttnNorm,
          TensorKind::kPreMoeNorm, TensorKind::kPostMoeNorm, TensorKind::kQuery,
          TensorKind::kKey, TensorKind::kValue, TensorKind::kAttnOut})
      visit({kind, l, 0});
    if (!model.hash)
      visit({TensorKind::kRouter, l, 0});
    for (uint32_t e = 0; e < model.numExperts; ++e)
      for (TensorKind kind : {TensorKind::kExpertGate, TensorKind::kExpertUp,
                              TensorKind::kExpertDown})
        visit({kind, l, e});
    if (model.denseWidth)
      for (TensorKind kind : {TensorKind::kDenseGate, TensorKind::kDenseUp,
                              TensorKind::kDenseDown})
        visit({kind, l, 0});
  }
}

std::string readText(const std::string &path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in.good()) << path;
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

void writeText(const std::string &path, const std::string &text) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << text;
  EXPECT_TRUE(out.good()) << path;
}

TempDirectory::TempDirectory() {
  path_ = std::filesystem::temp_directory_path() / "grok-bundle-XXXXXX";
  EXPECT_NE(::mkdtemp(path_.data()), nullptr);
}

TempDirectory::~TempDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::vector<std::string> TempDirectory::names() const {
  std::vector<std::string> out;
  for (const auto &entry : std::filesystem::directory_iterator(path_))
    out.push_back(entry.path().filename());
  std::sort(out.begin(), out.end());
  return out;
}

} // namespace grok::test
