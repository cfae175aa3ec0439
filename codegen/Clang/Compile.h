// C++ text to PTX, in the process: Clang and LLVM's NVPTX back end, without a
// CUDA toolkit. The only room that knows Clang's C++ interface.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace grok::codegen {

struct DeviceTarget {
  std::string arch;       // "sm_80", "sm_90a"
  std::string ptxVersion; // "8.0": exactly what .version will say
};

/// A kernel of the translation unit and the launch that it is compiled for.
struct KernelBounds {
  std::string name;
  uint32_t threads = 0;        // of a block: .reqntid
  uint32_t minBlocksPerSm = 1; // .minnctapersm
  uint32_t maxRegisters = 0;   // .maxnreg; 0: as many as the block size allows
  uint32_t cluster = 1;        // .reqnctapercluster, if more than one block
};

/// Compiles a translation unit that may include the embedded headers (see
/// EmbeddedFiles.h) by their paths in the tree. `kernels` are its entry points;
/// every other function becomes internal. The same input gives the same bytes.
///
/// Internal, with Clang's or LLVM's text: the source has errors or warnings,
/// lacks one of `kernels`, calls functions that nobody defines (named in the
/// message), or the back end gives up on it. InvalidArgument: malformed
/// ptxVersion. Not thread-safe: crash recovery is process-wide.
absl::StatusOr<std::string> compileToPtx(std::string_view source,
                                         const DeviceTarget &target,
                                         std::span<const KernelBounds> kernels);

} // namespace grok::codegen
