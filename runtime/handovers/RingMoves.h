// How the consumers of a block go through the ring.
#pragma once

#include <memory>
#include <vector>

#include "runtime/bundle/Quantized.h"
#include "runtime/handovers/Program.h"

namespace grok::handovers {

using Moves = std::shared_ptr<const std::vector<RingMove>>;

/// Of a product with a matrix of `tileCount` tiles whose rows have `width`
/// elements: for each group of tiles, in the order in which matvec takes them.
/// `ahead`: the first of them, which is waited for before the operand is there;
/// null: it is not.
struct ProductMoves {
  std::vector<Moves> groups;
  Moves ahead;
};
ProductMoves productMoves(const DecodeShape &shape, Quantization quantization,
                          uint32_t width, uint32_t tileCount);

/// Of an attention task that streams `bytes` of keys and as many of values.
Moves attentionMoves(const DecodeShape &shape, uint64_t bytes);

/// Chunks of one extent: an extent begins with a chunk.
constexpr uint32_t chunksOf(uint64_t bytes, uint32_t chunkBytes) {
  return uint32_t((bytes + chunkBytes - 1) / chunkBytes);
}

} // namespace grok::handovers
