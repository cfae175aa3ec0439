# LLVM, Clang and MLIR 22.1. A bare "22" is rejected by MLIR's version file, and the dylibs must be linked:
# a static MLIRIR beside them would give the process two copies of MLIR.
find_package(MLIR 22.1 REQUIRED CONFIG HINTS /usr/lib/llvm-22/lib/cmake/mlir)
find_package(Clang REQUIRED CONFIG HINTS "${LLVM_DIR}/../clang")
list(APPEND CMAKE_MODULE_PATH "${MLIR_CMAKE_DIR}" "${LLVM_CMAKE_DIR}")
include(TableGen)
include(AddLLVM)
include(AddMLIR)

# Options for code that includes headers of LLVM: no exceptions, no RTTI, as LLVM itself is built.
add_library(grok_llvm_options INTERFACE)
target_compile_options(grok_llvm_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fno-exceptions -fno-rtti>)
target_include_directories(grok_llvm_options SYSTEM INTERFACE
  ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS} ${CLANG_INCLUDE_DIRS})
separate_arguments(GROK_LLVM_DEFINITIONS NATIVE_COMMAND "${LLVM_DEFINITIONS}")
target_compile_options(grok_llvm_options INTERFACE ${GROK_LLVM_DEFINITIONS})
