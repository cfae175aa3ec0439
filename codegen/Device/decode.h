// The decode kernel: one cooperative launch, one block per SM, for a whole
// request. 16 consumer warps compute, one producer warp streams the slot's
// weights ahead of them.
#pragma once

#include "codegen/Device/attention.h"
#include "codegen/Device/experts.h"
#include "codegen/Device/head.h"

namespace grok::device {

/// Takes the slot that the load-time table gives this SM, or a free one if
/// another block has it. False: there is no slot for this block.
template <class B> GROK_DEVICE bool claimSlot(B &block) {
  const abi::DecodeParams &p = block.params;
  uint32_t &slot = block.control().slot;
  if (block.tid == 0) {
    uint32_t sm = ptx::smid();
    slot = sm < p.smCount ? p.slotOfSm[sm] : ~0u;
    if (slot != ~0u &&
        ptx::exchange(p.claims + slot, p.launchId) == p.launchId) {
      slot = 0;
      while (slot < B::Plan::kSlots &&
             ptx::exchange(p.claims + slot, p.launchId) == p.launchId)
        ++slot;
      if (slot == B::Plan::kSlots)
        slot = ~0u;
    }
  }
  ptx::barSync(0, kThreads);
  return slot != ~0u;
}

/// Finds the embedding rows of the active rows' tokens. Each consumer thread
/// asks whether a slot holds them.
template <class B> GROK_DEVICE void locateEmbedding(B &block) {
  using M = typename B::Model;
  using P = typename B::Plan;
  auto &control = block.control();
  const abi::Extent *head =
      block.params.extents + uint64_t(P::kMatrixHead) * P::kSlots;
  for (uint32_t i = block.tid; i < P::kSlots * block.params.rows;
       i += kConsumers) {
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

/// Everything a consumer thread does in one step, the head included. Returns
/// its best candidate.
template <class B>
GROK_DEVICE Candidate computeStep(B &block, RingReader<B> &ring,
                                  bool needHead) {
  using M = typename B::Model;
  using P = typename B::Plan;
  locateEmbedding(block);
  if constexpr (M::kHashRouting)
    routeByHash(block, needHead);
  embed(block);
  for (; block.layer() < M::kLayers; ++block.layers) {
    const float *vectors = block.vectors(
        block.layer()); // gains: pre_attn, post_attn, pre_moe, post_moe
    block.beginPhase();
    qkvPhase(block, ring);
    block.beginPhase();
    attentionPhase(block);
    block.beginPhase();
    mergePhase(block);
    block.beginPhase();
    attnOutPhase(block, ring);
    block.beginPhase();
    addNormed(block,
              block.template region<uint64_t>(Region::kYAttn) +
                  block.parity() * P::kMaxBatch * M::kHidden,
              vectors + M::kHidden, block.active(), Phase::kGateUp);
    if constexpr (!M::kHashRouting)
      routeByRouter(block, needHead);
    block.beginPhase();
    gateUpPhase(block, ring);
    block.beginPhase();
    downPhase(block, ring);
    block.beginPhase();
    uint32_t withOutput = 0;
    for (uint32_t b = 0; b < block.params.rows; ++b)
      withOutput |=
          block.rowActive(b) && block.routing().hasOutput[b] ? 1u << b : 0;
    if constexpr (P::kPresence) { // no slot may run a layer ahead of a slot
                                  // that hands nothing over
      uint64_t *presence = block.template region<uint64_t>(Region::kPresence) +
                           block.parity() * P::kSlots;
      if (block.tid == 0)
        publish(presence + block.slot(), 0, block.epoch());
      for (uint32_t s = block.tid; s < P::kSlots; s += kConsumers)
        await(block, presence + s, block.epoch(), Phase::kDown);
    }
    addNormed(block,
              block.template region<uint64_t>(Region::kYMoe) +
                  block.parity() * P::kMaxBatch * M::kHidden,
              vectors + 3 * M::kHidden, withOutput, Phase::kDown);
  }
  block.beginPhase();
  return needHead ? headPhase(block, ring)
                  : Candidate{kNegativeInfinity, kNoToken};
}

/// Whether some row's next token is not known before this step.
template <class B> GROK_DEVICE bool stepNeedsHead(B &block) {
  bool need = false;
  for (uint32_t b = 0; b < block.params.rows; ++b)
    need |=
        block.rowActive(b) && block.position(b) + 1 >= block.params.known[b];
  return need;
}

/// Book-keeping at the start of a launch, by one thread.
template <class B> GROK_DEVICE void firstStep(B &block) {
  const abi::DecodeParams &p = block.params;
  auto &control = block.control();
  control.active = 0;
  for (uint32_t b = 0; b < p.rows; ++b) {
    control.active |=
        p.start[b] < p.known[b]
            ? 1u << b
            : 0; // a row may have nothing to compute in this launch
    control.position[b] = p.start[b];
    control.length[b] = p.known[b];
    control.token[b] = p.ids[b * p.idStride + p.start[b]];
  }
}

/// Book-keeping between steps, by one thread: control().token holds every row's
/// choice; afterwards it holds the tokens of the next step, and rows that are
/// done are not active.
template <class B> GROK_DEVICE void nextStep(B &block) {
  const abi::DecodeParams &p = block.params;
  auto &control = block.control();
  for (uint32_t b = 0; b < p.rows; ++b) {
    if (!block.rowActive(b))
      continue;
    uint32_t next = control.position[b] + 1;
    bool more = next < p.known[b];
    if (more) {
      control.token[b] = p.ids[b * p.idStride + next];
    } else if (control.length[b] < p.limit[b]) {
      if (block.slot() == 0)
        p.ids[b * p.idStride + next] = control.token[b];
      control.length[b] = next + 1;
      more = next + 1 < p.limit[b] && control.token[b] != p.eosId;
    }
    if (more)
      control.position[b] = next;
    else
      control.active &= ~(1u << b);
  }
  if (*(volatile uint32_t *)&control.failed)
    control.active = 0;
}

/// The consumer warps: all steps of the launch.
template <class B> GROK_DEVICE void consume(B &block) {
  const abi::DecodeParams &p = block.params;
  auto &control = block.control();
  RingReader<B> ring = RingReader<B>::of(block);
  if (block.tid == 0)
    firstStep(block);
  block.sync();
  for (; block.active(); ++block.layers) {
    bool needHead = stepNeedsHead(block);
    publishCandidates(block, computeStep(block, ring, needHead));
    chooseTokens(block);
    if (block.tid == 0)
      nextStep(block);
    block.sync();
  }
  *(volatile uint32_t *)&control.stop = 1;
  if (block.tid == 0)
    reportFailure(block);
  if (block.slot() == 0 && block.tid == 0) {
    for (uint32_t b = 0; b < p.rows; ++b)
      p.status->rowLength[b] = control.length[b];
    ptx::storeReleaseSystem(&p.status->done, p.launchId);
  }
}

/// The producer warp: the slot's extents in consumption order, as far ahead as
/// the ring allows. It waits for nobody but for the routing decision before the
/// experts of a step (hash) or of a layer (learned router).
template <class B> GROK_DEVICE void produce(B &block) {
  using M = typename B::Model;
  using P = typename B::Plan;
  enum Item : uint32_t {
    kQkv,
    kAttnOut,
    kGateUp,
    kDenseGateUp,
    kDown,
    kDenseDown,
    kItems
  };
  RingWriter<B> ring = RingWriter<B>::of(block);
  uint32_t mask = 0, headNeeded = 0,
           decisions = 0; // lane w holds word w of the active experts' mask
  for (uint32_t layer = 0; !ring.stopped;
       layer = layer == M::kLayers ? 0 : layer + 1) {
#pragma unroll 1 // one copy of push for every kind of extent
    for (uint32_t item = layer < M::kLayers ? kQkv : kItems;
         item <= kItems && !ring.stopped; ++item) {
      if (item == kGateUp && (!M::kHashRouting || layer == 0)) {
        ring.wait(block, ring.barriers.routed(), decisions++ & 1);
        mask = block.lane() < Routing<M, P>::kMaskWords
                   ? block.routing().mask[block.lane()]
                   : 0;
        headNeeded = block.control().headNeeded;
        ptx::warpSync();
        if (block.lane() == 0)
          ptx::mbarrierArrive(ring.barriers.taken());
      }
      if (item == kItems && (layer < M::kLayers || !headNeeded))
        break;
      if (M::kDenseWidth == 0 && (item == kDenseGateUp || item == kDenseDown))
        continue;
      bool experts = item == kGateUp || item == kDown;
      uint32_t k = item == kAttnOut     ? B::kAttnWidth
                   : item == kDown      ? M::kExpertWidth
                   : item == kDenseDown ? M::kDenseWidth
                                        : M::kHidden;
      uint32_t steps = (k + kTileK - 1) / kTileK;
      for (uint32_t w = 0; w < (experts ? Routing<M, P>::kMaskWords : 1); ++w) {
        for (uint32_t bits = experts ? ptx::shuffle(mask, w) : 1;
             bits && !ring.stopped; bits &= bits - 1) {
          uint32_t e = w * 32 + __builtin_ctz(bits);
          short matrix = item == kQkv           ? P::kMatrixQkv
                         : item == kAttnOut     ? P::kMatrixAttnOut
                         : item == kGateUp      ? P::kGateUp[e]
                         : item == kDenseGateUp ? P::kMatrixDenseGateUp
                         : item == kDown        ? P::kDown[e]
                         : item == kDenseDown   ? P::kMatrixDenseDown
                                                : P::kMatrixHead;
          const abi::Extent &extent = block.extent(uint32_t(matrix));
          uint64_t offset =
              extent.offset + (item == kItems ? 0 : layer * extent.layerStride);
          ring.push(block, block.params.weights + offset,
                    uint64_t(extent.tileCount) * steps * kFragmentBytes);
        }
      }
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
  for (uint32_t m = block.tid; m < Plan::kMatrices; m += kThreads)
    block.extent(m) = params.extents[uint64_t(m) * Plan::kSlots + block.slot()];
  if (block.tid == 0) {
    RingBarriers<B>::of(block).init();
    block.control().failed = 0;
    block.control().stop = 0;
  }
  ptx::barSync(0, kThreads);
  if (block.warp() < kWarps)
    consume(block);
  else
    produce(block);
}

} // namespace grok::device
