// A tensor as a checkpoint's files hold it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/checkpoint/SafetensorsHeader.h"

namespace grok {

/// Whole, or in equal slices along one dimension.
struct StoredTensor {
  struct Part {
    uint32_t file = 0;   // index into FileSet::files
    uint64_t offset = 0; // bytes from the start of the file
    bool operator==(const Part &) const = default;
  };
  /// How the elements are coded.
  enum class Coding {
    kPlain,  // each by itself, of the element type
    kBlocks, // GGUF's Q8_0: 32 along a row share a f16 scale in front of them
    kScaled, // int8; a bf16 scale for each row and block of columns lies apart
  };

  ElementType type = ElementType::kBF16;
  std::vector<uint64_t> shape; // of the whole
  std::vector<Part> parts;     // in rank order
  unsigned splitDimension = 0; // where there are several parts
  Coding coding = Coding::kPlain;
  /// Elements from one index to the next in each dimension; empty: the last
  /// dimension's lie side by side, and so on.
  std::vector<uint64_t> strides;
  Part scales;              // kScaled: [..., scaleBlocks, rows]
  uint64_t scaleBlocks = 0; // kScaled: divides the columns
};

/// Dimensions that a tensor in a pickle may have: no model's have as many. A
/// pickle can say a shape of any length once and refer to it for each tensor.
inline constexpr size_t kMaxPickledRank = 8;

/// Elements of a kBlocks block, and its bytes.
inline constexpr uint64_t kBlockElements = 32, kBlockBytes = 34;

/// Bytes of `elements` that lie side by side. For kBlocks they are whole
/// blocks.
uint64_t storedBytes(const StoredTensor &tensor, uint64_t elements);

/// One of the matrices that a tensor of three dimensions holds.
StoredTensor sliceOf(const StoredTensor &tensor, uint64_t index);

/// "BF16", "Q8_0", "I8 with 8 blocks of scales".
std::string codingName(const StoredTensor &tensor);

} // namespace grok
