#include "codegen/Emit/Constants.h"
#include "codegen/Emit/Emit.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/bundle/DecodeMemory.h"
#include "runtime/bundle/PlanCheck.h"

namespace grok {
namespace {

int matrixIndex(const PlanTables &plan, MatrixKind kind, uint32_t expert = 0) {
  const PlanMatrix *matrix = plan.findMatrix(kind, expert);
  return matrix ? int(matrix - plan.matrices.data()) : -1;
}

std::vector<int> expertIndices(const PlanTables &plan, MatrixKind kind) {
  std::vector<int> indices;
  for (uint32_t expert = 0; expert < plan.experts.size(); ++expert)
    indices.push_back(matrixIndex(plan, kind, expert));
  return indices;
}

Constants planConstants(const ModelConfig &model, const PlanTables &plan,
                        const Target &target, bool trace) {
  DecodeShape shape = decodeShape(model, plan);
  Constants c = sharedPlanConstants(plan, target.sm);
  c.bytes("kL2Bytes", target.l2Bytes);
  c.count("kQuantization", uint32_t(plan.quantization));
  c.count("kSlots", plan.slots);
  c.count("kRingStages", plan.ringStages);
  c.count("kChunkBytes", plan.chunkBytes);
  c.count("kMatrices", shape.matrices);
  c.count("kThreads", plan.threads);
  c.count("kCluster", plan.cluster);
  c.count("kSharedBytes", plan.sharedBytes);
  c.flag("kPresence", needsPresence(plan, model));
  c.flag("kTrace", trace);
  c.index("kMatrixQkv", matrixIndex(plan, MatrixKind::kQkv));
  c.index("kMatrixAttnOut", matrixIndex(plan, MatrixKind::kAttnOut));
  c.index("kMatrixDenseGateUp", matrixIndex(plan, MatrixKind::kDenseGateUp));
  c.index("kMatrixDenseDown", matrixIndex(plan, MatrixKind::kDenseDown));
  c.index("kMatrixHead", matrixIndex(plan, MatrixKind::kHead));
  c.indices("kGateUp", expertIndices(plan, MatrixKind::kGateUp));
  c.indices("kDown", expertIndices(plan, MatrixKind::kDown));
  c.count("kMaxDownTiles", shape.maxDownTiles);
  c.offsets("kRegion", offsetsOf(plan, decodeRegions(shape).regions));
  return c;
}

} // namespace

absl::StatusOr<std::string> emitTranslationUnit(const ModelConfig &model,
                                                const PlanTables &plan,
                                                const Target &target,
                                                bool trace) {
  Constants modelPart = modelConstants(model, plan.dtype),
            planPart = planConstants(model, plan, target, trace);
  if (absl::Status status = modelPart.status(); !status.ok())
    return status;
  return absl::StrCat(
      "// The kernels of one model on one plan.\n"
      "// Nothing is called: what is not inlined would have its state in "
      "memory.\n"
      "#pragma clang attribute push(__attribute__((always_inline)), apply_to = "
      "function)\n"
      "#include \"codegen/Device/decode.h\"\n"
      "#include \"codegen/Device/fill.h\"\n"
      "#include \"codegen/Device/stream.h\"\n"
      "#pragma clang attribute pop\n\n"
      "struct Model {\n",
      modelPart.text(), "};\n\n", "struct Plan {\n", planPart.text(), "};\n\n",
      "extern \"C\" [[clang::device_kernel]] void grok_decode(const "
      "grok::abi::DecodeParams params) {\n"
      "  static_assert(grok::sharedLayout(grok::device::decodeShape<Model, "
      "Plan>()).total <= Plan::kSharedBytes,\n"
      "                \"the plan reserves the block's shared memory\");\n"
      "  grok::device::decode<Model, Plan>(params);\n"
      "}\n\n"
      "extern \"C\" [[clang::device_kernel]] void grok_fill(const "
      "grok::abi::FillParams params) {\n"
      "  grok::device::fill<Model, Plan>(params);\n"
      "}\n\n"
      "extern \"C\" [[clang::device_kernel]] void grok_stream(const "
      "grok::abi::StreamParams params) {\n"
      "  grok::device::stream<Model, Plan>(params);\n"
      "}\n");
}

} // namespace grok
