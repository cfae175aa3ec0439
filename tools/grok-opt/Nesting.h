// How deep IR in text form nests.
#pragma once

#include <string>

#include "llvm/ADT/StringRef.h"

namespace grok {

/// MLIR's parser calls itself for each level, as far as its stack reaches. What
/// the passes read and write has less than ten.
inline constexpr size_t kMaxNesting = 128;

/// "NAME:LINE:COLUMN: error: ..." of the first bracket, or the first minus sign
/// before a minus sign, that is nested deeper than kMaxNesting; empty: none is.
std::string findDeepNesting(llvm::StringRef text, llvm::StringRef name);

} // namespace grok
