// The decode kernel: one cooperative launch, one block per SM, for a whole
// request, or for many that come while it stays. 8 consumer warps compute, one
// producer warp streams the slot's weights ahead of them.
#pragma once

#include "codegen/Device/attention.h"
#include "codegen/Device/experts.h"
#include "codegen/Device/head.h"

namespace grok::device {

inline constexpr uint32_t kTurnWords = sizeof(abi::Turn) / 4; // a thread each
static_assert(kTurnWords <= kConsumers);

/// All threads of the block, in a pair of both.
template <class B> GROK_DEVICE void syncAll() {
  if constexpr (B::kPaired)
    ptx::clusterSync();
  else
    ptx::barSync(0, kThreads);
}

/// Takes the slot that the load-time table gives this SM, or a free one if
/// another block has it. A pair takes two neighbouring slots, by the SM of its
/// first block. False: there is no slot for this block.
template <class B> GROK_DEVICE bool claimSlot(B &block) {
  const abi::DecodeParams &p = block.params;
  constexpr uint32_t kCluster = B::Plan::kCluster;
  uint32_t &slot = block.control().slot;
  if (block.tid == 0 && (kCluster == 1 || ptx::clusterRank() == 0)) {
    auto taken = [&](uint32_t s) {
      return ptx::exchange(p.claims + s / kCluster * kCluster, p.launchId) ==
             p.launchId;
    };
    uint32_t sm = ptx::smid(), s = sm < p.smCount ? p.slotOfSm[sm] : ~0u;
    if (s != ~0u && taken(s)) {
      s = 0;
      while (s < B::Plan::kSlots && taken(s))
        s += kCluster;
      if (s >= B::Plan::kSlots)
        s = ~0u;
    }
    slot = s;
    if constexpr (B::kPaired)
      ptx::storeRemote(
          ptx::remoteAddress(ptx::sharedAddress(&slot), block.peer()),
          s == ~0u ? s : s ^ 1);
  }
  syncAll<B>();
  return slot != ~0u;
}

/// Fetches the active rows' rotations. Ends without a barrier.
template <class B> GROK_DEVICE void fetchRope(B &block) {
  constexpr uint32_t kHeadDim = B::Model::kHeadDim;
  for (uint32_t b = 0; b < block.rows(); ++b)
    if (block.rowActive(b))
      for (uint32_t i = block.tid; i < kHeadDim; i += kConsumers)
        block.rope()[b * kHeadDim + i] = block.template region<const float>(
            Region::kRope)[uint64_t(block.position(b)) * kHeadDim + i];
}

/// Finds the embedding rows of the active rows' tokens. Each consumer thread
/// asks whether a slot holds them.
template <class B> GROK_DEVICE void locateEmbedding(B &block) {
  using M = typename B::Model;
  using P = typename B::Plan;
  auto &control = block.control();
  const abi::Extent *head =
      block.params.extents + uint64_t(P::kMatrixHead) * P::kSlots;
  for (uint32_t i = block.tid; i < P::kSlots * block.rows(); i += kConsumers) {
    uint32_t s = i % P::kSlots, b = i / P::kSlots;
    uint32_t tile = uint32_t(control.token[b]) / kTileRows;
    if (!block.rowActive(b) || tile < head[s].tileBegin ||
        tile >= head[s].tileBegin + head[s].tileCount)
      continue;
    if constexpr (M::kTiedHead) {
      control.embeddingRow[b] = head[s].offset;
      control.embeddingTile[b] = tile - head[s].tileBegin;
      control.embeddingTiles[b] = head[s].tileCount;
    } else {
      control.embeddingRow[b] =
          block.params.embedding[s] + (uint64_t(uint32_t(control.token[b])) -
                                       head[s].tileBegin * kTileRows) *
                                          M::kHidden * 2;
    }
  }
  block.sync();
}

/// Waits for what a layer's experts hand over: no slot may run a layer ahead of
/// one that hands nothing over.
template <class B> GROK_DEVICE void awaitPresence(B &block) {
  using P = typename B::Plan;
  if constexpr (P::kPresence) {
    uint64_t *presence = block.template region<uint64_t>(Region::kPresence) +
                         block.parity() * pairedWords(P::kSlots);
    if (block.tid == 0)
      publish(presence + block.slot(), 0, block.epoch());
    awaitAll(block, presence, P::kSlots, Phase::kDown);
  }
}

/// The active rows to which the layer's experts add something.
template <class B> GROK_DEVICE uint32_t rowsWithOutput(B &block) {
  uint32_t rows = 0;
  for (uint32_t b = 0; b < block.rows(); ++b)
    rows |= block.rowActive(b) && block.routing().hasOutput[b] ? 1u << b : 0;
  return rows;
}

/// A layer's two halves: each begins with the norm of what the one before adds
/// to the residual stream.
enum class Half : uint32_t { kAttention, kExperts };

/// Takes the first tiles of a half's first product, if it is known.
template <class B>
GROK_DEVICE void takeAhead(B &block, RingReader<B> &ring, Half half,
                           FirstTiles<B, B::Model::kHidden> &ahead) {
  const bool attention = half == Half::kAttention;
  if constexpr (!B::Model::kHashRouting)
    if (!attention) {
      prefetchRouter(block);
      return;
    }
  if (!attention && block.routing().activeCount == 0)
    return;
  ahead.take(block, ring,
             attention ? uint32_t(B::Plan::kMatrixQkv)
                       : block.routing().activeGateUp(0),
             attention ? Phase::kQkv : Phase::kGateUp);
}

/// The other half's output becomes part of h, whose norm is the input of `half`
/// of this layer, or, after the experts, of what follows it. Gains of a layer:
/// pre_attn, post_attn, pre_moe, post_moe; the final norm's follow the last
/// layer's.
template <class B> GROK_DEVICE void beginHalf(B &block, Half half) {
  using M = typename B::Model;
  using Out = OutputWord<B>;
  const bool experts = half == Half::kExperts;
  const float *vectors = block.vectors(block.layer());
  Phase next = experts                          ? Phase::kGateUp
               : block.layer() + 1 < M::kLayers ? Phase::kQkv
                                                : Phase::kHead;
  if (!experts)
    awaitPresence(block);
  trace(block, next, TracePoint::kBegin, experts ? 0 : 1);
  addNormed(block,
            block.template region<uint64_t>(experts ? Region::kYAttn
                                                    : Region::kYMoe) +
                block.parity() * B::Plan::kMaxBatch * Out::kRowWords,
            vectors + (experts ? 1 : 3) * M::kHidden,
            experts ? vectors + 2 * M::kHidden
                    : block.vectors(block.layer() + 1),
            experts ? block.activeRows() : rowsWithOutput(block), next);
  if (!experts)
    ++block.layers;
}

/// A phase that begins where the one before ends.
template <class B, class Run>
GROK_DEVICE void runPhase(B &block, Phase phase, Run run) {
  block.beginPhase();
  trace(block, phase, TracePoint::kBegin);
  run();
  trace(block, phase, TracePoint::kEnd);
}

/// One half of a layer; `first`: of the step. After the last layer only what it
/// adds to the residual stream is left: then false.
template <class B>
GROK_DEVICE bool computeHalf(B &block, RingReader<B> &ring, Half half,
                             bool first) {
  using M = typename B::Model;
  const bool last =
      half == Half::kAttention && !first && block.layer() + 1 == M::kLayers;
  block.beginPhase();
  FirstTiles<B, M::kHidden> ahead;
  if (!last)
    takeAhead(block, ring, half, ahead);
  if (half == Half::kAttention && first) {
    trace(block, Phase::kQkv, TracePoint::kBegin);
    embed(block);
    if constexpr (kWholeRow<B>)
      stageNormed(block, block.vectors(0), 0);
    trace(block, Phase::kQkv, TracePoint::kReady);
  } else {
    beginHalf(block, half);
  }
  if (last)
    return false;
  block.beginPhase();
  if (half == Half::kAttention) {
    qkvPhase(block, ring, ahead);
    trace(block, Phase::kQkv, TracePoint::kEnd);
    runPhase(block, Phase::kAttention, [&] { attentionPhase(block, ring); });
    runPhase(block, Phase::kMerge, [&] { mergePhase(block); });
    runPhase(block, Phase::kAttnOut, [&] { attnOutPhase(block, ring); });
  } else {
    if constexpr (!M::kHashRouting)
      routeByRouter(block);
    gateUpPhase(block, ring, ahead);
    trace(block, Phase::kGateUp, TracePoint::kEnd);
    runPhase(block, Phase::kDown, [&] { downPhase(block, ring); });
  }
  return true;
}

/// Everything a consumer thread does in one step, the head included. Returns
/// its best candidate. The two halves of a layer share the code of their
/// beginning: the whole loop fits the SM's instruction cache.
template <class B>
GROK_DEVICE Candidate computeStep(B &block, RingReader<B> &ring,
                                  bool needHead) {
  fetchRope(block);
  locateEmbedding(block);
  if (block.tid == 0) {
    block.control().headNeeded = needHead;
    block.control().experts = 0;
    if constexpr (!B::Model::kHashRouting)
      announce(block);
  }
  if constexpr (B::Model::kHashRouting)
    routeByHash(block);
  Half half = Half::kAttention;
#pragma unroll 1
  for (bool first = true; computeHalf(block, ring, half, first); first = false)
    half = half == Half::kAttention ? Half::kExperts : Half::kAttention;
  fenceStep(block);
  if (!needHead)
    return {kNegativeInfinity, kNoToken};
  Candidate best = headPhase(block, ring);
  trace(block, Phase::kHead, TracePoint::kEnd);
  return best;
}

/// Whether some row's next token is not known before this step.
template <class B> GROK_DEVICE bool stepNeedsHead(B &block) {
  bool need = false;
  for (uint32_t b = 0; b < block.rows(); ++b)
    need |= block.rowActive(b) &&
            block.position(b) + 1 >= block.control().turn.known[b];
  return need;
}

/// The ids of step `step` of a bench launch.
template <class B> GROK_DEVICE void drawBenchTokens(B &block, uint32_t step) {
  for (uint32_t b = 0; b < block.rows(); ++b)
    block.control().token[b] =
        sampling::benchToken(block.params.benchSeed, step, b, B::Model::kVocab);
}

/// Book-keeping at the start of a turn, by one thread.
template <class B> GROK_DEVICE void firstStep(B &block) {
  const abi::DecodeParams &p = block.params;
  auto &control = block.control();
  const abi::Turn &turn = control.turn;
  control.firstStep = block.step();
  control.active = 0;
#pragma unroll 1
  for (uint32_t b = 0; b < turn.rows; ++b) {
    control.active |= turn.start[b] < turn.known[b]
                          ? 1u << b
                          : 0; // a row may have nothing to compute in this turn
    control.position[b] = turn.start[b];
    control.length[b] = turn.known[b];
    control.token[b] = p.ids[b * p.idStride + turn.start[b]];
  }
  if (p.benchSteps)
    drawBenchTokens(block, 0);
}

/// The end of a bench launch's step, by one thread: the same position again,
/// with other ids.
template <class B> GROK_DEVICE void nextBenchStep(B &block) {
  const abi::DecodeParams &p = block.params;
  uint32_t done = block.step() + 1;
  drawBenchTokens(block, done);
  if (done == p.benchSteps)
    block.control().active = 0;
}

/// Book-keeping between steps, by one thread: control().token holds every row's
/// choice; afterwards it holds the tokens of the next step, and rows that are
/// done are not active.
template <class B> GROK_DEVICE void nextStep(B &block) {
  const abi::DecodeParams &p = block.params;
  auto &control = block.control();
  const abi::Turn &turn = control.turn;
  if (p.steps && block.slot() == 0)
    p.steps[block.stepOfTurn()] = {ptx::globaltimer(), control.experts, 0};
  for (uint32_t b = 0; b < turn.rows && !p.benchSteps; ++b) {
    if (!block.rowActive(b))
      continue;
    uint32_t next = control.position[b] + 1;
    bool more = next < turn.known[b];
    if (more) {
      control.token[b] = p.ids[b * p.idStride + next];
    } else if (control.length[b] < turn.limit[b]) {
      if (block.slot() == 0)
        p.ids[b * p.idStride + next] = p.hostIds[b * p.idStride + next] =
            control.token[b];
      control.length[b] = next + 1;
      more = next + 1 < turn.limit[b] && control.token[b] != turn.eosId;
    }
    if (more)
      control.position[b] = next;
    else
      control.active &= ~(1u << b);
  }
  if (p.benchSteps)
    nextBenchStep(block);
  if (*(volatile uint32_t *)&control.failed)
    control.active = 0;
}

/// The end of a turn, by one thread.
template <class B> GROK_DEVICE void reportTurn(B &block) {
  const abi::DecodeParams &p = block.params;
  auto &control = block.control();
  reportFailure(block);
  if (block.slot() != 0)
    return;
#pragma unroll 1
  for (uint32_t b = 0; b < control.turn.rows; ++b)
    p.status->rowLength[b] = control.length[b];
  ptx::storeReleaseSystem(&p.status->done, control.turn.number);
}

/// Takes the known ids of a turn out of the host's memory. By the first slot.
template <class B> GROK_DEVICE void fetchIds(B &block) {
  const abi::DecodeParams &p = block.params;
  const abi::Turn &turn = block.control().turn;
  const volatile int32_t *from = p.hostIds;
#pragma unroll 1
  for (uint32_t b = 0; b < turn.rows; ++b)
#pragma unroll 1
    for (uint32_t i = turn.start[b] + block.tid; i < turn.known[b];
         i += kConsumers)
      p.ids[b * p.idStride + i] = from[b * p.idStride + i];
}

/// Waits for the next turn of a kernel that stays. The first slot asks the
/// host's memory and tells the others, so that one block asks across the bus;
/// it cannot be a turn ahead of one that has not read its own. False: the block
/// leaves, after a wait that ran out too.
template <class B> GROK_DEVICE bool takeTurn(B &block) {
  constexpr uint32_t kPollNanoseconds = 500;
  const abi::DecodeParams &p = block.params;
  auto &control = block.control();
  if (!p.mailbox)
    return false;
  const bool first = block.slot() == 0, failed = control.failed;
  const abi::Turn *from = first ? p.mailbox : p.forwarded;
  const uint32_t number = control.turn.number + 1;
  if (block.tid == 0 && !failed)
    while (ptx::loadAcquireSystem(&from->number) != number)
      ptx::sleep(kPollNanoseconds);
  block.sync();
  uint32_t *turn = (uint32_t *)&control.turn;
  if (block.tid < kTurnWords)
    turn[block.tid] = failed ? 0 : ((const volatile uint32_t *)from)[block.tid];
  block.sync();
  if (first) {
    fetchIds(block);
    if (block.tid > 0 && block.tid < kTurnWords) // the number is first
      ((uint32_t *)p.forwarded)[block.tid] = turn[block.tid];
  }
  block.sync();
  if (first && block.tid == 0)
    ptx::storeReleaseSystem(&p.forwarded->number, number);
  return control.turn.rows > 0;
}

/// The consumer warps: all steps of every turn.
template <class B> GROK_DEVICE void consume(B &block) {
  auto &control = block.control();
  RingReader<B> ring;
  do {
    if (block.tid == 0)
      firstStep(block);
    block.sync();
    for (; block.active(); ++block.layers) {
      bool needHead = stepNeedsHead(block);
      publishCandidates(block, computeStep(block, ring, needHead));
      trace(block, Phase(kNumPhases), TracePoint::kBegin);
      chooseTokens(block);
      if (block.warp() == 0) // which writes what the producer may still read
        awaitTaken(block, announcements(block, false));
      if (block.tid == 0)
        nextStep(block);
      block.sync();
      trace(block, Phase(kNumPhases), TracePoint::kEnd);
    }
    if (block.tid == 0)
      reportTurn(block);
  } while (takeTurn(block));
  *(volatile uint32_t *)&control.stop = 1;
  if (B::Plan::kTrace && block.tid == 0)
    block.params.traceCounts[block.slot()] = control.traceCount;
}

/// What the producer knows of a step: announced by the consumers.
template <class B> struct ProducerStep {
  using M = typename B::Model;
  /// Of a block of positions in all layers.
  static constexpr uint64_t kBlockBytes =
      uint64_t(M::kLayers) * 2 * M::kKvHeads * kKvPositions * M::kHeadDim *
      KvElement<M, typename B::Plan>::kBytes;
  uint32_t announcements = 0; // followed
  uint32_t position = 0;      // lane b: of row b
  uint32_t active = 0, headNeeded = 0;
  bool cacheStays = false; // L2 can keep the cache until the next step

  /// Waits for the next announcement.
  GROK_DEVICE void await(B &block, RingWriter<B> &ring) {
    ring.wait(block, ring.barriers.routed(), announcements++ & 1);
  }

  /// The next announcement is the one of a step.
  GROK_DEVICE void begin(B &block, RingWriter<B> &ring) {
    await(block, ring);
    active = block.active();
    headNeeded = block.control().headNeeded;
    position = block.lane() < block.rows() ? block.position(block.lane()) : 0;
    uint32_t blocks = 0;
    for (uint32_t b = 0; b < block.rows(); ++b)
      blocks += active >> b & 1 ? rowPosition(b) / kKvPositions + 1 : 0;
    cacheStays = blocks * kBlockBytes <= B::Plan::kL2Bytes / 2;
    if constexpr (B::Plan::kSm >= 90) // the KV entries of the step before
      ptx::fenceAsyncProxy();
  }

  GROK_DEVICE uint32_t rowPosition(uint32_t b) const {
    return ptx::shuffle(position, b);
  }

  /// What was announced last has been read.
  GROK_DEVICE void release(B &block, RingWriter<B> &ring) const {
    ptx::warpSync();
    if (block.lane() == 0)
      ptx::mbarrierArrive(ring.barriers.taken());
  }
};

/// Streams the cached keys and values of the slot's attention tasks.
template <class B>
GROK_DEVICE void pushCache(B &block, RingWriter<B> &ring,
                           const ProducerStep<B> &step, uint32_t layer) {
  forEachAttentionTask(
      block, [&](uint32_t b) { return step.active >> b & 1; },
      [&](uint32_t b) { return step.rowPosition(b); },
      [&](uint32_t b, uint32_t kvHead, uint32_t kvBlock, uint32_t cached) {
#pragma unroll 1
        for (uint32_t value = 0; value < 2; ++value)
          ring.push(block,
                    kvBlockAddress(block, layer, b, kvBlock, value, kvHead),
                    kvStreamBytes<B>(cached), streamPolicy<B>(step.cacheStays));
      });
}

/// The producer warp: the slot's extents and its part of the KV cache in
/// consumption order, as far ahead as the ring allows. It waits for nobody but
/// for the announcements: in a step before the cache, with a learned router
/// also in every layer before the experts.
template <class B> GROK_DEVICE void produce(B &block) {
  using M = typename B::Model;
  using P = typename B::Plan;
  enum Item : uint32_t {
    kQkv,
    kCache,
    kAttnOut,
    kGateUp,
    kDenseGateUp,
    kDown,
    kDenseDown,
    kItems
  };
  RingWriter<B> ring = RingWriter<B>::of(
      block, {block.params.inFlightChunks, block.params.paceCycles});
  ProducerStep<B> step;
  for (uint32_t layer = 0; !ring.stopped;
       layer = layer == M::kLayers ? 0 : layer + 1) {
#pragma unroll 1 // one copy of push for every kind of extent
    for (uint32_t item = layer < M::kLayers ? kQkv : kItems;
         item <= kItems && !ring.stopped; ++item) {
      if (item == kCache && layer == 0) {
        step.begin(block, ring);
        if (!M::kHashRouting)
          step.release(block, ring);
      }
      if (item == kGateUp && !M::kHashRouting)
        step.await(block, ring);
      if (item == kItems && (layer < M::kLayers || !step.headNeeded))
        break;
      if (item == kCache) {
        pushCache(block, ring, step, layer);
        continue;
      }
      if (M::kDenseWidth == 0 && (item == kDenseGateUp || item == kDenseDown))
        continue;
      bool experts = item == kGateUp || item == kDown;
      uint32_t k = item == kAttnOut     ? B::kAttnWidth
                   : item == kDown      ? M::kExpertWidth
                   : item == kDenseDown ? M::kDenseWidth
                                        : M::kHidden;
      uint32_t steps = (k + kTileK - 1) / kTileK;
      const auto &routing = block.routing();
#pragma unroll 1
      for (uint32_t n = 0;
           n < (experts ? routing.activeCount : 1) && !ring.stopped; ++n) {
        const uint32_t matrix =
            item == kQkv           ? uint32_t(P::kMatrixQkv)
            : item == kAttnOut     ? uint32_t(P::kMatrixAttnOut)
            : item == kGateUp      ? routing.activeGateUp(n)
            : item == kDenseGateUp ? uint32_t(P::kMatrixDenseGateUp)
            : item == kDown        ? routing.activeDown(n)
            : item == kDenseDown   ? uint32_t(P::kMatrixDenseDown)
                                   : uint32_t(P::kMatrixHead);
        const abi::Extent &extent = block.extent(matrix);
        const uint64_t offset =
            extent.offset + (item == kItems ? 0 : layer * extent.layerStride);
        ring.push(block, block.params.weights + offset,
                  extentBytes(Weights<B>::kCodes, extent.tileCount, steps),
                  streamPolicy<B>(false));
      }
      // A learned router's experts are those of a layer.
      if (item == kDown && (!M::kHashRouting || layer + 1 == M::kLayers))
        step.release(block, ring);
    }
  }
  ring.drain();
}

template <class Model, class Plan>
GROK_DEVICE void decode(const abi::DecodeParams &params) {
  using B = Block<Model, Plan>;
  static_assert(Plan::kThreads == kThreads,
                "the plan was made for another block size");
  B block{.params = params, .tid = ptx::tid()};
  if (!claimSlot(block))
    return;
  abi::Turn &turn = block.control().turn;
  for (uint32_t m = block.tid; m < Plan::kMatrices; m += kThreads)
    block.extent(m) = params.extents[uint64_t(m) * Plan::kSlots + block.slot()];
  for (uint32_t e = block.tid; e < Model::kExperts; e += kThreads) {
    block.routing().gateUp[e] = Plan::kGateUp[e];
    block.routing().down[e] = Plan::kDown[e];
  }
  if (block.tid < abi::kMaxBatch) {
    turn.start[block.tid] = params.start[block.tid];
    turn.known[block.tid] = params.known[block.tid];
    turn.limit[block.tid] = params.limit[block.tid];
  }
  if (block.tid == 0) {
    RingBarriers<B>::of(block).init();
    block.control().failed = 0;
    block.control().stop = 0;
    block.control().waiting = 0;
    block.control().traceCount = 0;
    turn.number = params.launchId;
    turn.rows = params.rows;
    turn.eosId = params.eosId;
    turn.inverseTemperature = params.inverseTemperature;
    turn.seed = params.seed;
  }
  syncAll<B>();
  if (block.warp() < kWarps)
    consume(block);
  else
    produce(block);
  if constexpr (B::kPaired) // whose shared memory the other block may still
                            // write
    ptx::clusterSync();
}

} // namespace grok::device
