// plan.bin: the plan as the runtime and the kernels read it. The compiler
// writes it from plan IR; nothing here is recomputed by a reader, only checked.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/bundle/PrefillMemory.h"
#include "runtime/bundle/Quantized.h"
#include "runtime/bundle/WeightLayout.h"

namespace grok {

enum class SmPolicy : uint32_t { kAll, kGroup };
enum class BankPolicy : uint32_t { kStriped, kExpert };
enum class Activations : uint32_t { kSingle, kSplit };

/// The contiguous range of a matrix's tiles that one slot owns, and where their
/// fragments lie.
struct SlotExtent {
  uint32_t tileBegin = 0;
  uint32_t tileCount =
      0; // 0: the slot has no part in this matrix; offset and bank are 0 then
  uint32_t bank = 0;
  uint64_t offset = 0; // byte offset in the blob, of layer 0
  bool operator==(const SlotExtent &) const = default;
};

/// A streamed matrix. Matrices of a layer stand for all layers: layer l's
/// extent begins at offset + l * bankLayerStride[bank].
struct PlanMatrix {
  MatrixKind kind = MatrixKind::kQkv;
  uint32_t expert = 0;           // index in the config, for kGateUp and kDown
  uint32_t tiles = 0;            // ceil(rows / 8)
  uint32_t steps = 0;            // ceil(k / 32)
  std::vector<SlotExtent> slots; // one a slot
  bool operator==(const PlanMatrix &) const = default;
};

/// Rows [rowBegin, rowBegin + rowCount) of an untied embedding table,
/// row-major, 2 bytes an element.
struct EmbeddingExtent {
  uint32_t rowBegin = 0, rowCount = 0, bank = 0;
  uint64_t offset = 0;
  bool operator==(const EmbeddingExtent &) const = default;
};

/// A named part of the arena. Bytes from the arena's start.
struct ArenaRegion {
  std::string name;
  uint64_t offset = 0, bytes = 0;
  uint32_t firstPhase = 0,
           lastPhase = 0; // inclusive; the phases (of one layer) during which
                          // its content is alive
  bool operator==(const ArenaRegion &) const = default;
};

struct BankSegment {
  uint64_t offset = 0; // in the blob, a multiple of the target's bank alignment
  uint64_t bytes = 0;  // with padding up to the next segment
  uint64_t usedBytes = 0; // without it
  uint64_t layerStride =
      0; // bytes from an extent of layer l to the same extent of layer l + 1
  bool operator==(const BankSegment &) const = default;
};

struct PlanTables {
  uint32_t deviceIndex = 0, deviceCount = 1;
  uint32_t slots = 0; // logical SMs
  uint32_t maxBatch = 0, maxSeq = 0;
  DType dtype = DType::kBF16; // 16-bit type of operands, and of weights
  Quantization quantization = Quantization::kNone; // of streamed matrices
  Activations activations = Activations::kSingle;
  SmPolicy smPolicy = SmPolicy::kAll;
  BankPolicy bankPolicy = BankPolicy::kStriped;
  uint32_t blockSteps = 0; // K block in k32 steps, a multiple of kWarps
  uint32_t ringStages = 0; // of chunkBytes each
  uint32_t chunkBytes = 0; // a multiple of kFragmentBytes
  uint32_t inFlightChunks =
      0; // at most this many chunks are on their way to a slot; <= ringStages
  uint32_t paceCycles = 0;  // SM cycles at least from the issue of one chunk of
                            // a slot to the next
  uint32_t sharedBytes = 0; // dynamic shared memory of the decode kernel
  uint32_t threads = 0;     // of a block of the decode kernel
  uint32_t cluster = 1;     // its blocks that share a batch: 1 or 2

  PrefillTile prefill; // tokens 0: none

  /// matrixOfExpert[e] tells what became of expert e of the config.
  enum class Expert : uint32_t { kKept, kUnreachable, kPruned };
  std::vector<Expert> experts;

  std::vector<PlanMatrix>
      matrices; // in consumption order: qkv, attn_out, gate_up[kept e,
                // ascending], dense_gate_up, down[kept e, ascending],
                // dense_down, head
  std::vector<EmbeddingExtent> embedding; // empty when the head is tied
  std::vector<BankSegment> banks;

  /// Vectors, float32, in bank 0: per layer pre_attn[D], post_attn[D],
  /// pre_moe[D], post_moe[D], router[E, D] (learned routing only), at
  /// vectorsOffset + l * vectorsLayerBytes; after the last layer's the final
  /// norm[D].
  uint64_t vectorsOffset = 0, vectorsLayerBytes = 0;
  uint64_t blobBytes = 0;

  std::vector<ArenaRegion> arena; // in offset order; "kv" is last
  uint64_t arenaBytes = 0;
  uint64_t kvReserveBytes = 0; // a multiple of 200 MiB

  bool operator==(const PlanTables &) const = default;

  const PlanMatrix *findMatrix(MatrixKind kind, uint32_t expert = 0) const;
  const ArenaRegion *findRegion(std::string_view name) const;

  std::string serialize() const;
  /// Checks magic, version, counts against the bytes that are there, and every
  /// bound and overlap against `model`.
  static absl::StatusOr<PlanTables> parse(std::string_view bytes,
                                          std::string_view file,
                                          const ModelConfig &model);
};

/// Bytes of the KV cache: [row][block of 64 positions][layer][K or V][kv
/// head][64][dh] of kvElementBytes.
inline constexpr uint32_t kKvBlock = 64;
inline constexpr uint64_t kKvReserveUnit = 200ull << 20;
/// 16-bit entries for single activations, float32 for split ones (and always on
/// the CPU).
constexpr uint32_t kvElementBytes(Activations a) {
  return a == Activations::kSplit ? 4 : 2;
}
constexpr uint64_t kvBytes(const ModelConfig &m, uint64_t batch, uint64_t seq,
                           uint32_t elementBytes) {
  return batch * ((seq + kKvBlock - 1) / kKvBlock) * kKvBlock * m.numLayers *
         2 * m.numKvHeads * m.headDim * elementBytes;
}

} // namespace grok
