// Where every element of a weight matrix lies: the bijection between logical
// elements and bytes that the packer, the executors and retargeting share.
//
// A streamed matrix W [rows, k] (y = W x) is cut into tiles of 8 rows. A tile
// is a row of fragments of 8 x 32 elements (512 bytes), each in the register
// order of the B operand of two consecutive mma.m16n8k16: lane l = 4 * row + (k
// % 8) / 2 of a warp owns 16 bytes, {k16 step 0: b0, b1; k16 step 1: b0, b1}. A
// row of a fragment is therefore 64 contiguous bytes, in the fixed order of k
// given by fragmentElement, which also suits a CPU. Rows are padded to 8 and k
// to 32 with zeros.
//
// A slot owns a contiguous range of a matrix's tiles; their fragments form its
// extent, in consumption order:
//   for each group of kGroupTiles tiles: for each K block: for each tile of the
//   group: for each k32 step of the block.
#pragma once

#include <stdint.h>

// Compiled for the device too: nothing but <stdint.h> is included.
namespace grok {

inline constexpr uint32_t kTileRows = 8;
inline constexpr uint32_t kTileK = 32;
inline constexpr uint32_t kFragmentBytes = kTileRows * kTileK * 2;
/// Consumer warps of a block: k32 step i of a tile is summed by warp i %
/// kWarps, and the warps' sums are added in order. It is part of the numerics,
/// so it is the same for every GPU.
inline constexpr uint32_t kWarps = 8;
/// Steps that a warp sums at a time. A K block is a multiple of kBatchSteps *
/// kWarps steps, or no matrix has longer rows.
inline constexpr uint32_t kBatchSteps = 8;
constexpr bool sumsWholeBatches(uint32_t blockSteps, uint32_t longestRow) {
  return blockSteps % (kBatchSteps * kWarps) == 0 || blockSteps >= longestRow;
}
/// Tiles whose accumulators a warp holds at once.
inline constexpr uint32_t kGroupTiles = 8;

constexpr uint32_t ceilDiv(uint32_t a, uint32_t b) {
  return a / b + (a % b != 0);
}
constexpr uint64_t alignUp(uint64_t a, uint64_t b) {
  return (a + b - 1) / b * b;
}

/// Index (in 16-bit elements, 0..255) of element (row 0..7, k 0..31) inside a
/// fragment.
constexpr uint32_t fragmentElement(uint32_t row, uint32_t k) {
  return (row * 4 + (k % 8) / 2) * 8 + (k / 16) * 4 + ((k % 16) / 8) * 2 +
         k % 2;
}
/// The inverse of fragmentElement inside one row: element e (0..31) of a row's
/// 64 bytes holds this k.
constexpr uint32_t fragmentK(uint32_t e) {
  return ((e % 8) / 4) * 16 + ((e % 4) / 2) * 8 + (e / 8) * 2 + e % 2;
}

/// Index of the fragment (tile of the extent, k32 step) inside an extent of
/// `tiles` tiles with `steps` k32 steps each, cut into K blocks of
/// `blockSteps`.
constexpr uint64_t fragmentIndex(uint32_t tile, uint32_t step, uint32_t tiles,
                                 uint32_t steps, uint32_t blockSteps) {
  uint32_t group = tile / kGroupTiles, block = step / blockSteps;
  uint32_t left = tiles - group * kGroupTiles;
  uint32_t groupTiles = left < kGroupTiles ? left : kGroupTiles;
  uint32_t stepsLeft = steps - block * blockSteps;
  uint32_t stepsHere = stepsLeft < blockSteps ? stepsLeft : blockSteps;
  return uint64_t(group) * kGroupTiles * steps +
         uint64_t(groupTiles) * block * blockSteps +
         uint64_t(tile % kGroupTiles) * stepsHere + step % blockSteps;
}

/// The inverse of fragmentIndex: the tile of the extent and the k32 step that
/// fragment `index` holds.
struct FragmentPlace {
  uint32_t tile, step;
};
constexpr FragmentPlace fragmentPlace(uint64_t index, uint32_t tiles,
                                      uint32_t steps, uint32_t blockSteps) {
  uint32_t group = uint32_t(index / (uint64_t(kGroupTiles) * steps));
  uint32_t left = tiles - group * kGroupTiles;
  uint32_t groupTiles = left < kGroupTiles ? left : kGroupTiles;
  uint32_t rest = uint32_t(index - uint64_t(group) * kGroupTiles * steps);
  uint32_t block = rest / (groupTiles * blockSteps);
  rest -= block * groupTiles * blockSteps;
  uint32_t stepsLeft = steps - block * blockSteps;
  uint32_t stepsHere = stepsLeft < blockSteps ? stepsLeft : blockSteps;
  return {group * kGroupTiles + rest / stepsHere,
          block * blockSteps + rest % stepsHere};
}

/// The streamed matrices of a model. The order is the order of consumption in a
/// layer.
enum class MatrixKind : uint32_t {
  kQkv,
  kAttnOut,
  kGateUp,
  kDenseGateUp,
  kDown,
  kDenseDown,
  kHead
};

/// A row of the checkpoint's tensors.
enum class TensorKind : uint32_t {
  kTokenEmbedding, // [V, D]
  kHead,           // [V, D]; the embedding's rows when the head is tied
  kFinalNorm,      // [D]
  kPreAttnNorm,
  kPostAttnNorm,
  kPreMoeNorm,
  kPostMoeNorm, // [D]
  kQuery,       // [H*dh, D]
  kKey,         // [K*dh, D]
  kValue,       // [K*dh, D]
  kAttnOut,     // [D, H*dh]
  kRouter,      // [E, D], float32
  kExpertGate,
  kExpertUp,   // [F, D]
  kExpertDown, // [D, F]
  kDenseGate,
  kDenseUp,   // [Fd, D]
  kDenseDown, // [D, Fd]
};

struct TensorRow {
  TensorKind tensor;
  uint32_t row;
};

/// Which checkpoint row a matrix row is. Rows that are combined pairwise lie
/// side by side, so that a lane of an accumulator holds both: (j, j + dh/2) of
/// every query and key head for RoPE, (gate f, up f) of every MLP.
constexpr TensorRow matrixRow(uint32_t numHeads, uint32_t numKvHeads,
                              uint32_t headDim, MatrixKind kind, uint32_t row) {
  switch (kind) {
  case MatrixKind::kQkv: {
    uint32_t dh = headDim, head = row / dh, r = row % dh;
    uint32_t paired = r / 2 + (r % 2) * (dh / 2);
    if (head < numHeads)
      return {TensorKind::kQuery, head * dh + paired};
    if (head < numHeads + numKvHeads)
      return {TensorKind::kKey, (head - numHeads) * dh + paired};
    return {TensorKind::kValue, (head - numHeads - numKvHeads) * dh + r};
  }
  case MatrixKind::kAttnOut:
    return {TensorKind::kAttnOut, row};
  case MatrixKind::kGateUp:
    return {row % 2 ? TensorKind::kExpertUp : TensorKind::kExpertGate, row / 2};
  case MatrixKind::kDenseGateUp:
    return {row % 2 ? TensorKind::kDenseUp : TensorKind::kDenseGate, row / 2};
  case MatrixKind::kDown:
    return {TensorKind::kExpertDown, row};
  case MatrixKind::kDenseDown:
    return {TensorKind::kDenseDown, row};
  case MatrixKind::kHead:
    return {TensorKind::kHead, row};
  }
  return {TensorKind::kHead, 0};
}

} // namespace grok
