// The state of one block of the decode kernel: which slot it is, its parts of
// shared memory, and how it waits.
#pragma once

#include "codegen/Device/math.h"
#include "codegen/Device/ptx/cluster.h"
#include "codegen/Device/ptx/mbarrier.h"
#include "codegen/Device/ptx/memory.h"
#include "runtime/bundle/DecodeMemory.h"
#include "runtime/bundle/KernelAbi.h"

namespace grok::device {

inline constexpr uint32_t kConsumers =
    kWarps * 32; // threads that compute; one more warp streams weights
inline constexpr uint32_t kThreads = kConsumers + 32;
inline constexpr uint32_t kConsumerBarrier = 1;
inline constexpr uint32_t kMostSums = 4; // of a row that are added up together

/// The block's dynamic shared memory, laid out by sharedLayout.
extern "C" __attribute__((address_space(3))) alignas(128) uint8_t grokShared[];

/// The sizes that the compiler planned with, from the constants of the
/// translation unit.
template <class Model, class Plan> constexpr DecodeShape decodeShape() {
  return {Model::kHidden,      Model::kHeads,        Model::kKvHeads,
          Model::kHeadDim,     Model::kExperts,      Model::kExpertsPerToken,
          Model::kExpertWidth, Model::kDenseWidth,   Model::kVocab,
          Model::kLayers,      !Model::kHashRouting, Plan::kSlots,
          Plan::kMaxBatch,     Plan::kMaxSeq,        Plan::kPlanes,
          Plan::kBlockSteps,   Plan::kRingStages,    Plan::kChunkBytes,
          Plan::kMatrices,     Plan::kMaxDownTiles,  Plan::kCluster};
}

/// Regions of the arena, in the order of decodeRegions.
enum class Region : uint32_t {
  kQ,
  kKvNew,
  kPartials,
  kAttn,
  kYAttn,
  kRouter,
  kAct,
  kYMoe,
  kPresence,
  kCandidates,
  kResidual,
  kRope,
  kLogits,
  kIds,
  kClaims
};

/// What a step routes where; in shared memory, written by consumers, read by
/// the producer too.
template <class Model, class Plan> struct Routing {
  static constexpr uint32_t kNone = ~0u;
  // Of every expert, from the launch's beginning: its matrices, negative if it
  // was dropped. The plan's own tables lie in global memory, whose answers come
  // late beside the stream.
  short gateUp[Model::kExperts];
  short down[Model::kExperts];
  uint32_t
      active[Model::kExperts]; // kept experts that some row uses, ascending
  uint32_t activeCount;
  uint32_t expert[Plan::kMaxBatch]
                 [Model::kExpertsPerToken]; // of each row, ascending; kNone:
                                            // row not active
  float weight[Plan::kMaxBatch][Model::kExpertsPerToken];
  uint32_t hasOutput[Plan::kMaxBatch]; // 0: every expert of the row was dropped
                                       // and there is no dense MLP

  /// Whether `e`, which may be kNone, is an expert that was kept.
  GROK_DEVICE bool kept(uint32_t e) const {
    return e < Model::kExperts && gateUp[e] >= 0;
  }
  /// Matrices of the a-th active expert.
  GROK_DEVICE uint32_t activeGateUp(uint32_t a) const {
    return uint32_t(gateUp[active[a]]);
  }
  GROK_DEVICE uint32_t activeDown(uint32_t a) const {
    return uint32_t(down[active[a]]);
  }
};

/// Small things that all threads of the block share.
template <class Plan> struct Control {
  abi::Turn turn;      // in progress
  uint32_t failed;     // not 0: a wait ran out (1 + phase + 256 * layer); every
                       // later wait returns at once
  uint32_t stop;       // the producer's signal to leave
  uint32_t waiting;    // the consumers wait for another slot's words
  uint32_t headNeeded; // some row's next token is not known: the step ends with
                       // the output head
  uint32_t active;     // bit b: row b computes a position in this step
  uint32_t position[Plan::kMaxBatch];
  uint32_t length[Plan::kMaxBatch]; // ids known of each row
  int32_t token[Plan::kMaxBatch];   // id of each row at this step's position
  uint64_t
      embeddingRow[Plan::kMaxBatch]; // byte offset of the token's row (untied),
                                     // or of its slot's head extent
  uint32_t embeddingTile[Plan::kMaxBatch]; // tied: tile within that extent
  uint32_t embeddingTiles[Plan::kMaxBatch];
  alignas(16) float reduce[kWarps][kMostSums];
  // 1 / sqrt(mean(h^2) + eps) of the residual stream, what the next RMSNorm
  // multiplies by. A kernel for one row has every warp's copy, which needs no
  // barrier, one for a batch only the first.
  float normFactor[Plan::kMaxBatch][kWarps];
  uint32_t slot;
  uint32_t firstStep;  // of the turn, since the launch
  uint32_t experts;    // used so far in this step, summed over the layers
  uint32_t traceCount; // entries written
  abi::TracePoint tracePoint; // the last one's
};

template <class M, class P> struct Block {
  using Model = M;
  using Plan = P;
  static constexpr DecodeShape kShape = decodeShape<M, P>();
  static constexpr SharedLayout kShared = sharedLayout(kShape);
  static constexpr uint32_t kAttnWidth = M::kHeads * M::kHeadDim;
  /// Two blocks of a cluster share the batch: each keeps every second row of
  /// the residual stream.
  static constexpr bool kPaired = P::kCluster == 2;
  static_assert(sizeof(Control<P>) <= kControlBytes,
                "the control block fits its part of shared memory");
  static_assert(kControlBytes + sizeof(Routing<M, P>) <=
                    kShared.extents - kShared.routing,
                "and routing the rest");

  const abi::DecodeParams &params;
  uint32_t tid;

  // Layers done since the launch, the same in every thread; a step has one more
  // than the model, for the head.
  uint32_t layers = 0;

  // Which half of the scratch the last product summed in; 2: all of it.
  uint32_t sumsIn = 2;

  // Operands that the pair has shared.
  uint32_t shares = 0;

  // Recomputed or read again wherever they are used: registers are scarcer than
  // either.
  GROK_DEVICE uint32_t step() const { return layers / (M::kLayers + 1); }
  GROK_DEVICE uint32_t stepOfTurn() { return step() - control().firstStep; }
  GROK_DEVICE uint32_t layer() const { return layers % (M::kLayers + 1); }
  GROK_DEVICE uint32_t warp() const { return tid / 32; }
  GROK_DEVICE uint32_t lane() const { return tid % 32; }
  GROK_DEVICE uint32_t slot() { return control().slot; }
  GROK_DEVICE uint32_t active() {
    return *(volatile uint32_t *)&control().active;
  }
  /// Rows of the batch, the same in every turn of a launch.
  GROK_DEVICE uint32_t rows() const {
    return P::kMaxBatch == 1 ? 1 : params.rows;
  }
  /// The other block of the pair.
  GROK_DEVICE uint32_t peer() const { return ptx::clusterRank() ^ 1; }
  /// Whether the pair divides the rows. A single one both compute.
  GROK_DEVICE bool pairShares() const { return kPaired && rows() > 1; }
  /// The rows whose residual stream the block keeps: firstRow(), firstRow() +
  /// rowStep(), ...
  GROK_DEVICE uint32_t firstRow() const {
    return pairShares() ? ptx::clusterRank() : 0;
  }
  GROK_DEVICE uint32_t rowStep() const { return pairShares() ? 2 : 1; }
  /// Address of the block's shared memory, which would be put together again
  /// from a special register wherever it is used.
  uint32_t base = ptx::opaque(uint32_t((__UINTPTR_TYPE__)grokShared));

  /// 32-bit address in the shared window, for instructions that want one.
  GROK_DEVICE uint32_t sharedAddress(uint32_t offset) const {
    return base + offset;
  }
  GROK_DEVICE uint8_t *shared() const {
    return (uint8_t *)(__attribute__((address_space(3)))
                       uint8_t *)(__UINTPTR_TYPE__)base;
  }
  GROK_DEVICE Control<P> &control() {
    return *(Control<P> *)(shared() + kShared.routing);
  }
  GROK_DEVICE Routing<M, P> &routing() {
    return *(Routing<M, P> *)(shared() + kShared.routing + kControlBytes);
  }
  GROK_DEVICE float *scratch() { return (float *)(shared() + kShared.scratch); }
  /// {cos, sin} of every pair of dimensions at the rows' positions:
  /// [row][dh/2][2].
  GROK_DEVICE float *rope() { return (float *)(shared() + kShared.rope); }
  GROK_DEVICE float *downSums() {
    return (float *)(shared() + kShared.downSums);
  }
  GROK_DEVICE abi::Extent &extent(uint32_t matrix) {
    return ((abi::Extent *)(shared() + kShared.extents))[matrix];
  }
  /// The bits of active() in a step that is computed.
  GROK_DEVICE uint32_t activeRows() { return P::kMaxBatch == 1 ? 1 : active(); }
  /// Whether row b computes a position in this step; some row does.
  GROK_DEVICE bool rowActive(uint32_t b) { return activeRows() >> b & 1; }
  /// Row b's norm factor, or the warp's copy of it; write it in one lane.
  GROK_DEVICE float &normFactor(uint32_t b) {
    return control().normFactor[b][P::kMaxBatch == 1 ? warp() : 0];
  }
  GROK_DEVICE uint32_t position(uint32_t b) { return control().position[b]; }

  template <class T> GROK_DEVICE T *region(Region r) const {
    return (T *)(params.arena + P::kRegion[uint32_t(r)]);
  }
  GROK_DEVICE const float *vectors(uint32_t l) const {
    return (const float *)(params.weights + P::kVectorsOffset +
                           l * P::kVectorsLayerBytes);
  }

  /// Epoch of this layer's hand-over words; no two layers of a request, nor of
  /// neighbouring requests, share one.
  GROK_DEVICE uint32_t epoch() const { return params.epochBase + layers + 1; }
  GROK_DEVICE uint32_t parity() const { return layers & 1; }

  /// Hides from the optimiser that the thread's identity is the one it knew, so
  /// that what it derives from it is computed again from here on instead of
  /// occupying registers through the whole layer.
  GROK_DEVICE void beginPhase() { asm volatile("" : "+r"(tid), "+r"(layers)); }

  GROK_DEVICE void sync() {
    ptx::barSync(kConsumerBarrier, kConsumers);
    beginPhase();
  }
};

/// Called every so often inside a wait: true when the wait is over because it
/// took too long (now, or anywhere in the block before). The place goes to
/// control(), for reportFailure.
template <class B>
GROK_DEVICE bool gaveUp(B &block, uint32_t &since, Phase phase) {
  volatile uint32_t *failed = &block.control().failed;
  if (*failed)
    return true;
  uint32_t now = uint32_t(ptx::globaltimer() >> 10) | 1; // microseconds, nearly
  if (since == 0)
    since = now;
  if (now - since < block.params.watchdogMicroseconds)
    return false;
  *failed = 1 + uint32_t(phase) + (block.layer() << 8);
  return true;
}

/// At the end of a turn, by one thread: the first block of the GPU to fail
/// leaves its place in the status record.
template <class B> GROK_DEVICE void reportFailure(B &block) {
  uint32_t failed = block.control().failed;
  abi::StatusRecord *status = block.params.status;
  if (failed && ptx::compareExchangeSystem(&status->code, abi::kOk,
                                           abi::kWatchdog) == abi::kOk) {
    status->phase = (failed & 0xff) - 1;
    status->layer = failed >> 8;
    status->slot = block.slot();
    status->step =
        block.stepOfTurn() - 1; // the loop has counted the step that failed
  }
}

inline constexpr uint32_t kPollsBetweenChecks = 256;

/// Waits, in a whole warp, until the phase with this parity of each lane's
/// mbarrier has completed. What one lane has waited for all lanes may read.
template <class B>
GROK_DEVICE void waitBarrier(B &block, uint32_t barrier, uint32_t parity,
                             Phase phase) {
  uint32_t since = 0;
  for (uint32_t polls = 1;
       !ptx::all(ptx::mbarrierTest<B::Plan::kSm>(barrier, parity)); ++polls)
    if (polls % kPollsBetweenChecks == 0 &&
        !ptx::all(!gaveUp(block, since, phase)))
      return;
  ptx::warpSync(); // a vote orders no memory
}

/// Sums of kCount values over the lanes that differ in bits kBit, kBit / 2,
/// ..., 1, a butterfly: where several values are left, a lane hands on half of
/// them (lanes with the bit set keep the upper half). A lane ends with one sum,
/// whose order depends on nothing.
template <uint32_t kBit, uint32_t kCount, class B>
GROK_DEVICE float foldLanes(B &block, const float (&value)[kCount]) {
  if constexpr (kBit == 0) {
    static_assert(kCount == 1);
    return value[0];
  } else if constexpr (kCount == 1) {
    float sum[1] = {value[0] + ptx::shuffleXor(value[0], kBit)};
    return foldLanes<kBit / 2>(block, sum);
  } else {
    const bool upper = block.lane() & kBit;
    float half[kCount / 2];
#pragma unroll
    for (uint32_t i = 0; i < kCount / 2; ++i) {
      float give = upper ? value[i] : value[i + kCount / 2];
      float keep = upper ? value[i + kCount / 2] : value[i];
      half[i] = keep + ptx::shuffleXor(give, kBit);
    }
    return foldLanes<kBit / 2>(block, half);
  }
}

/// Whether the kernel is one for a single row, whose warps stage for
/// themselves.
template <class B> inline constexpr bool kOneRow = B::Plan::kMaxBatch == 1;

template <class B> inline constexpr bool kWholeRow = rowIsKBlock(B::kShape);

/// Rows of a batch, rounded up to a power of two.
constexpr uint32_t powerOfTwoRows(uint32_t rows) {
  return rows > 4 ? 8 : rows > 2 ? 4 : rows;
}

/// The warps that work on one row: as many teams as the block keeps rows of the
/// residual stream.
template <class B> struct Team {
  static constexpr uint32_t kCount = powerOfTwoRows(B::kShape.residualRows());
  static constexpr uint32_t kTeamWarps = kWarps / kCount;
  static constexpr uint32_t kLanes = kTeamWarps * 32;

  static GROK_DEVICE uint32_t index(B &block) {
    return block.warp() / kTeamWarps;
  }
  static GROK_DEVICE uint32_t lane(B &block) { return block.tid % kLanes; }
  /// A barrier of the team's threads.
  static GROK_DEVICE void sync(B &block) {
    ptx::barSync(kConsumerBarrier + (kCount > 1 ? 1 + index(block) : 0),
                 kLanes);
    block.beginPhase();
  }
  /// The team's row of the residual stream; there may be none such.
  static GROK_DEVICE uint32_t row(B &block) {
    return block.firstRow() + index(block) * block.rowStep();
  }
  /// Whether there is one that computes a position in this step.
  static GROK_DEVICE bool active(B &block) {
    return row(block) < block.rows() && block.rowActive(row(block));
  }
};

/// First half of sums over a team: this thread's `value`s. The order of a sum
/// depends on nothing but the team's size. After a barrier, teamSums.
template <uint32_t kCount, class B>
GROK_DEVICE void addToSums(B &block, float (&value)[kCount]) {
  static_assert(kCount == 1 || kCount == kMostSums);
  float sum = foldLanes<16>(block, value);
  constexpr uint32_t kLanes = 32 / kCount; // that hold the same sum
  if (block.lane() % kLanes == 0)
    block.control().reduce[block.warp()][block.lane() / kLanes] = sum;
}

/// Sum of a power of two of parts, in a fixed order: neighbours first.
template <uint32_t kCount>
GROK_DEVICE float sumOfParts(const float (&part)[kCount]) {
  if constexpr (kCount == 1) {
    return part[0];
  } else {
    float half[kCount / 2];
#pragma unroll
    for (uint32_t i = 0; i < kCount / 2; ++i)
      half[i] = part[2 * i] + part[2 * i + 1];
    return sumOfParts(half);
  }
}

/// The sums of the thread's team, by every thread that wants them. After a
/// barrier.
template <uint32_t kCount, class B>
GROK_DEVICE void teamSums(B &block, float (&sum)[kCount]) {
  using T = Team<B>;
  float part[kCount][T::kTeamWarps];
#pragma unroll
  for (uint32_t w = 0; w < T::kTeamWarps; ++w) {
    float ofWarp[kCount];
    ptx::loadSharedFloats(
        block.control().reduce[T::index(block) * T::kTeamWarps + w], ofWarp);
#pragma unroll
    for (uint32_t i = 0; i < kCount; ++i)
      part[i][w] = ofWarp[i];
  }
#pragma unroll
  for (uint32_t i = 0; i < kCount; ++i)
    sum[i] = sumOfParts(part[i]);
}

/// In a kernel compiled for tracing, notes when thread 0 came by; of a phase
/// that waits several times, the first. `ahead`: the phase is one of the next
/// layer.
template <class B>
GROK_DEVICE void trace(B &block, Phase phase, abi::TracePoint point,
                       uint32_t ahead = 0) {
  if constexpr (B::Plan::kTrace) {
    uint32_t &count = block.control().traceCount;
    auto &last = block.control().tracePoint;
    bool again = point == abi::TracePoint::kReady && last == point;
    if (block.tid == 0)
      last = point;
    if (block.tid == 0 && !again && count < block.params.traceEntries)
      block.params.trace[uint64_t(block.slot()) * block.params.traceEntries +
                         count++] = {ptx::globaltimer(), ptx::clock(),
                                     uint16_t(block.layer() + ahead),
                                     uint8_t(phase), uint8_t(point)};
  }
}
using abi::TracePoint;

} // namespace grok::device
