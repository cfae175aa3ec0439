#include "codegen/Clang/Stages.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Analysis/CGSCCPassManager.h"
#include "llvm/Analysis/LoopAnalysisManager.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/IPO/GlobalDCE.h"
#include "llvm/Transforms/IPO/Internalize.h"

using namespace grok;
using namespace grok::codegen;

namespace {

constexpr const char *kTriple = "nvptx64-nvidia-cuda";

const llvm::Target &nvptx() {
  std::string error;
  const llvm::Target *target =
      llvm::TargetRegistry::lookupTarget(llvm::Triple(kTriple), error);
  if (!target)
    llvm::report_fatal_error(llvm::Twine(error));
  return *target;
}

std::unique_ptr<llvm::TargetMachine> createMachine(const DeviceTarget &target) {
  llvm::TargetOptions options;
  options.AllowFPOpFusion =
      llvm::FPOpFusion::Strict; // a*b+c stays two roundings
  return std::unique_ptr<llvm::TargetMachine>(nvptx().createTargetMachine(
      llvm::Triple(kTriple), target.arch, ptxFeature(target), options,
      std::nullopt, std::nullopt, llvm::CodeGenOptLevel::Aggressive));
}

/// Launch bounds, and parameters that are read where they lie. False if the
/// module lacks the kernel.
bool setBounds(llvm::Module &module, const KernelBounds &kernel) {
  llvm::Function *function = module.getFunction(kernel.name);
  if (!function || function->isDeclaration() ||
      function->getCallingConv() != llvm::CallingConv::PTX_Kernel)
    return false;
  function->addFnAttr("nvvm.reqntid", std::to_string(kernel.threads));
  function->addFnAttr("nvvm.minctasm", std::to_string(kernel.minBlocksPerSm));
  if (kernel.maxRegisters)
    function->addFnAttr("nvvm.maxnreg", std::to_string(kernel.maxRegisters));
  if (kernel.cluster > 1)
    function->addFnAttr("nvvm.cluster_dim", std::to_string(kernel.cluster));
  for (llvm::Argument &argument : function->args())
    if (argument.hasByValAttr())
      argument.addAttr(
          llvm::Attribute::get(module.getContext(), "nvvm.grid_constant"));
  return true;
}

/// Only kernels are visible from outside, so that everything else may be
/// inlined and dropped.
void internalize(llvm::Module &module, std::span<const KernelBounds> kernels) {
  llvm::internalizeModule(module, [&](const llvm::GlobalValue &value) {
    return llvm::any_of(kernels, [&](const KernelBounds &kernel) {
      return value.getName() == kernel.name;
    });
  });
}

void optimize(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  // Loops are unrolled where the device library says so: it knows which ones
  // hold registers that the kernel is short of.
  llvm::PipelineTuningOptions tuning;
  tuning.LoopUnrolling = false;
  llvm::PassBuilder builder(&machine, tuning);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  llvm::ModulePassManager passes =
      builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3);
  passes.addPass(llvm::GlobalDCEPass());
  passes.run(module, modules);
}

/// Functions and variables that are used and that nobody defines. Dynamic
/// shared memory (an extern array in address space 3) is defined by the launch.
std::vector<std::string> undefinedNames(const llvm::Module &module) {
  constexpr unsigned kShared = 3;
  std::vector<std::string> names;
  for (const llvm::Function &function : module)
    if (function.isDeclaration() && !function.isIntrinsic() &&
        !function.use_empty())
      names.push_back(function.getName().str());
  for (const llvm::GlobalVariable &variable : module.globals())
    if (variable.isDeclaration() && !variable.use_empty() &&
        variable.getAddressSpace() != kShared)
      names.push_back(variable.getName().str());
  llvm::sort(names);
  return names;
}

/// The same in the PTX: instruction selection may call library functions that
/// the IR did not mention.
std::vector<std::string> externFunctions(llvm::StringRef ptx) {
  std::vector<std::string> names;
  for (auto [_, rest] = ptx.split(".extern .func"); !rest.empty();
       std::tie(_, rest) = rest.split(".extern .func")) {
    llvm::StringRef signature = rest.ltrim();
    if (signature.consume_front("(")) // the result comes first
      signature = signature.split(')').second.ltrim();
    names.push_back(signature
                        .take_until([](char c) {
                          return c == '(' || c == ' ' || c == '\n' || c == ';';
                        })
                        .str());
  }
  llvm::sort(names);
  return names;
}

StageResult undefinedError(llvm::ArrayRef<std::string> names) {
  return {false, "undefined on the device: " + llvm::join(names, ", ")};
}

} // namespace

bool codegen::knowsTarget(const DeviceTarget &target) {
  std::unique_ptr<llvm::MCSubtargetInfo> info(
      nvptx().createMCSubtargetInfo(llvm::Triple(kTriple), "", ""));
  std::string feature = ptxFeature(target).substr(1);
  return info->isCPUStringValid(target.arch) &&
         llvm::any_of(info->getAllProcessorFeatures(),
                      [&](const llvm::SubtargetFeatureKV &known) {
                        return feature == known.Key;
                      });
}

StageResult codegen::runBackend(llvm::Module &module,
                                const DeviceTarget &target,
                                std::span<const KernelBounds> kernels,
                                std::string &ptx) {
  for (const KernelBounds &kernel : kernels)
    if (!setBounds(module, kernel))
      return {false,
              "the translation unit does not define the kernel " + kernel.name};
  internalize(module, kernels);
  std::unique_ptr<llvm::TargetMachine> machine = createMachine(target);
  optimize(module, *machine);
  std::string error;
  llvm::raw_string_ostream complaints(error);
  if (llvm::verifyModule(module, &complaints))
    return {false, error};
  if (std::vector<std::string> names = undefinedNames(module); !names.empty())
    return undefinedError(names);

  llvm::SmallString<0> text;
  llvm::raw_svector_ostream out(text);
  llvm::legacy::PassManager passes;
  if (machine->addPassesToEmitFile(passes, out, /*DwoOut=*/nullptr,
                                   llvm::CodeGenFileType::AssemblyFile))
    return {false, "the NVPTX back end cannot print assembly"};
  passes.run(module);
  if (std::vector<std::string> names = externFunctions(text); !names.empty())
    return undefinedError(names);
  ptx = text.str().str();
  return {true, ""};
}
