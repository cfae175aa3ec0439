// The decode kernel: one cooperative launch, one block per SM, for a whole request. 16 consumer warps compute, one producer
// warp streams the slot's weights ahead of them.
#pragma once

#include "codegen/Device/attention.h"
#include "codegen/Device/experts.h"
#include "codegen/Device/head.h"

namespace grok::device {

/// Takes the slot that the load-time table gives this SM, or a free one if another block has it. False: there is no slot
/// for this block.
template <class B> GROK_DEVICE bool claimSlot(B &block) {
  const abi::DecodeParams &p = block.params;
  uint32_t &slot = block.control().slot;
  if (block.tid == 0) {
    uint32_t sm = ptx::smid();
    slot = sm < p.smCount ? p.slotOfSm[sm] : ~0u;
    if (slot != ~0u && ptx::exchange(p.claims + slot, p.launchId) == p.launchId) {
      slot = 0;
      while (slot < B::Plan::kSlots && ptx::exchange(p.claims + slot, p.launchId) == p.launchId)
        ++slot;
      if (slot == B::Plan::kSlots)
        slot = ~0u;
    }
  }
  ptx::barSync(0, kThreads);
  block.slot = slot;
  return slot != ~0u;
}

/// Finds the embedding rows of the active rows' tokens. Each consumer thread asks whether a slot holds them.
template <class B> GROK_DEVICE void locateEmbedding(B &block) {
  using M = typename B::Model;
  using P = typename B::Plan;
  auto &control = block.control();
  const abi::Extent *head = block.params.extents + uint64_t(P::kMatrixHead) * P::kSlots;
  for (uint32_t i = block.tid; i < P::kSlots * block.params.rows; i += kConsumers) {
    uint32_t s = i % P::kSlots, b = i / P::kSlots;
    uint32_t tile = uint32_t(control.token[b]) / kTileRows;
    if (!block.rowActive(b) || tile < head[s].tileBegin || tile >= head[s].tileBegin + head[s].tileCount)
      continue;
    if constexpr (M::kTiedHead) {
      control.embeddingRow[b] = head[s].offset;
      control.embeddingTile[b] = tile - head[s].tileBegin;
      control.embeddingTiles[b] = head[s].tileCount;
    } else {
      control.embeddingRow[b] = block.params.embedding[s] +
                                (uint64_t(uint32_t(control.token[b])) - head[s].tileBegin * kTileRows) * M::kHidden * 2;
    }
  }
  block.sync();
}

/// Everything a consumer thread does in one step, the head included. Returns its best candidate.
template <class B> GROK_DEVICE Candidate computeStep(B &block, RingReader<B> &ring, bool needHead) {
  using M = typename B::Model;
  using P = typename B::Plan;
  locateEmbedding(block);
  if constexpr (M::kHashRouting)
    routeByHash(block, needHead);
  NormFactor<B> factor = embed(block);
  for (block.layer = 0; block.layer < M::kLayers; ++block.layer) {
    const float *vectors = block.vectors(block.layer); // gains: pre_attn, post_attn, pre_moe, post_moe
    qkvPhase(block, ring, factor);
    attentionPhase(block);
    mergePhase(block);
    attnOutPhase(block, ring);
    factor = addNormed(block, block.template region<uint64_t>(Region::kYAttn) + block.parity() * P::kMaxBatch * M::kHidden,
                       vectors + M::kHidden, block.active, Phase::kGateUp);
    if constexpr (!M::kHashRouting)
      routeByRouter(block, factor, needHead);
    gateUpPhase(block, ring, factor);
    downPhase(block, ring);
    uint32_t withOutput = 0;
    for (uint32_t b = 0; b < block.params.rows; ++b)
      withOutput |= block.rowActive(b) && block.routing().hasOutput[b] ? 1u << b : 0;
    if constexpr (P::kPresence) { // no slot may run a layer ahead of a slot that hands nothing over
      uint64_t *presence = block.template region<uint64_t>(Region::kPresence) + block.parity() * P::kSlots;
      if (block.tid == 0)
        publish(presence + block.slot, 0, block.epoch());
      for (uint32_t s = block.tid; s < P::kSlots; s += kConsumers)
        await(block, presence + s, block.epoch(), Phase::kDown);
    }
    factor = addNormed(block, block.template region<uint64_t>(Region::kYMoe) + block.parity() * P::kMaxBatch * M::kHidden,
                       vectors + 3 * M::kHidden, withOutput, Phase::kDown);
  }
  return needHead ? headPhase(block, ring, factor) : Candidate{kNegativeInfinity, kNoToken};
}

/// Whether some row's next token is not known before this step.
template <class B> GROK_DEVICE bool stepNeedsHead(B &block) {
  bool need = false;
  for (uint32_t b = 0; b < block.params.rows; ++b)
    need |= block.rowActive(b) && block.position(b) + 1 >= block.params.known[b];
  return need;
}

/// Book-keeping at the start of a launch, by one thread.
template <class B> GROK_DEVICE void firstStep(B &block) {
  const abi::DecodeParams &p = block.params;
  auto &control = block.control();
  control.active = (1u << p.rows) - 1;
  for (uint32_t b = 0; b < p.rows; ++b) {
    control.position[b] = p.start[b];
    control.length[b] = p.known[b];
    control.token[b] = p.ids[b * p.idStride + p.start[b]];
  }
}

/// Book-keeping between steps, by one thread: control().token holds every row's choice; afterwards it holds the tokens of
/// the next step, and rows that are done are not active.
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
      if (block.slot == 0)
        p.ids[b * p.idStride + next] = control.token[b];
      control.length[b] = next + 1;
      more = next + 1 < p.limit[b] && control.token[b] != p.eosId;
    }
    if (more)
      control.position[b] = next;
    else
      control.active &= ~(1u << b);
  }
}

/// The consumer warps: all steps of the launch.
template <class B> GROK_DEVICE void consume(B &block) {
  const abi::DecodeParams &p = block.params;
  auto &control = block.control();
  RingReader<B> ring = RingReader<B>::of(block);
  if (block.tid == 0)
    firstStep(block);
  block.sync();
  for (block.active = control.active; block.active; ++block.step) {
    bool needHead = stepNeedsHead(block);
    publishCandidates(block, computeStep(block, ring, needHead));
    chooseTokens(block);
    if (block.tid == 0)
      nextStep(block);
    block.sync();
    block.active = *(volatile uint32_t *)&control.failed ? 0 : control.active;
  }
  *(volatile uint32_t *)&control.stop = 1;
  if (block.slot == 0 && block.tid == 0) {
    for (uint32_t b = 0; b < p.rows; ++b)
      p.status->rowLength[b] = control.length[b];
    ptx::storeReleaseSystem(&p.status->done, p.launchId);
  }
}

/// The producer warp: the slot's extents in consumption order, as far ahead as the ring allows. It waits for nobody but
/// for the routing decision before the experts of a step (hash) or of a layer (learned router).
template <class B> GROK_DEVICE void produce(B &block) {
  using M = typename B::Model;
  using P = typename B::Plan;
  constexpr uint32_t kMaskWords = Routing<M, P>::kMaskWords;
  RingWriter<B> ring = RingWriter<B>::of(block);
  auto push = [&](uint32_t matrix, uint32_t layer, uint32_t k) {
    const abi::Extent &e = block.extent(matrix);
    uint32_t steps = (k + kTileK - 1) / kTileK;
    ring.push(block, block.params.weights + e.offset + layer * e.layerStride,
              uint64_t(e.tileCount) * steps * kFragmentBytes);
  };
  uint32_t active[kMaskWords] = {}, headNeeded = 0, decisions = 0;
  auto pushExperts = [&](const short *matrixOf, uint32_t layer, uint32_t k) {
#pragma unroll
    for (uint32_t w = 0; w < kMaskWords; ++w)
      for (uint32_t bits = active[w]; bits; bits &= bits - 1)
        push(uint32_t(matrixOf[w * 32 + __builtin_ctz(bits)]), layer, k);
  };
  while (!ring.stopped) {
    for (uint32_t layer = 0; layer < M::kLayers && !ring.stopped; ++layer) {
      push(P::kMatrixQkv, layer, M::kHidden);
      push(P::kMatrixAttnOut, layer, B::kAttnWidth);
      if (!M::kHashRouting || layer == 0) {
        ring.wait(block, ring.barriers.routed(), decisions++ & 1);
        if (ring.stopped)
          break;
#pragma unroll
        for (uint32_t w = 0; w < kMaskWords; ++w)
          active[w] = block.routing().mask[w];
        headNeeded = block.control().headNeeded;
        ptx::warpSync();
        if (block.lane == 0)
          ptx::mbarrierArrive(ring.barriers.taken());
      }
      pushExperts(P::kGateUp, layer, M::kHidden);
      if constexpr (M::kDenseWidth > 0)
        push(uint32_t(P::kMatrixDenseGateUp), layer, M::kHidden);
      pushExperts(P::kDown, layer, M::kExpertWidth);
      if constexpr (M::kDenseWidth > 0)
        push(uint32_t(P::kMatrixDenseDown), layer, M::kDenseWidth);
    }
    if (headNeeded)
      push(P::kMatrixHead, 0, M::kHidden);
  }
  ring.drain();
}

template <class Model, class Plan> GROK_DEVICE void decode(const abi::DecodeParams &params) {
  using B = Block<Model, Plan>;
  static_assert(Plan::kThreads == kThreads, "the plan was made for another block size");
  const uint32_t tid = ptx::tid();
  B block{.params = params, .slot = 0, .tid = tid, .warp = tid / 32, .lane = tid % 32};
  if (!claimSlot(block))
    return;
  for (uint32_t m = block.tid; m < Plan::kMatrices; m += kThreads)
    block.extent(m) = params.extents[uint64_t(m) * Plan::kSlots + block.slot];
  if (block.tid == 0) {
    RingBarriers<B>::of(block).init();
    block.control().failed = 0;
    block.control().stop = 0;
  }
  ptx::barSync(0, kThreads);
  if (block.warp < kWarps)
    consume(block);
  else
    produce(block);
}

} // namespace grok::device
