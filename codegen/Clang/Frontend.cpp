#include "codegen/Clang/EmbeddedFiles.h"
#include "codegen/Clang/Stages.h"

#include "clang/Basic/DiagnosticOptions.h"
#include "clang/CodeGen/CodeGenAction.h"
#include "clang/Frontend/CompilerInstance.h"
#include "clang/Frontend/CompilerInvocation.h"
#include "clang/Frontend/TextDiagnosticPrinter.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/VirtualFileSystem.h"
#include "llvm/Support/raw_ostream.h"

using namespace grok;
using namespace grok::codegen;

namespace {

constexpr const char *kRoot = "/grok/";
constexpr const char *kMainFile = "/grok/kernels.cpp";

/// Everything that the translation unit can see. The machine's own files are
/// out of reach.
llvm::IntrusiveRefCntPtr<llvm::vfs::FileSystem>
makeFileSystem(std::string_view source) {
  auto files = llvm::makeIntrusiveRefCnt<llvm::vfs::InMemoryFileSystem>();
  files->setCurrentWorkingDirectory("/");
  auto add = [&](const std::string &path, std::string_view text) {
    files->addFile(
        path, /*ModificationTime=*/0,
        llvm::MemoryBuffer::getMemBuffer({text.data(), text.size()}, path));
  };
  add(kMainFile, source);
  for (const EmbeddedFile &file : embeddedFiles())
    add(kRoot + std::string(file.path), file.text);
  return files;
}

std::vector<const char *> frontendArguments(const DeviceTarget &target,
                                            const std::string &feature) {
  return {"-triple",
          "nvptx64-nvidia-cuda",
          "-target-cpu",
          target.arch.c_str(),
          "-target-feature",
          feature.c_str(),
          "-emit-llvm",
          "-disable-llvm-passes",
          "-O3",
          "-x",
          "c++",
          "-std=c++20",
          "-ffreestanding",
          "-ffp-contract=off",
          "-fno-threadsafe-statics",
          "-fno-rtti",
          "-fconvergent-functions",
          "-nostdsysteminc",
          "-nobuiltininc",
          "-I/grok",
          "-internal-isystem",
          "/grok/codegen/Clang/include",
          "-Wall",
          "-Wextra",
          "-Wno-unused-parameter",
          "-Werror",
          "-ferror-limit",
          "20",
          "-fno-caret-diagnostics",
          kMainFile};
}

} // namespace

StageResult codegen::runFrontend(llvm::LLVMContext &context,
                                 std::string_view source,
                                 const DeviceTarget &target,
                                 std::unique_ptr<llvm::Module> &module) {
  StageResult result;
  llvm::raw_string_ostream out(result.text);
  auto options = std::make_shared<clang::DiagnosticOptions>();
  std::string feature = ptxFeature(target);

  auto invocation = std::make_shared<clang::CompilerInvocation>();
  clang::DiagnosticsEngine argumentDiagnostics(
      clang::DiagnosticIDs::create(), *options,
      new clang::TextDiagnosticPrinter(out, *options));
  if (!clang::CompilerInvocation::CreateFromArgs(
          *invocation, frontendArguments(target, feature), argumentDiagnostics))
    return result;

  clang::CompilerInstance compiler(invocation);
  compiler.createVirtualFileSystem(makeFileSystem(source));
  compiler.createDiagnostics(
      new clang::TextDiagnosticPrinter(out, invocation->getDiagnosticOpts()),
      /*ShouldOwnClient=*/true);
  compiler.createFileManager();
  compiler.setVerboseOutputStream(out);
  clang::EmitLLVMOnlyAction action(&context);
  result.ok = compiler.ExecuteAction(action);
  if (result.ok)
    module = action.takeModule();
  return result;
}
