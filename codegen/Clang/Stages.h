// The two halves of compileToPtx. Internal to this room.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "codegen/Clang/Compile.h"

namespace llvm {
class LLVMContext;
class Module;
} // namespace llvm

namespace grok::codegen {

/// What a stage makes, or the text of what went wrong.
struct StageResult {
  bool ok = false;
  std::string text; // of diagnostics
};

/// "8.0" as LLVM's feature "+ptx80".
std::string ptxFeature(const DeviceTarget &target);

/// Whether this LLVM has the architecture and the PTX version.
bool knowsTarget(const DeviceTarget &target);

/// Clang: source to unoptimised LLVM IR.
StageResult runFrontend(llvm::LLVMContext &context, std::string_view source,
                        const DeviceTarget &target,
                        std::unique_ptr<llvm::Module> &module);

/// LLVM: optimises the module and prints it as PTX.
StageResult runBackend(llvm::Module &module, const DeviceTarget &target,
                       std::span<const KernelBounds> kernels, std::string &ptx);

} // namespace grok::codegen
