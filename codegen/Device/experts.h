// The mixture of experts: which experts a token uses, and their gated MLPs.
#pragma once

#include "codegen/Device/residual.h"

namespace grok::device {

/// Routing decisions announced before this one: one a step by hash, one a layer
/// by a learned router.
template <class B> GROK_DEVICE uint32_t decisionsBefore(B &block) {
  return B::Model::kHashRouting
             ? block.step()
             : block.step() * B::Model::kLayers + block.layer();
}

/// Before routing() is written again: the producer must have taken the decision
/// before.
template <class B> GROK_DEVICE void awaitDecisionTaken(B &block) {
  if (uint32_t before = decisionsBefore(block); block.tid == 0 && before > 0)
    waitBarrier(block, RingBarriers<B>::of(block).taken(), (before - 1) & 1,
                Phase::kRoute);
  block.sync();
}

/// Tells the producer that routing() may be read.
template <class B> GROK_DEVICE void announceDecision(B &block) {
  if (block.tid == 0)
    ptx::mbarrierArrive(RingBarriers<B>::of(block).routed());
}

/// Lists the kept experts that the active rows use and notes which rows get an
/// output, from routing().expert; then announces the decision, together with
/// whether the step ends with the head. Called by every consumer thread.
template <class B> GROK_DEVICE void listActiveExperts(B &block, bool needHead) {
  using M = typename B::Model;
  using P = typename B::Plan;
  static_assert(M::kExperts <= kConsumers, "a thread for every expert");
  auto &routing = block.routing();
  uint32_t *masks =
      (uint32_t *)block.control().reduce; // a bit for every expert
  block.sync();
  block.beginPhase();
  uint32_t e = block.tid;
  bool used = false;
  if (e < M::kExperts && P::kGateUp[e] >= 0)
    for (uint32_t b = 0; b < block.params.rows; ++b)
      for (uint32_t i = 0; i < M::kExpertsPerToken; ++i)
        used |= routing.expert[b][i] == e;
  uint32_t mask = ptx::ballot(used);
  if (block.lane() == 0) {
    masks[block.warp()] = mask;
    if (block.warp() < Routing<M, P>::kMaskWords)
      routing.mask[block.warp()] = mask;
  }
  block.sync();
  uint32_t before = 0, total = 0;
#pragma unroll
  for (uint32_t w = 0; w < kWarps; ++w) {
    before += w < block.warp() ? __builtin_popcount(masks[w]) : 0;
    total += __builtin_popcount(masks[w]);
  }
  if (used)
    routing.active[before +
                   __builtin_popcount(mask & ((1u << block.lane()) - 1))] = e;
  if (block.tid == 0) {
    routing.activeCount = total;
    block.control().headNeeded = needHead;
  }
  if (block.tid < block.params.rows) {
    uint32_t kept = M::kDenseWidth > 0 ? 1 : 0;
    for (uint32_t i = 0; i < M::kExpertsPerToken; ++i) {
      uint32_t chosen = routing.expert[block.tid][i];
      kept |= chosen < M::kExperts && P::kGateUp[chosen] >= 0 ? 1 : 0;
    }
    routing.hasOutput[block.tid] = kept;
  }
  block.sync();
  announceDecision(block);
}

/// Hash routing: the expert of a row is a function of its id and position, the
/// same in every layer.
template <class B> GROK_DEVICE void routeByHash(B &block, bool needHead) {
  using M = typename B::Model;
  awaitDecisionTaken(block);
  if (block.tid < block.params.rows) {
    uint32_t b = block.tid, position = block.position(b),
             expert = Routing<M, typename B::Plan>::kNone;
    if (block.rowActive(b)) {
      uint32_t h = uint32_t(block.control().token[b]) * M::kTokenMultiplier +
                   position * M::kPositionMultiplier;
      if constexpr (M::kHashBits < 32)
        h &= (1u << M::kHashBits) - 1;
      uint32_t index =
          ((h >> M::kIndexShift) + (position & M::kPositionOffsetMask)) &
          M::kIndexMask;
      expert = h % M::kNumGroups * M::kExpertsPerGroup + index;
    }
    block.routing().expert[b][0] = expert;
    block.routing().weight[b][0] = 1;
  }
  listActiveExperts(block, needHead);
}

/// Learned routing of this layer, float32 throughout: slot s computes the
/// logits of experts s, s + slots, ...; every slot takes all logits, applies
/// the soft-cap, softmax over all experts, and the k largest, ties to the lower
/// index.
template <class B> GROK_DEVICE void routeByRouter(B &block, bool needHead) {
  using M = typename B::Model;
  using P = typename B::Plan;
  const float *gain = block.vectors(block.layer()) + 2 * M::kHidden,
              *weights = block.vectors(block.layer()) + 4 * M::kHidden;
  uint64_t *words = block.template region<uint64_t>(Region::kRouter) +
                    block.parity() * P::kMaxBatch * M::kExperts; // [row][E]
  for (uint32_t e = block.slot(); e < M::kExperts; e += P::kSlots) {
    for (uint32_t b = 0; b < block.params.rows; ++b) {
      if (!block.rowActive(b))
        continue;
      const float *h = residualRow(block, b);
      float dot = 0, factor = block.control().normFactor[b];
      for (uint32_t i = block.tid; i < M::kHidden; i += kConsumers)
        dot =
            ptx::fma(weights[e * M::kHidden + i], h[i] * factor * gain[i], dot);
      addToRowSum(block, b, dot);
    }
    finishRowSums(block, [&](uint32_t b, float logit) {
      publish(words + b * M::kExperts + e, logit, block.epoch());
    });
  }

  auto &routing = block.routing();
  awaitDecisionTaken(block); // and the scratch is free
  block.beginPhase();
  if (block.warp() < block.params.rows) { // a warp a row
    uint32_t b = block.warp();
    float *p = block.scratch() + b * M::kExperts;
    if (block.rowActive(b)) {
      float top = kNegativeInfinity;
      for (uint32_t e = block.lane(); e < M::kExperts; e += 32) {
        p[e] = softCap(await(block, words + b * M::kExperts + e, block.epoch(),
                             Phase::kRoute),
                       M::kRouterCap);
        top = p[e] > top ? p[e] : top;
      }
#pragma unroll
      for (uint32_t m = 16; m; m >>= 1) {
        float other = ptx::shuffleXor(top, m);
        top = other > top ? other : top;
      }
      float sum = 0;
      for (uint32_t e = block.lane(); e < M::kExperts; e += 32) {
        p[e] = exp(p[e] - top);
        sum += p[e];
      }
#pragma unroll
      for (uint32_t m = 16; m; m >>= 1)
        sum += ptx::shuffleXor(sum, m);
      uint32_t chosen[M::kExpertsPerToken];
      float weight[M::kExpertsPerToken];
      uint32_t taken[(M::kExperts + 31) / 32] =
          {}; // bit of this lane's i-th expert: already chosen
#pragma unroll
      for (uint32_t i = 0; i < M::kExpertsPerToken; ++i) {
        float best = -1;
        uint32_t bestExpert = M::kExperts;
#pragma unroll
        for (uint32_t j = 0; j < (M::kExperts + 31) / 32; ++j) {
          uint32_t e = j * 32 + block.lane();
          if (e < M::kExperts && !taken[j] && p[e] > best) {
            best = p[e];
            bestExpert = e;
          }
        }
#pragma unroll
        for (uint32_t m = 16; m; m >>= 1) {
          float other = ptx::shuffleXor(best, m);
          uint32_t otherExpert = ptx::shuffleXor(bestExpert, m);
          if (other > best || (other == best && otherExpert < bestExpert)) {
            best = other;
            bestExpert = otherExpert;
          }
        }
        chosen[i] = bestExpert;
        weight[i] = best / sum;
#pragma unroll
        for (uint32_t j = 0; j < (M::kExperts + 31) / 32; ++j)
          if (bestExpert == j * 32 + block.lane())
            taken[j] = 1;
      }
      if (block.lane() == 0) {
#pragma unroll
        for (uint32_t i = 0; i < M::kExpertsPerToken;
             ++i) { // ascending: each goes to its rank
          uint32_t rank = 0;
#pragma unroll
          for (uint32_t j = 0; j < M::kExpertsPerToken; ++j)
            rank += chosen[j] < chosen[i] ? 1 : 0;
          routing.expert[b][rank] = chosen[i];
          routing.weight[b][rank] = weight[i];
        }
      }
    } else if (block.lane() < M::kExpertsPerToken) {
      routing.expert[b][block.lane()] = Routing<M, P>::kNone;
    }
  }
  listActiveExperts(block, needHead);
}

/// Place of `expert` among the row's chosen ones, or expertsPerToken.
template <class B>
GROK_DEVICE uint32_t placeInRow(B &block, uint32_t b, uint32_t expert) {
  uint32_t place = B::Model::kExpertsPerToken;
#pragma unroll
  for (uint32_t i = 0; i < B::Model::kExpertsPerToken; ++i)
    place = block.routing().expert[b][i] == expert ? i : place;
  return place;
}

/// Words of the activations between gate_up and down of one row: [chosen
/// expert][F], then the dense MLP's [Fd].
template <class B> GROK_DEVICE uint64_t *actWords(B &block, uint32_t b) {
  return block.template region<uint64_t>(Region::kAct) +
         (uint64_t(block.parity()) * B::Plan::kMaxBatch + b) *
             B::kShape.actWidth();
}

/// act = gelu(gate) * up of every active expert, and of the dense MLP.
template <class B> GROK_DEVICE void gateUpPhase(B &block, RingReader<B> &ring) {
  using M = typename B::Model;
  using P = typename B::Plan;
  const float *gain = block.vectors(block.layer()) + 2 * M::kHidden;
  bool staged = false;
  auto stage = [&](uint32_t k0, uint32_t count) {
    stageNormed(block, gain, k0, count);
  };
  auto emit = [&](Output out, float value, float partner, uint32_t offset,
                  uint32_t width) {
    uint32_t f = (out.tile * kTileRows + out.r) / 2;
    if (out.r % 2 == 0 && f < width) // rows 2f and 2f + 1 are gate f and up f
      publish(actWords(block, out.row) + offset + f,
              gelu<M::kGeluErf>(value) * partner, block.epoch());
  };
  constexpr uint32_t kSteps = (M::kHidden + kTileK - 1) / kTileK;
  for (uint32_t a = 0; a < block.routing().activeCount; ++a) {
    uint32_t expert = block.routing().active[a];
    matvec(block, ring, uint32_t(P::kGateUp[expert]), kSteps, block.params.rows,
           staged, Phase::kGateUp, stage,
           [&](Output out, float value, float partner) {
             uint32_t place = placeInRow(block, out.row, expert);
             if (place < M::kExpertsPerToken)
               emit(out, value, partner, place * M::kExpertWidth,
                    M::kExpertWidth);
           });
  }
  if constexpr (M::kDenseWidth > 0)
    matvec(block, ring, uint32_t(P::kMatrixDenseGateUp), kSteps,
           block.params.rows, staged, Phase::kGateUp, stage,
           [&](Output out, float value, float partner) {
             if (block.rowActive(out.row))
               emit(out, value, partner, M::kExpertsPerToken * M::kExpertWidth,
                    M::kDenseWidth);
           });
}

/// The last kept expert of a row, whose contribution completes the row's sum.
template <class B> GROK_DEVICE uint32_t lastKept(B &block, uint32_t b) {
  uint32_t last = Routing<typename B::Model, typename B::Plan>::kNone;
#pragma unroll
  for (uint32_t i = 0; i < B::Model::kExpertsPerToken; ++i) {
    uint32_t e = block.routing().expert[b][i];
    if (e < B::Model::kExperts && B::Plan::kGateUp[e] >= 0)
      last = e;
  }
  return last;
}

/// y = sum over the row's experts, ascending, of weight * down(act); with a
/// dense MLP (y + dense) / sqrt 2. The sums stay with the slot: every down
/// matrix deals its tiles alike.
template <class B> GROK_DEVICE void downPhase(B &block, RingReader<B> &ring) {
  using M = typename B::Model;
  using P = typename B::Plan;
  constexpr bool kDense = M::kDenseWidth > 0;
  uint64_t *y = block.template region<uint64_t>(Region::kYMoe) +
                block.parity() * P::kMaxBatch * M::kHidden;
  float *sums = block.downSums(); // [tile of the slot][row][8]
  uint32_t rows = block.params.rows;
  for (uint32_t i = block.tid; i < P::kMaxDownTiles * rows * kTileRows;
       i += kConsumers)
    sums[i] = 0;

  // Rows that don't use the expert keep whatever the operand held: their
  // outputs are not used.
  auto stage = [&](uint32_t k0, uint32_t count, uint32_t b, uint32_t offset,
                   uint32_t width) {
    stageWords(block, actWords(block, b) + offset, width, b, k0, count,
               Phase::kDown);
  };
  auto publishRow = [&](Output out, float value) {
    uint32_t row = out.tile * kTileRows + out.r;
    if (row < M::kHidden)
      publish(y + out.row * M::kHidden + row, value, block.epoch());
  };

  for (uint32_t a = 0; a < block.routing().activeCount; ++a) {
    uint32_t expert = block.routing().active[a],
             matrix = uint32_t(P::kDown[expert]);
    uint32_t tileBegin = block.extent(matrix).tileBegin;
    bool staged = false;
    matvec(
        block, ring, matrix, (M::kExpertWidth + kTileK - 1) / kTileK, rows,
        staged, Phase::kDown,
        [&](uint32_t k0, uint32_t count) {
          for (uint32_t b = 0; b < rows; ++b) {
            uint32_t place = placeInRow(block, b, expert);
            if (place < M::kExpertsPerToken)
              stage(k0, count, b, place * M::kExpertWidth, M::kExpertWidth);
          }
        },
        [&](Output out, float value, float) {
          uint32_t place = placeInRow(block, out.row, expert);
          if (place == M::kExpertsPerToken)
            return;
          float *sum = sums +
                       ((out.tile - tileBegin) * rows + out.row) * kTileRows +
                       out.r;
          float total =
              ptx::fma(block.routing().weight[out.row][place], value, *sum);
          *sum = total;
          if (!kDense && lastKept(block, out.row) == expert)
            publishRow(out, total);
        });
  }
  if constexpr (kDense) {
    uint32_t matrix = uint32_t(P::kMatrixDenseDown),
             tileBegin = block.extent(matrix).tileBegin;
    bool staged = false;
    matvec(
        block, ring, matrix, (M::kDenseWidth + kTileK - 1) / kTileK, rows,
        staged, Phase::kDown,
        [&](uint32_t k0, uint32_t count) {
          for (uint32_t b = 0; b < rows; ++b)
            if (block.rowActive(b))
              stage(k0, count, b, M::kExpertsPerToken * M::kExpertWidth,
                    M::kDenseWidth);
        },
        [&](Output out, float value, float) {
          if (block.rowActive(out.row))
            publishRow(
                out,
                (value +
                 sums[((out.tile - tileBegin) * rows + out.row) * kTileRows +
                      out.r]) *
                    0.707106769f);
        });
  }
}

} // namespace grok::device
