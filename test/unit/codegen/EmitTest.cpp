#include "codegen/Emit/Emit.h"

#include <array>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace grok {
namespace {

ModelConfig model() {
  ModelConfig m;
  m.vocabSize = 64;
  m.hiddenSize = 64;
  m.numLayers = 2;
  m.numHeads = 2;
  m.numKvHeads = 1;
  m.headDim = 32;
  m.numExperts = 4;
  m.expertsPerToken = 2;
  m.expertWidth = 32;
  m.maxPositions = 128;
  return m;
}

Target target() {
  Target t;
  t.sm = 90;
  t.arch = "sm_90a";
  t.ptxVersion = "8.0";
  t.l2Bytes = 3 << 20;
  return t;
}

/// Two slots, every tile given to one of them.
PlanTables plan(const ModelConfig &m) {
  PlanTables p;
  p.slots = 2;
  p.maxBatch = 2;
  p.maxSeq = 128;
  p.blockSteps = kWarps;
  p.ringStages = 4;
  p.chunkBytes = 4096;
  p.inFlightChunks = 2;
  p.sharedBytes = 160 << 10;
  p.threads = 288;
  p.experts.assign(m.numExperts, PlanTables::Expert::kKept);
  auto add = [&](MatrixKind kind, uint32_t expert = 0) {
    MatrixShape shape = matrixShape(m, kind);
    PlanMatrix matrix{kind,
                      expert,
                      ceilDiv(shape.rows, kTileRows),
                      ceilDiv(shape.k, kTileK),
                      {}};
    uint32_t half = matrix.tiles / 2;
    matrix.slots = {{0, half, 0, 0}, {half, matrix.tiles - half, 0, 0}};
    p.matrices.push_back(matrix);
  };
  add(MatrixKind::kQkv);
  add(MatrixKind::kAttnOut);
  for (uint32_t e = 0; e < m.numExperts; ++e)
    add(MatrixKind::kGateUp, e);
  for (uint32_t e = 0; e < m.numExperts; ++e)
    add(MatrixKind::kDown, e);
  add(MatrixKind::kHead);
  return p;
}

PlanMatrix &lastDown(PlanTables &p) {
  return p.matrices[p.matrices.size() - 2];
}

testing::AssertionResult emits(const ModelConfig &m, const PlanTables &p,
                               const std::string &line) {
  absl::StatusOr<std::string> unit = emitTranslationUnit(m, p, target());
  if (unit.ok() && unit->find(line) != std::string::npos)
    return testing::AssertionSuccess();
  return testing::AssertionFailure()
         << "no \"" << line << "\" in:\n"
         << (unit.ok() ? *unit : std::string(unit.status().message()));
}

TEST(Emit, TracingIsAConstant) {
  ModelConfig m = model();
  EXPECT_TRUE(emits(m, plan(m), "bool kTrace = false;"));
  absl::StatusOr<std::string> unit =
      emitTranslationUnit(m, plan(m), target(), true);
  ASSERT_TRUE(unit.ok()) << unit.status();
  EXPECT_NE(unit->find("bool kTrace = true;"), std::string::npos);
}

TEST(Emit, TheWholeLibraryIsInlined) {
  ModelConfig m = model();
  EXPECT_TRUE(emits(
      m, plan(m),
      "#pragma clang attribute push(__attribute__((always_inline)), apply_to = "
      "function)\n"
      "#include \"codegen/Device/decode.h\"\n"
      "#include \"codegen/Device/fill.h\"\n"
      "#include \"codegen/Device/stream.h\"\n"
      "#pragma clang attribute pop\n"));
}

TEST(Emit, EveryKernelIsOneCall) {
  ModelConfig m = model();
  for (auto [kernel, parameters, call] :
       {std::array{"grok_decode", "DecodeParams", "decode"},
        std::array{"grok_fill", "FillParams", "fill"},
        std::array{"grok_stream", "StreamParams", "stream"}}) {
    EXPECT_TRUE(emits(
        m, plan(m),
        absl::StrCat("extern \"C\" [[clang::device_kernel]] void ", kernel,
                     "(const grok::abi::", parameters, " params) {\n")));
    EXPECT_TRUE(emits(
        m, plan(m),
        absl::StrCat("  grok::device::", call, "<Model, Plan>(params);\n}\n")));
  }
}

/// Pacing is a launch's parameter: a kernel doesn't change with it.
TEST(Emit, PacingIsNoConstant) {
  ModelConfig m = model();
  PlanTables p = plan(m), paced = p;
  paced.paceCycles = 12345;
  paced.inFlightChunks = 3;
  EXPECT_EQ(*emitTranslationUnit(m, p, target()),
            *emitTranslationUnit(m, paced, target()));
}

TEST(Emit, RealConstantsAreRoundedOnceAndExact) {
  ModelConfig m = model();
  m.embeddingMultiplier = 78.38367176906169;
  m.attentionScale = 0.08838834764831845;
  m.attentionCap = 30;
  EXPECT_TRUE(
      emits(m, plan(m), "float kEmbeddingMultiplier = 0x1.3988e2p+6f;"));
  EXPECT_TRUE(emits(m, plan(m), "float kAttentionScale = 0x1.6a09e6p-4f;"));
  EXPECT_TRUE(emits(m, plan(m), "float kAttentionCap = 0x1.ep+4f;"));
  EXPECT_TRUE(emits(m, plan(m), "float kFinalCap = 0x0p+0f;"));
}

TEST(Emit, NegativeConstantsKeepTheirSign) {
  ModelConfig m = model();
  m.outputMultiplier = -0.5;
  EXPECT_TRUE(emits(m, plan(m), "float kOutputMultiplier = -0x1p-1f;"));
}

TEST(Emit, ConstantsBeyondFloat32AreAnError) {
  ModelConfig m = model();
  m.embeddingMultiplier = 1e39;
  absl::StatusOr<std::string> unit = emitTranslationUnit(m, plan(m), target());
  EXPECT_EQ(unit.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(unit.status().message(),
            "kEmbeddingMultiplier: found 1e+39, expected a value in the range "
            "of float32");
}

TEST(Emit, MatricesAreFoundByIndexAndDroppedOnesAreMinusOne) {
  ModelConfig m = model();
  PlanTables p = plan(m);
  p.experts[1] = PlanTables::Expert::kUnreachable;
  std::erase_if(p.matrices, [](const PlanMatrix &x) { return x.expert == 1; });
  EXPECT_TRUE(emits(m, p, "short kGateUp[4] = {2, -1, 3, 4};"));
  EXPECT_TRUE(emits(m, p, "short kDown[4] = {5, -1, 6, 7};"));
  EXPECT_TRUE(emits(m, p, "short kMatrixHead = 8;"));
  EXPECT_TRUE(emits(m, p, "short kMatrixDenseDown = -1;"));
}

TEST(Emit, PresenceIsNeededWhenASlotHasNoPartOfAnExpert) {
  ModelConfig m = model();
  PlanTables p = plan(m);
  EXPECT_TRUE(emits(m, p, "bool kPresence = false;"));
  lastDown(p).slots = {{0, 8, 0, 0}, {}};
  EXPECT_TRUE(emits(m, p, "bool kPresence = true;"));
}

TEST(Emit, PresenceIsNeededWhenEveryExpertOfARowMayBePruned) {
  ModelConfig m = model();
  PlanTables p = plan(m);
  p.experts[3] = PlanTables::Expert::kPruned;
  EXPECT_TRUE(emits(m, p, "bool kPresence = true;"));
}

TEST(Emit, RegionsStandInTheOrderOfDecodeMemory) {
  ModelConfig m = model();
  PlanTables p = plan(m);
  p.arena = {{"kv_new", 256, 256, 0, 1},
             {"q", 512, 256, 0, 1},
             {"claims", 1024, 256, 0, 7},
             {"kv", 4096, 1 << 20, 0, 7}};
  EXPECT_TRUE(emits(
      m, p,
      "kRegion[15] = {512, 256, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1024};"));
  EXPECT_TRUE(emits(m, p, "kKvOffset = 4096ul;"));
  EXPECT_TRUE(emits(m, p, "kL2Bytes = 3145728ul;"));
}

TEST(Emit, ThePlansSharedMemoryIsCheckedAgainstTheLibrarys) {
  ModelConfig m = model();
  PlanTables p = plan(m);
  p.sharedBytes = 1024;
  absl::StatusOr<std::string> ptx = emitDecodePtx(m, p, target());
  EXPECT_EQ(ptx.status().code(), absl::StatusCode::kInternal);
  EXPECT_NE(ptx.status().message().find(
                "the plan reserves the block's shared memory"),
            absl::string_view::npos);
}

} // namespace
} // namespace grok
