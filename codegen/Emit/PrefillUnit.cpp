#include <vector>

#include "absl/strings/str_cat.h"
#include "codegen/Clang/Compile.h"
#include "codegen/Emit/Constants.h"
#include "codegen/Emit/Emit.h"
#include "runtime/bundle/PlanCheck.h"

namespace grok {
namespace {

constexpr uint32_t kNoPlace = ~0u;

/// Number of a matrix's first tile in the table of places.
uint32_t placeOf(const PlanTables &plan, MatrixKind kind, uint32_t expert = 0) {
  uint32_t place = 0;
  for (const PlanMatrix &matrix : plan.matrices) {
    if (matrix.kind == kind && matrix.expert == expert)
      return place;
    place += matrix.tiles;
  }
  return kNoPlace;
}

std::vector<uint32_t> expertPlaces(const PlanTables &plan, MatrixKind kind) {
  std::vector<uint32_t> places;
  for (uint32_t expert = 0; expert < plan.experts.size(); ++expert)
    places.push_back(placeOf(plan, kind, expert));
  return places;
}

Constants planConstants(const ModelConfig &model, const PlanTables &plan,
                        uint32_t sm) {
  Constants c = sharedPlanConstants(plan, sm);
  c.count("kTokens", plan.prefill.tokens);
  c.count("kTileTokens", plan.prefill.tileTokens);
  c.count("kStages", plan.prefill.stages);
  c.count("kSharedBytes", plan.prefill.sharedBytes);
  c.count("kPlaceQkv", placeOf(plan, MatrixKind::kQkv));
  c.count("kPlaceAttnOut", placeOf(plan, MatrixKind::kAttnOut));
  c.count("kPlaceDenseGateUp", placeOf(plan, MatrixKind::kDenseGateUp));
  c.count("kPlaceDenseDown", placeOf(plan, MatrixKind::kDenseDown));
  c.count("kPlaceHead", placeOf(plan, MatrixKind::kHead));
  c.counts("kPlaceGateUp", expertPlaces(plan, MatrixKind::kGateUp));
  c.counts("kPlaceDown", expertPlaces(plan, MatrixKind::kDown));
  c.offsets("kPrefill",
            offsetsOf(plan, prefillRegions(prefillShape(model, plan)).regions));
  c.bytes("kRopeOffset", offsetOf(plan, "rope"));
  c.bytes("kLogitsOffset", offsetOf(plan, "logits"));
  return c;
}

struct Kernel {
  const char *name; // grok_prefill_NAME
  const char *call;
  uint32_t threads;
  uint32_t registers; // 0: as many as the block size allows
};

/// Three blocks of attention share an SM if a thread has at most so many; with
/// bf16, whose queries have two parts, and on sm_80 they would not do.
constexpr uint32_t kAttentionRegisters = 168;

std::vector<Kernel> kernelsOf(const ModelConfig &model, const PlanTables &plan,
                              uint32_t sm) {
  const uint32_t product = productThreads(sm),
                 // On sm_80 nothing is handed over.
      multiply = sm >= 90 ? kProductRegisters : 0,
                 attention = sm >= 90 && plan.dtype == DType::kF16
                                 ? kAttentionRegisters
                                 : 0;
  std::vector<Kernel> kernels = {
      {"embed", "embedTokens<Model, Plan>", kTokenThreads, 0},
      {"group", "groupTokens<Model, Plan>", kGroupThreads, 0},
      {"qkv", "multiply<QkvJob, Model, Plan>", product, multiply},
      {"attend", "attend<Model, Plan>", kAttentionThreads, attention},
      {"attn_out", "multiply<AttnOutJob, Model, Plan>", product, multiply},
      {"add_attn", "addOutput<NextInput::kExperts, Model, Plan>", kTokenThreads,
       0},
      {"gate_up", "multiply<GateUpJob, Model, Plan>", product, multiply},
      {"down", "multiply<DownJob, Model, Plan>", product, multiply},
      {"add_moe", "addOutput<NextInput::kLayer, Model, Plan>", kTokenThreads,
       0},
      {"add_last", "addOutput<NextInput::kNothing, Model, Plan>", kTokenThreads,
       0},
      {"gather", "gatherHead<Model, Plan>", kTokenThreads, 0},
      {"head", "multiply<HeadJob, Model, Plan>", product, multiply},
      {"choose", "chooseNext<Model, Plan>", kGroupThreads, 0},
      {"rate", "measureRate<Model, Plan>", product, multiply},
  };
  if (model.hash) {
    kernels.push_back({"hash", "hashExperts<Model, Plan>", kTokenThreads, 0});
  } else {
    kernels.push_back({"score", "scoreExperts<Model, Plan>", kTokenThreads, 0});
    kernels.push_back({"pick", "chooseExperts<Model, Plan>", kTokenThreads, 0});
    kernels.push_back({"sort", "sortTokens<Model, Plan>", kTokenThreads, 0});
  }
  if (model.denseWidth > 0) {
    kernels.push_back({"dense_gate_up", "multiply<DenseGateUpJob, Model, Plan>",
                       product, multiply});
    kernels.push_back({"dense_down", "multiply<DenseDownJob, Model, Plan>",
                       product, multiply});
  }
  return kernels;
}

/// Products begin with what does not depend on the launch before.
bool waitsItself(const Kernel &kernel) {
  return std::string_view(kernel.call).starts_with("multiply<");
}

std::string nameOf(const Kernel &kernel) {
  return absl::StrCat("grok_prefill_", kernel.name);
}

} // namespace

absl::StatusOr<std::string>
emitPrefillUnit(const ModelConfig &model, const PlanTables &plan, uint32_t sm) {
  Constants modelPart = modelConstants(model, plan.dtype),
            planPart = planConstants(model, plan, sm);
  if (absl::Status status = modelPart.status(); !status.ok())
    return status;
  std::string text = absl::StrCat(
      "// The prefill kernels of one model on one plan.\n"
      "#pragma clang attribute push(__attribute__((always_inline)), apply_to = "
      "function)\n"
      "#include \"codegen/Device/prefill/prefill.h\"\n"
      "#pragma clang attribute pop\n\n"
      "struct Model {\n",
      modelPart.text(), "};\n\nstruct Plan {\n", planPart.text(),
      "};\n\nusing namespace grok::device;\n");
  for (const Kernel &kernel : kernelsOf(model, plan, sm))
    absl::StrAppend(
        &text, "\nextern \"C\" [[clang::device_kernel]] void ", nameOf(kernel),
        "(const grok::abi::PrefillParams params) {\n  ",
        waitsItself(kernel) ? "" : "awaitEarlierLaunch<Plan>();\n  ",
        kernel.call, "(params);\n}\n");
  return text;
}

absl::StatusOr<std::string> emitPrefillPtx(const ModelConfig &model,
                                           const PlanTables &plan,
                                           const Target &target) {
  absl::StatusOr<std::string> source = emitPrefillUnit(model, plan, target.sm);
  if (!source.ok())
    return source.status();
  std::vector<codegen::KernelBounds> bounds;
  for (const Kernel &kernel : kernelsOf(model, plan, target.sm))
    bounds.push_back({.name = nameOf(kernel),
                      .threads = kernel.threads,
                      .maxRegisters = kernel.registers});
  return codegen::compileToPtx(*source, {target.arch, target.ptxVersion},
                               bounds);
}

} // namespace grok
