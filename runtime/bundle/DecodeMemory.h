// Sizes of everything that the decode kernel touches: hand-over buffers of the
// arena and the block's shared memory. The memory-planning pass lays them out,
// the kernel indexes them; both compute their sizes here.
#pragma once

#include "runtime/bundle/TileLayout.h"

namespace grok {

/// The phases of a decode step, in order; kHeadPhase runs once a step, the
/// others once a layer.
enum class Phase : uint32_t {
  kQkv,
  kAttention,
  kMerge,
  kAttnOut,
  kRoute,
  kGateUp,
  kDown,
  kHead
};
inline constexpr uint32_t kNumPhases = 8;
inline constexpr const char *kPhaseNames[kNumPhases] = {
    "qkv",   "attention", "merge", "attn_out",
    "route", "gate_up",   "down",  "head"};

/// Words that a vector of `words` takes: they are asked for two at a time.
constexpr uint32_t pairedWords(uint32_t words) { return words + words % 2; }

/// What the sizes depend on.
struct DecodeShape {
  uint32_t hidden, heads, kvHeads, headDim, experts, expertsPerToken,
      expertWidth, denseWidth, vocab, layers;
  bool learnedRouting;
  uint32_t slots, maxBatch, maxSeq;
  uint32_t
      planes; // 16-bit values of an activation operand: 1 (single) or 2 (split)
  uint32_t blockSteps; // K block in k32 steps
  uint32_t ringStages, chunkBytes;
  uint32_t matrices;     // entries of the extent table per slot
  uint32_t maxDownTiles; // largest tile count of a slot in a down or dense_down
                         // matrix
  uint32_t cluster; // blocks that share the rows of the residual stream: 1 or 2

  constexpr uint32_t kvBlocks() const { return ceilDiv(maxSeq, 64); }
  constexpr uint32_t headsPerKv() const { return heads / kvHeads; }
  /// Rows of the residual stream that a block keeps.
  constexpr uint32_t residualRows() const { return ceilDiv(maxBatch, cluster); }
  /// Values that a word carries of what becomes an operand: two of 16 bits, or
  /// a float32 for split activations.
  constexpr uint32_t operandValues() const { return planes == 1 ? 2 : 1; }
  /// Words of a vector that becomes an operand.
  constexpr uint32_t operandWords(uint32_t width) const {
    return pairedWords(ceilDiv(width, operandValues()));
  }
  /// Words of a sub-block's output, which carries float32 for split
  /// activations, else two shorter values.
  constexpr uint32_t outputWords(uint32_t width) const {
    return pairedWords(ceilDiv(width, operandValues()));
  }
  /// Words of the activations between gate_up and down of one row: those of
  /// each chosen expert, then the dense MLP's.
  constexpr uint32_t actWords() const {
    return expertsPerToken * operandWords(expertWidth) +
           operandWords(denseWidth);
  }
};

/// A hand-over word: a float32 and the epoch in which it was written, read and
/// written as one 64-bit access.
inline constexpr uint32_t kWordBytes = 8;
/// Hand-over buffers are used alternately by even and odd layers (candidates:
/// by even and odd steps): whoever writes one has seen every slot finish the
/// layer before, so the half that it overwrites has been read.
inline constexpr uint32_t kParities = 2;

/// Bytes of an arena region; 0: this model does not need it. Order of this list
/// is the order in the arena.
struct RegionSize {
  const char *name;
  uint64_t bytes;
  Phase firstPhase, lastPhase; // when its content is alive
};
inline constexpr uint32_t kNumRegions = 15;
struct RegionList {
  RegionSize regions[kNumRegions];
};
/// Every region but the KV cache, which comes last. Words: [parity][row][...].
constexpr RegionList decodeRegions(const DecodeShape &s) {
  uint64_t words = uint64_t(kParities) * s.maxBatch * kWordBytes;
  uint64_t attn = uint64_t(s.heads) * s.headDim;
  return {{
      {"q", words * attn, Phase::kQkv, Phase::kAttention},
      {"kv_new", words * 2 * s.kvHeads * s.headDim, Phase::kQkv,
       Phase::kAttention},
      {"partials", words * s.heads * s.kvBlocks() * (s.headDim + 2),
       Phase::kAttention, Phase::kMerge},
      {"attn", words * s.operandWords(uint32_t(attn)), Phase::kMerge,
       Phase::kAttnOut},
      {"y_attn", words * s.outputWords(s.hidden), Phase::kAttnOut,
       Phase::kGateUp},
      {"router", s.learnedRouting ? words * pairedWords(s.experts) : 0,
       Phase::kRoute, Phase::kGateUp},
      {"act", words * s.actWords(), Phase::kGateUp, Phase::kDown},
      {"y_moe", words * s.outputWords(s.hidden), Phase::kDown, Phase::kHead},
      {"presence", uint64_t(kParities) * pairedWords(s.slots) * kWordBytes,
       Phase::kDown, Phase::kHead},
      {"candidates",
       uint64_t(kParities) * s.slots * s.maxBatch * 2 * kWordBytes,
       Phase::kHead, Phase::kHead},
      {"residual", uint64_t(s.slots) * s.residualRows() * s.hidden * 4,
       Phase::kQkv, Phase::kHead}, // [slot][row][D] float32
      {"rope", uint64_t(s.maxSeq) * s.headDim * 4, Phase::kQkv,
       Phase::kHead}, // [position][dh/2] {cos, sin}, filled at load
      {"logits", uint64_t(s.maxBatch) * s.vocab * 4, Phase::kHead,
       Phase::kHead}, // [row][V] float32
      {"ids", uint64_t(s.maxBatch) * (s.maxSeq + 1) * 4, Phase::kQkv,
       Phase::kHead}, // [row][maxSeq + 1] int32
      {"claims", uint64_t(s.slots) * 4, Phase::kQkv, Phase::kHead},
  }};
}
inline constexpr uint32_t kRegionAlign = 256;

/// SM cycles at most from one chunk of the stream to the next: the kernel
/// multiplies them with a chunk's bytes in 32 bits.
constexpr uint32_t mostPaceCycles(uint32_t chunkBytes) {
  return ~0u / chunkBytes;
}

/// What the block keeps of the step, apart from the routing.
inline constexpr uint32_t kControlBytes = 3072;

/// Offsets in the block's dynamic shared memory, in bytes.
struct SharedLayout {
  uint32_t ring, operand, residual, scratch, downSums, rope, routing, extents,
      barriers, total;
};

/// Whether the block keeps the residual stream in shared memory; a larger one
/// lives in the arena, in L2.
constexpr bool residualInShared(const DecodeShape &s) {
  return uint64_t(s.hidden) * s.residualRows() * 4 <= 32768;
}

/// Whether a row of the residual stream is one K block, so that it becomes an
/// operand at once: who updates it stages it.
constexpr bool rowIsKBlock(const DecodeShape &s) {
  return s.hidden <= s.blockSteps * kTileK;
}

/// Whether the blocks of two slots can share a batch: sm_90's clusters are
/// there, and a row becomes an operand at once.
constexpr bool canPairBlocks(const DecodeShape &s, uint32_t sm) {
  return sm >= 90 && s.maxBatch > 1 && s.slots % 2 == 0 && rowIsKBlock(s);
}

inline constexpr uint32_t kKvPositions = 64; // of a block of the KV cache
/// A consumer thread sums two dimensions of a head.
inline constexpr uint32_t kMostHeadDim = kWarps * 32 * 2;
/// Groups of threads that share the positions of a block among them.
constexpr uint32_t attentionParts(uint32_t headDim) {
  uint32_t parts = kWarps * 32 / (headDim / 2);
  return parts < 8 ? parts : 8;
}

/// Bytes of the warps' partial sums of a tile, [warp][row][8] float32; the next
/// tile's lie in other banks.
constexpr uint32_t tileSumsBytes(uint32_t rows) {
  return (kWarps * rows + 1) * kTileRows * 4;
}

/// Row stride of the operand planes in 16-bit elements: half a row of banks
/// more than the K block, so that two rows' fragments lie in different banks.
constexpr uint32_t operandStride(const DecodeShape &s) {
  return s.blockSteps * kTileK + 32;
}

/// Attention runs on the tensor cores where the KV cache holds 16-bit values
/// and a head is whole k32 steps.
constexpr bool attentionOnTensorCores(uint32_t planes, uint32_t headDim) {
  return planes == 1 && headDim % 32 == 0;
}
constexpr bool attentionOnTensorCores(const DecodeShape &s) {
  return attentionOnTensorCores(s.planes, s.headDim);
}

/// Bytes of the ring that a consumer waits for at once: the steps of a batch,
/// which may begin inside a chunk, or the keys of a block of positions, on the
/// tensor cores the values too.
constexpr uint64_t fewestRingBytes(const DecodeShape &s) {
  uint64_t steps =
      s.blockSteps < kBatchSteps * kWarps ? s.blockSteps : kBatchSteps * kWarps;
  uint64_t batch = steps * kFragmentBytes + s.chunkBytes;
  uint64_t keys =
      alignUp(uint64_t(kKvPositions) * s.headDim * 2 * s.planes, s.chunkBytes);
  uint64_t kv = attentionOnTensorCores(s) ? 2 * keys : keys;
  return batch > kv ? batch : kv;
}

/// Bytes of the scratch that an attention task uses. On the tensor cores: the
/// queries of four heads at a time as operand columns (high and low halves),
/// the weights of 64 positions likewise, and the scale and sum of every 16 of
/// them. Else float32: the newest key and value, queries and scores, and the
/// partial sums and outputs of the block's thread groups.
constexpr uint64_t attentionScratch(const DecodeShape &s) {
  if (attentionOnTensorCores(s))
    return uint64_t(ceilDiv(s.headsPerKv(), 4)) *
           (8 * (s.headDim + 8) * 2 + 4 * 8 * 16 * 2 + 2 * 4 * 4 * 4);
  return uint64_t(2 * s.headDim +
                  s.headsPerKv() *
                      (s.headDim + kKvPositions + 1 +
                       attentionParts(s.headDim) * (s.headDim + 1))) *
         4;
}

constexpr SharedLayout sharedLayout(const DecodeShape &s) {
  auto max = [](uint64_t a, uint64_t b) { return a > b ? a : b; };
  uint64_t at = 0;
  auto take = [&](uint64_t bytes) {
    uint64_t offset = at;
    at = alignUp(at + bytes, 128);
    return uint32_t(offset);
  };
  SharedLayout l{};
  l.ring = take(uint64_t(s.ringStages) * s.chunkBytes);
  l.operand = take(uint64_t(s.planes) * s.maxBatch * operandStride(s) * 2);
  l.residual =
      take(residualInShared(s) ? uint64_t(s.residualRows()) * s.hidden * 4
                               : 0); // [row][D] float32
  // The warps' partial sums of a tile group, in tileSumsBytes each. Attention
  // and merging use the same bytes.
  uint64_t sums = uint64_t(kGroupTiles) * tileSumsBytes(s.maxBatch);
  uint64_t attention = attentionScratch(s);
  uint64_t merge = uint64_t(kWarps) * 32 * 16; // a partial sum a thread
  l.scratch = take(max(max(sums, attention), merge));
  l.downSums = take(uint64_t(s.maxDownTiles) * s.maxBatch * kTileRows * 4);
  l.rope = take(uint64_t(s.maxBatch) * s.headDim * 4); // [row][dh/2] {cos, sin}
  l.routing =
      take(uint64_t(s.maxBatch) * (s.experts + 4 * s.expertsPerToken + 8) * 4 +
           uint64_t(s.experts) * 4 + kControlBytes);
  l.extents = take(uint64_t(s.matrices) * 24);
  l.barriers = take(uint64_t(s.ringStages) * 16 + 128);
  l.total = uint32_t(at);
  return l;
}

} // namespace grok
