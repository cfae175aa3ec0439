#include <functional>
#include <gtest/gtest.h>

#include "runtime/bundle/PlanCheck.h"
#include "test/unit/bundle/TestModel.h"

namespace grok {
namespace {

using test::hashModel;
using test::learnedModel;
using test::makePlan;

test::PlanOptions smallPlan() {
  test::PlanOptions options;
  options.slots = options.banks = 2;
  return options;
}

TEST(PlanTables, SurvivesTheFile) {
  for (const ModelConfig &model : {learnedModel(), hashModel()}) {
    PlanTables plan = makePlan(model);
    std::string bytes = plan.serialize();
    auto back = PlanTables::parse(bytes, "plan.bin", model);
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(*back, plan);
    EXPECT_EQ(back->serialize(), bytes);
  }
}

TEST(PlanTables, FindsMatricesAndRegions) {
  PlanTables plan = makePlan(learnedModel());
  ASSERT_NE(plan.findMatrix(MatrixKind::kDown, 3), nullptr);
  EXPECT_EQ(plan.findMatrix(MatrixKind::kDown, 3)->expert, 3u);
  EXPECT_EQ(plan.findMatrix(MatrixKind::kDown, 4), nullptr);
  ASSERT_NE(plan.findRegion("kv"), nullptr);
  EXPECT_EQ(plan.findRegion("none"), nullptr);
}

TEST(PlanTables, AcceptsAMachineWithoutAKernel) {
  ModelConfig model = learnedModel();
  PlanTables plan = makePlan(model);
  plan.ringStages = plan.chunkBytes = plan.inFlightChunks = 0;
  plan.paceCycles = plan.sharedBytes = plan.threads = 0;
  plan.arena = {{"kv", 0, kKvReserveUnit, 0, 7}};
  plan.arenaBytes = kKvReserveUnit;
  EXPECT_TRUE(checkPlan(plan, model, "p").ok()) << checkPlan(plan, model, "p");
}

TEST(PlanTables, EveryTruncationIsAnError) {
  ModelConfig model = hashModel();
  std::string bytes = makePlan(model, smallPlan()).serialize();
  for (size_t n = 0; n < bytes.size(); ++n)
    ASSERT_FALSE(PlanTables::parse(bytes.substr(0, n), "p", model).ok()) << n;
  EXPECT_FALSE(PlanTables::parse(bytes + '\0', "p", model).ok());
}

TEST(PlanTables, EveryChangedByteIsReadOrRefused) {
  ModelConfig model = learnedModel();
  std::string bytes = makePlan(model, smallPlan()).serialize();
  for (size_t i = 0; i < bytes.size(); ++i)
    for (int change : {0x01, 0x02, 0x10, 0x80, 0xff}) {
      std::string changed = bytes;
      changed[i] ^= char(change);
      auto plan = PlanTables::parse(changed, "p", model);
      // What is accepted says something else, and can be written again.
      if (plan.ok())
        EXPECT_EQ(plan->serialize(), changed);
      else
        EXPECT_FALSE(plan.status().message().empty());
    }
}

TEST(PlanTables, EveryExtremeWordIsReadOrRefused) {
  ModelConfig model = learnedModel();
  std::string bytes = makePlan(model, smallPlan()).serialize();
  for (size_t i = 0; i + 8 <= bytes.size(); i += 4)
    for (int width : {4, 8})
      for (char fill : {'\x00', '\x7f', '\xff'}) {
        std::string changed = bytes;
        changed.replace(i, size_t(width), size_t(width), fill);
        auto plan = PlanTables::parse(changed, "p", model);
        if (plan.ok())
          EXPECT_EQ(plan->serialize(), changed);
      }
}

TEST(PlanTables, NamesWhatIsWrongWithTheFile) {
  ModelConfig model = hashModel();
  std::string bytes = makePlan(model).serialize();
  auto errorOf = [&](std::string text) {
    return std::string(
        PlanTables::parse(text, "p.bin", model).status().message());
  };
  EXPECT_EQ(errorOf("GGUF"), "p.bin: start of file: found other bytes, "
                             "expected the magic GROKPLAN");
  std::string newer = bytes;
  newer[8] = 9;
  EXPECT_EQ(errorOf(newer), "p.bin: version: found 9, expected at most 4; the "
                            "file was written by a newer release");
  std::string older = bytes;
  older[8] = 1;
  EXPECT_EQ(errorOf(older),
            "p.bin: version: found 1, expected at least 2; compile the model "
            "again");
  EXPECT_NE(errorOf(bytes.substr(0, bytes.size() - 1)).find("truncated"),
            std::string::npos);
}

TEST(PlanTables, ReadsEarlierVersions) {
  struct {
    char version;
    size_t begin; // of the fields that it lacks, 0 here
  } versions[] = {{2, 128}, {3, 144}};
  for (auto [version, begin] : versions) {
    ModelConfig model = hashModel();
    PlanTables plan = makePlan(model);
    std::string bytes = plan.serialize();
    bytes.erase(begin, 152 - begin);
    bytes[8] = version;
    uint64_t size = bytes.size();
    bytes.replace(16, sizeof size, reinterpret_cast<const char *>(&size),
                  sizeof size);
    auto back = PlanTables::parse(bytes, "p", model);
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(*back, plan);
  }
}

TEST(PlanTables, KeepsTheQuantization) {
  ModelConfig model = hashModel();
  test::PlanOptions options;
  options.quantization = Quantization::kFp8;
  PlanTables plan = makePlan(model, options);
  std::string bytes = plan.serialize();
  auto back = PlanTables::parse(bytes, "p", model);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(*back, plan);
  bytes[148] = 3;
  EXPECT_EQ(PlanTables::parse(bytes, "p", model).status().message(),
            "p: quantization: found an unknown number, expected 0, 1 or 2");
}

struct Spoiled {
  const char *message; // part of it
  std::function<void(PlanTables &)> spoil;
};

void expectRefused(const ModelConfig &model, const test::PlanOptions &options,
                   const std::vector<Spoiled> &cases) {
  for (const Spoiled &c : cases) {
    PlanTables plan = makePlan(model, options);
    ASSERT_TRUE(checkPlan(plan, model, "p").ok())
        << checkPlan(plan, model, "p");
    c.spoil(plan);
    absl::Status status = checkPlan(plan, model, "p");
    EXPECT_NE(status.message().find(c.message), absl::string_view::npos)
        << c.message << ": " << status;
  }
}

TEST(CheckPlan, RefusesBadSizes) {
  expectRefused(
      learnedModel(), {},
      {{"device: found 1 of 2",
        [](auto &p) { p.deviceIndex = 1, p.deviceCount = 2; }},
       {"slots: found 0", [](auto &p) { p.slots = 0; }},
       {"max batch: found 9", [](auto &p) { p.maxBatch = 9; }},
       {"max sequence: found 129", [](auto &p) { p.maxSeq = 129; }},
       {"a multiple of 8", [](auto &p) { p.blockSteps = 20; }},
       {"'group' for a model without",
        [](auto &p) { p.smPolicy = SmPolicy::kGroup; }},
       {"experts: found 3", [](auto &p) { p.experts.pop_back(); }},
       {"a learned router can reach",
        [](auto &p) { p.experts[1] = PlanTables::Expert::kUnreachable; }},
       {"chunks in flight: found 5", [](auto &p) { p.inFlightChunks = 5; }},
       {"p: blocks of a cluster: found 3, expected 1, or 2 of a kernel with an "
        "even number of slots",
        [](auto &p) { p.cluster = 3; }},
       {"p: pace: found 1048576, expected 0 .. 1048575",
        [](auto &p) { p.paceCycles = 1 << 20; }},
       {"p: ring stages: found 33, expected 1 .. 32",
        [](auto &p) { p.ringStages = 33; }},
       {"p: ring: found 8192 bytes, expected at least 12288, which the kernel "
        "waits for at once",
        [](auto &p) { p.ringStages = p.inFlightChunks = 2; }},
       {"ring: found", [](auto &p) { p.sharedBytes = 4096; }},
       {"that the decode kernel uses", [](auto &p) { p.sharedBytes -= 1; }},
       {"chunk bytes: found 4097", [](auto &p) { p.chunkBytes = 4097; }},
       {"threads: found 289", [](auto &p) { p.threads = 289; }}});
}

/// Rows of 17 steps: one more than a K block of one step a warp.
ModelConfig longRows() {
  ModelConfig model = learnedModel();
  model.hiddenSize = 17 * kTileK;
  return model;
}

TEST(CheckPlan, RefusesKBlocksThatCutBatches) {
  test::PlanOptions options;
  options.blockSteps = kBatchSteps * kWarps;
  options.ringStages = 9;
  const char *message = "p: K block steps: found 16, expected a multiple of 64 "
                        "or at least the longest row's 17";
  expectRefused(longRows(), options,
                {{message, [](auto &p) { p.blockSteps = 16; }},
                 // Without a decode kernel too.
                 {message, [](auto &p) {
                    p.blockSteps = 16;
                    p.ringStages = p.chunkBytes = p.inFlightChunks = 0;
                    p.paceCycles = p.sharedBytes = p.threads = 0;
                  }}});
  options.blockSteps = 32; // holds the longest row
  PlanTables plan = makePlan(longRows(), options);
  EXPECT_TRUE(checkPlan(plan, longRows(), "p").ok())
      << checkPlan(plan, longRows(), "p");
}

TEST(CheckPlan, RefusesARingShorterThanTheKeysOfABlock) {
  ModelConfig model = learnedModel();
  model.headDim = 256; // 32 KiB of keys
  test::PlanOptions options;
  options.blockSteps = 32; // holds the longest row, attention's output
  options.ringStages = 16; // of 4 KiB; and as much of values
  expectRefused(model, options,
                {{"p: ring: found 61440 bytes, expected at least 65536, which "
                  "the kernel waits for at once",
                  [](auto &p) { p.ringStages = 15; }}});
}

TEST(CheckPlan, RefusesTilesThatAreNotProducedOnce) {
  expectRefused(
      learnedModel(), {},
      {{"qkv, slot 1: found tiles from",
        [](auto &p) { p.matrices[0].slots[1].tileBegin -= 1; }},
       {"tiles of all slots together",
        [](auto &p) { p.matrices[0].slots[4].tileCount -= 1; }},
       {"qkv: found", [](auto &p) { p.matrices[0].tiles += 1; }},
       {"attn_out: found", [](auto &p) { p.matrices[1].steps += 1; }},
       {"matrix 2: found gate_up of expert 1",
        [](auto &p) { p.matrices[2].expert = 1; }},
       {"matrices: found", [](auto &p) { p.matrices.pop_back(); }},
       {"slots, expected 5", [](auto &p) { p.matrices[3].slots.pop_back(); }}});
}

TEST(CheckPlan, RefusesExtentsInTheWrongPlace) {
  expectRefused(
      learnedModel(), {},
      {{"bank 9, expected less than 3",
        [](auto &p) { p.matrices[0].slots[0].bank = 9; }},
       {"a multiple of 16",
        [](auto &p) { p.matrices[0].slots[0].offset += 8; }},
       {"an overlap with",
        [](auto &p) {
          p.matrices[1].slots[0].offset = p.matrices[0].slots[0].offset;
        }},
       {"a layer stride of", [](auto &p) { p.banks[1].layerStride -= 512; }},
       {"inside bank 2", [](auto &p) { p.banks[2].usedBytes -= 512; }},
       {"overlap", [](auto &p) { p.vectorsOffset += 1024; }},
       {"vectors: found", [](auto &p) { p.vectorsLayerBytes = 256; }},
       {"bank 1: found offset", [](auto &p) { p.banks[1].offset += 4096; }},
       {"as in the blob", [](auto &p) { p.blobBytes += 1; }},
       {"bytes in use", [](auto &p) { p.banks[0].usedBytes = 1u << 30; }},
       {"embedding, slot 0: found",
        [](auto &p) { p.embedding[0].rowCount -= 1; }},
       {"embedding: found 0 extents", [](auto &p) { p.embedding.clear(); }}});
}

TEST(CheckPlan, RefusesStridesWhoseProductsOverflow) {
  expectRefused(learnedModel(), {},
                {{"an overlap with",
                  [](auto &p) { p.banks[0].layerStride = uint64_t(1) << 63; }},
                 {"found an overlap with vectors", [](auto &p) {
                    p.vectorsLayerBytes = (~uint64_t(0) / 3) & ~uint64_t(3);
                  }}});
}

TEST(CheckPlan, RefusesABadArena) {
  expectRefused(
      learnedModel(), {},
      {{"expected 'kv'", [](auto &p) { p.arena.pop_back(); }},
       {"arena region 1: found its name",
        [](auto &p) { p.arena[1].name = p.arena[0].name; }},
       {"arena region 'kv_new': found offset",
        [](auto &p) { p.arena[1].offset = 0; }},
       {"within the arena's", [](auto &p) { p.arena.back().bytes += 1; }},
       {"phases", [](auto &p) { p.arena[0].firstPhase = 7; }},
       {"KV reserve", [](auto &p) { p.kvReserveBytes += 1; }},
       {"for batch 2 times length 64",
        [](auto &p) { p.arena.back().bytes = 1000; }},
       {"arena region 'q': found", [](auto &p) { p.arena[0].bytes -= 1; }}});
}

TEST(CheckPlan, GroupPolicyKeepsGroupsApart) {
  test::PlanOptions group{4, 3, 4096, DType::kBF16, SmPolicy::kGroup, {}};
  expectRefused(hashModel(), group, {{"experts of groups 0 and 1", [](auto &p) {
                                        auto &m = p.matrices[4];
                                        ASSERT_EQ(m.expert, 2u);
                                        std::swap(m.slots[0], m.slots[2]);
                                      }}});
}

} // namespace
} // namespace grok
