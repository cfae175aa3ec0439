// What the host hands to the kernels: plain structs, compiled on both sides.
// Pointers are device pointers.
#pragma once

#include <stdint.h>

namespace grok::abi {

inline constexpr uint32_t kMaxBatch = 8;

/// One slot's part of one matrix: SlotExtent with its layer stride resolved.
/// Table order: [matrix][slot].
struct Extent {
  uint64_t offset;      // bytes in the blob, layer 0
  uint64_t layerStride; // bytes
  uint32_t tileBegin;
  uint32_t tileCount;
};

/// Why a kernel stopped early.
enum : uint32_t { kOk = 0, kWatchdog = 1 };

/// Written by the kernel into mapped host memory.
struct StatusRecord {
  uint32_t code;  // kOk or kWatchdog
  uint32_t phase; // plan phase that waited
  uint32_t slot;
  uint32_t layer;
  uint32_t step;
  uint32_t done; // launchId when the kernel has done its launch's rows; then
                 // the number of each turn that it has done
  uint32_t rowLength[kMaxBatch]; // known ids of each row after that (prompt and
                                 // generated)
};

/// What the kernel notes of one step.
struct StepRecord {
  uint64_t endNanoseconds; // %globaltimer when slot 0 knew the step's tokens
  uint32_t experts; // expert matrices' uses: distinct experts of the step,
                    // summed over the layers
  uint32_t reserved;
};

/// What a traced kernel (grok_decode of trace.ptx) notes of a phase.
enum class TracePoint : uint32_t {
  kBegin, // the phase begins
  kReady, // what other slots hand over for it has arrived
  kEnd    // the slot's part is handed over
};
struct TraceEntry {
  uint64_t nanoseconds; // %globaltimer, which all slots share
  uint32_t clock;       // low half of the SM's cycle counter, for what falls
                        // between two ticks of it
  uint16_t layer;
  uint8_t phase; // of Phase; kNumPhases: choosing the step's tokens
  uint8_t point; // of TracePoint
};

/// Bits of the epoch that a hand-over word with two values carries. A launch
/// may use fewer epochs than there are, and the words are cleared before one
/// comes again.
inline constexpr uint32_t kPackedEpochBits = 24;

/// What a kernel that stays computes after its launch's rows. Fields that
/// DecodeParams has too mean the same.
struct Turn {
  uint32_t number; // launchId + 1, + 2, ...; written last
  uint32_t rows;   // as many as the launch has; 0: the kernel leaves
  uint32_t start[kMaxBatch];
  uint32_t known[kMaxBatch];
  uint32_t limit[kMaxBatch];
  int32_t eosId;
  float inverseTemperature;
  uint64_t seed;
};

/// Decode parameters of one launch: rows advance together, one position a step.
/// Fields are added at the end only: kernels of older bundles find theirs.
struct DecodeParams {
  const uint8_t *weights;
  uint8_t *arena;
  const Extent *extents;     // [matrices][slots]
  const uint64_t *embedding; // untied head: byte offset of each slot's first
                             // embedding row, else null
  const uint32_t *slotOfSm;  // [smCount]; ~0u: none
  uint32_t *claims;     // [slots], launchId of the block that took the slot
  StatusRecord *status; // mapped host memory
  int32_t *ids; // [maxBatch][idStride]: token at each position; generated ones
                // are appended
  uint32_t idStride;
  uint32_t smCount;     // entries of slotOfSm
  uint32_t rows;        // rows in use, 1..maxBatch
  uint32_t kvRowBlocks; // KV blocks of a row: the row stride of the KV cache
  uint32_t start[kMaxBatch]; // first position to compute; KV entries before it
                             // are there
  uint32_t known[kMaxBatch]; // ids known at launch; start == known: nothing to
                             // compute for this row
  uint32_t limit[kMaxBatch]; // ids after generation at most; known..limit-1 are
                             // generated (limit == known: none, the last
                             // position's logits are still computed)
  int32_t eosId;             // generation of a row stops after it; -1: never
  float inverseTemperature;  // 0: greedy
  uint64_t seed;             // of the Gumbel noise
  uint32_t writeLogits; // 1: logits of every row's last computed position go to
                        // the arena's "logits"
  uint32_t epochBase;   // epochs of this launch are > epochBase; a launch uses
                        // steps * (layers + 1) of them
  uint32_t launchId;    // > 0, above the previous launch's and its turns'
  uint32_t watchdogMicroseconds; // (of 1024 ns) a longer wait ends the kernel
                                 // with kWatchdog
  uint32_t inFlightChunks; // the plan's pacing of the stream: at most so many
                           // chunks that have not landed,
  uint32_t paceCycles;     // and at least so many SM cycles between two
  // A bench launch computes position start[b] of every row again and again; the
  // rows' ids come from sampling::benchToken. 0: a request.
  uint32_t benchSteps;
  uint64_t benchSeed;
  StepRecord
      *steps; // [steps of the launch, or a turn]; null: they are not noted
  // Traced kernels only: each slot's entries, and how many it has at most;
  // traceCounts[slot] is set at the end.
  TraceEntry *trace; // [slots][traceEntries]
  uint32_t traceEntries;
  uint32_t *traceCounts; // [slots]
  // Since bundle format 5.
  int32_t *hostIds;    // mapped host memory, like ids: generated ones go there
                       // too, and known ones of turns come from there
  const Turn *mailbox; // mapped host memory: the next turn, for which the
                       // kernel stays; null: it leaves when its rows are done
  Turn *forwarded; // device memory: the same for all slots but the first, which
                   // writes it
};

/// Parameters of grok_stream, which measures the streaming ceiling: every block
/// streams `bytesPerBlock` of `data`, its own part, through the ring of the
/// decode kernel without pacing, and the consumers read every byte.
struct StreamParams {
  const uint8_t *data;    // [gridDim][bytesPerBlock]
  uint64_t bytesPerBlock; // a multiple of kFragmentBytes
  uint32_t *sink;         // [1]: what makes the reads necessary
};

/// Threads of a block of grok_fill; its grid may have any size.
inline constexpr uint32_t kFillThreads = 256;

/// Parameters of the kernel that fills a blob with synthetic weights
/// (grok_fill).
struct FillParams {
  uint8_t *weights;
  const Extent *extents;
  const uint64_t *embedding;
  uint64_t seed;
};

/// Where a tile of a matrix lies. Table order: matrices as in the plan, then
/// tiles.
struct TilePlace {
  uint64_t offset;      // bytes in the blob of the first fragment of the tile's
                        // group, layer 0
  uint64_t layerStride; // bytes
  uint64_t embedding;   // tiles of an untied head: byte offset of the embedding
                        // row with the number of the tile's first row
  uint32_t groupTiles;  // tiles of its group
  uint32_t inGroup;     // which of them
};

/// A token of a prefill pass. A pass holds each row's tokens in the order of
/// their positions.
struct PrefillToken {
  int32_t id;
  uint32_t row;
  uint32_t position;
  uint32_t end; // positions of the row that are known after this pass
};

/// Parameters of every prefill kernel: one pass over `tokens` tokens, of which
/// each launch computes a part in one layer.
struct PrefillParams {
  const uint8_t *weights;
  uint8_t *arena;
  const TilePlace *places;
  uint32_t tokens; // of this pass
  uint32_t layer;
  uint32_t kvRowBlocks; // as in DecodeParams
  uint32_t headCount;   // tokens whose logits are wanted, up to kMaxBatch
  uint32_t headToken[kMaxBatch]; // which; logits go to place 0, 1, ... of the
                                 // arena's "logits"
  // grok_prefill_choose: the next id of those of them whose bit is set,
  // appended to its row.
  uint32_t chooses;
  int32_t *ids;
  uint32_t idStride;
  float inverseTemperature; // 0: greedy
  uint64_t seed;
  // grok_prefill_rate: steps of 64 values of k that every block multiplies.
  uint32_t rateSteps;
};

} // namespace grok::abi
