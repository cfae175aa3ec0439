// What MLIR takes without a bound from IR in text form, bounded before its
// parser sees it.
#pragma once

#include <string>

#include "llvm/ADT/StringRef.h"

namespace grok {

/// MLIR's parser and printer call themselves for each level, as far as their
/// stack reaches. What the passes read and write has less than ten levels.
inline constexpr size_t kMaxNesting = 128;
/// Bytes of text that the aliases in it stand for, in all: attributes and types
/// are printed without their aliases. The passes' IR names none.
inline constexpr size_t kMaxAliasBytes = size_t(1) << 26;
/// Bytes of an affine map or set: its operators are parsed by a call inside of
/// the one before, and products in quadratic time. The passes' IR has none.
inline constexpr size_t kMaxAffineBytes = 4096;
/// Bytes of a number or a word: digits are read in quadratic time, and so are
/// dimensions, which are a word until they are cut.
inline constexpr size_t kMaxWordBytes = 4096;
/// Of a result in "%name#N": whoever names one is given a table of so many. The
/// passes' IR has less than ten.
inline constexpr uint64_t kMaxResultNumber = 255;

/// "NAME:LINE:COLUMN: error: ..." of the first place that is beyond one of
/// these, or begins with bytecode; empty: none is. `splitMarker` is what parts
/// of the text that MLIR parses alone stand between; empty: it is one.
std::string findExcess(llvm::StringRef text, llvm::StringRef splitMarker,
                       llvm::StringRef name);

} // namespace grok
