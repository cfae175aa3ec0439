#include "codegen/Emit/Emit.h"

#include <array>

#include "codegen/Clang/Compile.h"
#include "runtime/bundle/KernelAbi.h"

namespace grok {

/// Each of an SM's four quarters has 16384 registers and runs up to 3 of the
/// block's 9 warps: 170 a thread, in units of 8.
static constexpr uint32_t kDecodeRegisters = 168;

absl::StatusOr<std::string> emitDecodePtx(const ModelConfig &model,
                                          const PlanTables &plan,
                                          const Target &target, bool trace) {
  absl::StatusOr<std::string> source =
      emitTranslationUnit(model, plan, target, trace);
  if (!source.ok())
    return source.status();
  const std::array kernels = {
      codegen::KernelBounds{.name = "grok_decode",
                            .threads = plan.threads,
                            .maxRegisters = kDecodeRegisters,
                            .cluster = plan.cluster},
      codegen::KernelBounds{.name = "grok_fill", .threads = abi::kFillThreads},
      codegen::KernelBounds{.name = "grok_stream",
                            .threads = plan.threads,
                            .maxRegisters = kDecodeRegisters},
  };
  return codegen::compileToPtx(*source, {target.arch, target.ptxVersion},
                               kernels);
}

} // namespace grok
