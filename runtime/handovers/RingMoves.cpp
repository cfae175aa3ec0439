#include "runtime/handovers/RingMoves.h"

#include <algorithm>

namespace grok::handovers {

ProductMoves productMoves(const DecodeShape &shape, Quantization quantization,
                          uint32_t width, uint32_t tileCount) {
  // The constants of WarpProduct in codegen/Device/matvec.h.
  const uint32_t steps = ceilDiv(width, kTileK),
                 most = std::min(steps, shape.blockSteps),
                 warpSteps = ceilDiv(most, kWarps),
                 batch = std::min(warpSteps, kBatchSteps),
                 ring = shape.ringStages * shape.chunkBytes,
                 fragment = fragmentBytes(quantization);
  const bool oneBlock = steps <= shape.blockSteps,
             kept = shape.planes == 1 && warpSteps == batch;
  const uint32_t together = kept && ring >= 3 * most * fragment ? 2 : 1;

  ProductMoves moves;
  uint64_t place = 0; // bytes, from the extent's start
  auto chunk = [&](uint64_t at) { return uint32_t(at / shape.chunkBytes); };
  auto take = [&](std::vector<RingMove> &group, uint64_t bytes) {
    uint32_t await = chunksOf(place + bytes, shape.chunkBytes);
    place += bytes;
    group.push_back({await, chunk(place)});
  };
  for (uint32_t first = 0; first < tileCount; first += kGroupTiles) {
    auto group = std::make_shared<std::vector<RingMove>>();
    const uint32_t tiles = std::min(tileCount - first, kGroupTiles),
                   scales = groupScaleBytes(quantization, tiles);
    if (scales)
      take(*group, scales);
    for (uint32_t k0 = 0; k0 < steps; k0 += shape.blockSteps) {
      const uint32_t count = std::min(steps - k0, shape.blockSteps);
      for (uint32_t j = 0; j < tiles; j += together)
        for (uint32_t i = 0; i * kWarps < count; i += batch) {
          uint64_t bytes =
              uint64_t(std::min(count - i * kWarps, batch * kWarps)) *
              fragment * std::min(tiles - j, together);
          take(*group, bytes);
        }
    }
    moves.groups.push_back(group);
    if (first == 0 && kept && oneBlock)
      moves.ahead = std::make_shared<std::vector<RingMove>>(1, group->front());
  }
  if (!moves.groups.empty()) { // the next extent begins with a chunk
    auto last = std::make_shared<std::vector<RingMove>>(*moves.groups.back());
    last->back().release = chunksOf(place, shape.chunkBytes);
    moves.groups.back() = last;
  }
  return moves;
}

Moves attentionMoves(const DecodeShape &shape, uint64_t bytes) {
  const uint32_t chunks = chunksOf(bytes, shape.chunkBytes);
  if (attentionOnTensorCores(shape)) // keys and values are there at once
    return std::make_shared<std::vector<RingMove>>(
        1, RingMove{2 * chunks, 2 * chunks});
  return std::make_shared<std::vector<RingMove>>(
      std::vector<RingMove>{{chunks, chunks}, {2 * chunks, 2 * chunks}});
}

} // namespace grok::handovers
