#include "codegen/Clang/Compile.h"

#include "codegen/Clang/Stages.h"

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "llvm/IR/DiagnosticHandler.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/CrashRecoveryContext.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"

using namespace grok;
using namespace grok::codegen;

namespace {

/// Collects errors of the back end; the default handler would end the process.
struct CollectingHandler : llvm::DiagnosticHandler {
  explicit CollectingHandler(std::string &text) : text(text) {}
  bool handleDiagnostics(const llvm::DiagnosticInfo &info) override {
    if (info.getSeverity() != llvm::DS_Error)
      return true; // remarks and the like say nothing about correctness
    llvm::raw_string_ostream out(text);
    llvm::DiagnosticPrinterRawOStream printer(out);
    info.print(printer);
    out << "\n";
    return true;
  }
  std::string &text;
};

/// LLVM's fatal errors, for the time of one compilation, become text and leave
/// the crash recovery context.
class FatalErrors {
public:
  FatalErrors() {
    llvm::CrashRecoveryContext::Enable();
    llvm::install_fatal_error_handler(
        [](void *self, const char *reason, bool) {
          static_cast<FatalErrors *>(self)->text = reason;
          llvm::sys::Process::Exit(70); // ends RunSafely, not the process
        },
        this);
  }
  ~FatalErrors() {
    llvm::remove_fatal_error_handler();
    llvm::CrashRecoveryContext::Disable();
  }
  FatalErrors(const FatalErrors &) = delete;

  std::string text;
};

void initializeBackend() {
  static const bool once = [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    return true;
  }();
  (void)once;
}

bool isPtxVersion(std::string_view text) {
  return text.size() == 3 && absl::ascii_isdigit(text[0]) && text[1] == '.' &&
         absl::ascii_isdigit(text[2]);
}

StageResult runStages(std::string_view source, const DeviceTarget &target,
                      std::span<const KernelBounds> kernels, std::string &ptx) {
  std::string diagnostics;
  llvm::LLVMContext context;
  context.setDiagnosticHandler(
      std::make_unique<CollectingHandler>(diagnostics));
  std::unique_ptr<llvm::Module> module;
  StageResult result = runFrontend(context, source, target, module);
  if (result.ok)
    result = runBackend(*module, target, kernels, ptx);
  if (result.ok && !diagnostics.empty())
    result = {false, diagnostics};
  return result;
}

} // namespace

std::string codegen::ptxFeature(const DeviceTarget &target) {
  return {'+', 'p', 't', 'x', target.ptxVersion[0], target.ptxVersion[2]};
}

absl::StatusOr<std::string>
codegen::compileToPtx(std::string_view source, const DeviceTarget &target,
                      std::span<const KernelBounds> kernels) {
  if (!isPtxVersion(target.ptxVersion))
    return absl::InvalidArgumentError(
        absl::StrCat("PTX version: found '", target.ptxVersion,
                     "', expected two digits with a point, such as 8.0"));
  initializeBackend();
  if (!knowsTarget(target))
    return absl::InvalidArgumentError(absl::StrCat(
        "found architecture '", target.arch, "' and PTX version '",
        target.ptxVersion, "', expected ones that LLVM 22 generates"));
  StageResult result;
  std::string ptx;
  FatalErrors fatal;
  llvm::CrashRecoveryContext recovery;
  bool returned = recovery.RunSafely(
      [&] { result = runStages(source, target, kernels, ptx); });
  if (!returned)
    return absl::InternalError(
        absl::StrCat("the code generator failed for ", target.arch, ": ",
                     fatal.text.empty() ? "it crashed" : fatal.text));
  if (!result.ok)
    return absl::InternalError(
        absl::StrCat("generated code does not compile for ", target.arch, ": ",
                     absl::StripTrailingAsciiWhitespace(result.text)));
  return ptx;
}
