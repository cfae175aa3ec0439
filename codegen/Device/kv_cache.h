// Where the keys and values of earlier positions lie, and which of them are a
// slot's.
#pragma once

#include "codegen/Device/block.h"

namespace grok::device {

/// Element type of the KV cache: 16 bits for single activations, float32 for
/// split ones.
template <class M, class P> struct KvElement {
  static constexpr bool kWide = P::kPlanes == 2;
  static constexpr uint32_t kBytes = kWide ? 4 : 2;
  /// The value that a later step will read back.
  GROK_DEVICE static float round(float v) {
    return kWide ? v : from16<M::kBF16>(to16<M::kBF16>(v));
  }
  GROK_DEVICE static void store(uint8_t *p, float v) {
    if constexpr (kWide)
      *(float *)p = v;
    else
      *(uint16_t *)p = to16<M::kBF16>(v);
  }
  /// kCount consecutive elements in shared memory; an even number, aligned to
  /// their size.
  template <uint32_t kCount>
  GROK_DEVICE static void load(uint32_t address, float (&v)[kCount]) {
    constexpr uint32_t kWords = kCount * kBytes / 4;
    uint32_t word[kWords];
    ptx::loadSharedWords(address, word);
#pragma unroll
    for (uint32_t i = 0; i < kCount; ++i)
      v[i] = kWide ? __builtin_bit_cast(float, word[i * kWords / kCount])
                   : from16<M::kBF16>(
                         uint16_t(word[i * kWords / kCount] >> i % 2 * 16));
  }
};

/// Whether attention runs on the tensor cores.
template <class B>
inline constexpr bool kTensorAttention = attentionOnTensorCores(B::kShape);

/// How a block of 64 positions of one kv head's K or V lies in the cache: for
/// the tensor cores as their 16-row operand, 32 positions after 32, else
/// [position][dh].
///
/// Keys are rows, 16 positions a tile, and the lane's 16 bytes are 8 dimensions
/// of one. Values are transposed: rows are 16 dimensions, and the lane's 16
/// bytes are 8 positions. Tile (32 positions j, s) of the keys has those
/// positions, in that order, that product s of the values' 32 sums over.
template <class B> struct KvLayout {
  using Kv = KvElement<typename B::Model, typename B::Plan>;
  static constexpr uint32_t kHeadDim = B::Model::kHeadDim,
                            kDimSteps = kHeadDim / 32, kDimTiles = kHeadDim / 16;
  static constexpr uint32_t kPart = 512; // a lane's 16 bytes, of 8 rows
  /// Positions that are streamed together.
  static constexpr uint32_t kTogether = kTensorAttention<B> ? 32 : 1;

  /// Position, within the block, of row `row` (0..15) of the keys' tile `tile`
  /// (0..3).
  GROK_DEVICE static uint32_t position(uint32_t tile, uint32_t row) {
    return tile / 2 * 32 + row % 8 / 2 * 8 + tile % 2 * 4 + row / 8 * 2 +
           row % 2;
  }
  /// Byte of the part (step of 32 dimensions, upper or lower 8 rows) of a tile
  /// of keys.
  GROK_DEVICE static uint32_t keyPart(uint32_t tile, uint32_t step,
                                      uint32_t half) {
    return ((tile * kDimSteps + step) * 2 + half) * kPart;
  }
  /// The same of 32 positions of a tile of 16 dimensions of the values.
  GROK_DEVICE static uint32_t valuePart(uint32_t positions, uint32_t tile,
                                        uint32_t half) {
    return ((positions * kDimTiles + tile) * 2 + half) * kPart;
  }

  /// Byte of an element of the block.
  GROK_DEVICE static uint32_t key(uint32_t p, uint32_t d) {
    if constexpr (!kTensorAttention<B>)
      return (p * kHeadDim + d) * Kv::kBytes;
    uint32_t row = p % 32 / 8 * 2 + p % 2; // of the 8
    return keyPart(p / 32 * 2 + p % 8 / 4, d / 32, p % 4 / 2) +
           (row * 4 + d % 32 / 8) * 16 + d % 8 * 2;
  }
  GROK_DEVICE static uint32_t value(uint32_t p, uint32_t d) {
    if constexpr (!kTensorAttention<B>)
      return (p * kHeadDim + d) * Kv::kBytes;
    return valuePart(p / 32, d / 16, d % 16 / 8) +
           (d % 8 * 4 + p % 32 / 8) * 16 + p % 8 * 2;
  }
};

/// Bytes of one kv head's K or V that a task streams: bulk copies move 16 bytes
/// at least. `cached` positions are in the cache before this step; on the
/// tensor cores the newest one joins them in the ring. (What follows belongs to
/// the same block of 64.)
template <class B>
GROK_DEVICE constexpr uint32_t kvStreamBytes(uint32_t cached) {
  using L = KvLayout<B>;
  uint32_t count = kTensorAttention<B> && cached < kKvPositions ? cached + 1
                                                                : cached;
  count = (count + L::kTogether - 1) / L::kTogether * L::kTogether;
  return (count * L::kHeadDim * L::Kv::kBytes + 15) / 16 * 16;
}

/// First byte of the block of 64 positions of one row, block, layer, K (0) or V
/// (1), and kv head.
template <class B>
GROK_DEVICE uint8_t *kvBlockAddress(B &block, uint32_t layer, uint32_t row,
                                    uint32_t kvBlock, uint32_t value,
                                    uint32_t head) {
  using M = typename B::Model;
  constexpr uint64_t kHeadBytes = uint64_t(kKvPositions) * M::kHeadDim *
                                  KvElement<M, typename B::Plan>::kBytes;
  uint64_t index =
      ((uint64_t(row) * block.params.kvRowBlocks + kvBlock) * M::kLayers +
       layer) *
          2 +
      value;
  return block.params.arena + B::Plan::kKvOffset +
         (index * M::kKvHeads + head) * kHeadBytes;
}

/// Calls task(row, kv head, block, cached) for this slot's attention tasks;
/// `cached` positions of the block are in the cache before this step. Tasks are
/// dealt to the slots in turn: slot s takes tasks s, s + slots, ... of (row, kv
/// head, block). active(b) and position(b) tell about row b.
template <class B, class Active, class Position, class Task>
GROK_DEVICE void forEachAttentionTask(B &block, Active active,
                                      Position position, Task task) {
  using M = typename B::Model;
  uint32_t next = block.slot(), base = 0;
  for (uint32_t b = 0; b < block.rows(); ++b) {
    if (!active(b))
      continue;
    uint32_t at = position(b), blocks = at / kKvPositions + 1;
    for (; next < base + blocks * M::kKvHeads; next += B::Plan::kSlots) {
      uint32_t kvBlock = (next - base) % blocks;
      task(b, (next - base) / blocks, kvBlock,
           kvBlock == blocks - 1 ? at % kKvPositions : kKvPositions);
    }
    base += blocks * M::kKvHeads;
  }
}

} // namespace grok::device
