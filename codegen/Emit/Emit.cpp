#include "codegen/Emit/Emit.h"

#include <array>

#include "codegen/Clang/Compile.h"
#include "runtime/bundle/KernelAbi.h"

namespace grok {

/// Register files of sm_80 and sm_90 hold 65536 registers; with 544 threads in
/// the only block of an SM each thread gets 112 (in units of 8 registers a
/// thread).
static constexpr uint32_t kDecodeRegisters = 112;

absl::StatusOr<std::string> emitDecodePtx(const ModelConfig &model,
                                          const PlanTables &plan,
                                          const Target &target) {
  absl::StatusOr<std::string> source =
      emitTranslationUnit(model, plan, target.sm);
  if (!source.ok())
    return source.status();
  const std::array kernels = {
      codegen::KernelBounds{.name = "grok_decode",
                            .threads = plan.threads,
                            .maxRegisters = kDecodeRegisters},
      codegen::KernelBounds{.name = "grok_fill", .threads = abi::kFillThreads},
  };
  return codegen::compileToPtx(*source, {target.arch, target.ptxVersion},
                               kernels);
}

} // namespace grok
