// The mixture of experts: which experts a token uses, and their gated MLPs.
#pragma once

#include "codegen/Device/residual.h"

namespace grok::device {

// What a step needs that only the consumers know is announced to the producer:
// at the step's start its positions, whether it ends with the head, and with
// hash routing its experts; with a learned router, every layer's experts.

/// Waits, in one warp, until the producer has taken the announcement before
/// number `next` (from 0, since the launch).
template <class B> GROK_DEVICE void awaitTaken(B &block, uint32_t next) {
  if (next > 0)
    waitBarrier(block, RingBarriers<B>::of(block).taken(), (next - 1) & 1,
                Phase::kRoute);
}

/// Announcements up to and including the one at this step's start, or, in a
/// layer with a learned router, up to its own.
template <class B> GROK_DEVICE uint32_t announcements(B &block, bool inLayer) {
  return B::Model::kHashRouting ? block.step() + 1
                                : block.layers + 1 + (inLayer ? 1 : 0);
}

/// By one thread: what was written before may be read by the producer.
template <class B> GROK_DEVICE void announce(B &block) {
  ptx::mbarrierArrive(RingBarriers<B>::of(block).routed());
}

/// Lists the kept experts that the active rows use, announces them, and notes
/// which rows get an output, from routing().expert, which warp 0 has written or
/// seen. By warp 0; the others may read after a barrier.
template <class B> GROK_DEVICE void listActiveExperts(B &block) {
  using M = typename B::Model;
  auto &routing = block.routing();
  awaitTaken(block, announcements(block, !M::kHashRouting) - 1);
  ptx::warpSync();
  uint32_t total = 0;
#pragma unroll 1
  for (uint32_t first = 0; first < M::kExperts; first += 32) {
    const uint32_t e = first + block.lane();
    bool used = false;
    if (routing.kept(e))
      for (uint32_t b = 0; b < block.rows(); ++b)
        for (uint32_t i = 0; i < M::kExpertsPerToken; ++i)
          used |= routing.expert[b][i] == e;
    const uint32_t mask = ptx::ballot(used);
    if (used) {
      const uint32_t place =
          total + __builtin_popcount(mask & ((1u << block.lane()) - 1));
      routing.active[place] = e;
    }
    total += __builtin_popcount(mask);
  }
  if (block.lane() == 0) {
    routing.activeCount = total;
    block.control().experts += M::kHashRouting ? total * M::kLayers : total;
  }
  ptx::warpSync();
  if (block.lane() == 0)
    announce(block);
  if (block.lane() < block.rows()) {
    uint32_t kept = M::kDenseWidth > 0 ? 1 : 0;
    for (uint32_t i = 0; i < M::kExpertsPerToken; ++i) {
      kept |= routing.kept(routing.expert[block.lane()][i]) ? 1 : 0;
    }
    routing.hasOutput[block.lane()] = kept;
  }
}

/// Hash routing: the expert of a row is a function of its id and position, the
/// same in every layer.
template <class B> GROK_DEVICE void routeByHash(B &block) {
  using M = typename B::Model;
  static_assert(B::Plan::kMaxBatch <= 32, "a lane a row");
  if (block.tid < block.rows()) {
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
  if (block.warp() == 0)
    listActiveExperts(block);
  block.sync();
}

/// Words of the router's logits, [row][E].
template <class B> GROK_DEVICE uint64_t *routerWords(B &block, uint32_t b) {
  return block.template region<uint64_t>(Region::kRouter) +
         (block.parity() * B::Plan::kMaxBatch + b) *
             pairedWords(B::Model::kExperts);
}

/// Rows of the router that this slot computes: experts s, s + slots, ...
template <class B>
GROK_DEVICE const float *routerRow(B &block, uint32_t expert) {
  constexpr uint32_t kHidden = B::Model::kHidden;
  return block.vectors(block.layer()) + (4 + uint64_t(expert)) * kHidden;
}

/// Has the thread's part of the slot's first row fetched while it waits for
/// something else.
template <class B> GROK_DEVICE void prefetchRouter(B &block) {
  using O = Owned<B>;
  if (block.slot() >= B::Model::kExperts)
    return;
#pragma unroll 1
  for (uint32_t part = 0; part < O::kParts; ++part)
    if (uint32_t i = O::element(block, part); O::has(i))
      ptx::prefetchL1(routerRow(block, block.slot()) + i);
}

/// Hands over the logits of this slot's experts.
template <class B> GROK_DEVICE void publishRouterLogits(B &block) {
  using M = typename B::Model;
  using O = Owned<B>;
  const float *gain = block.vectors(block.layer()) + 2 * M::kHidden;
  // A pair computes the logits of its two slots' experts, each block those of
  // the rows that it keeps, a team a row.
  const uint32_t slots = block.rowStep(), b = Team<B>::row(block);
  const bool active = Team<B>::active(block);
  auto compute = [&](uint32_t e) {
    block.sync(); // the sums before have been read
    if (active) {
      const float *h = residualRow(block, b);
      float dot = 0, factor = block.normFactor(b);
#pragma unroll 4
      for (uint32_t part = 0; part < O::kParts; ++part) {
        uint32_t i = O::element(block, part);
        auto x = O::load(h, i), g = O::load(gain, i),
             w = O::load(routerRow(block, e), i);
#pragma unroll
        for (uint32_t j = 0; j < O::kEach; ++j)
          dot = ptx::fma(w.v[j], x.v[j] * (factor * g.v[j]), dot);
      }
      float sum[1] = {dot};
      addToSums(block, sum);
    }
    block.sync();
    if (active) {
      float logit[1];
      teamSums(block, logit);
      if (Team<B>::lane(block) == 0)
        publish(routerWords(block, b) + e, logit[0], block.epoch());
    }
  };
  for (uint32_t first = block.slot() / slots * slots; first < M::kExperts;
       first += B::Plan::kSlots)
#pragma unroll 1
    for (uint32_t e = first; e < first + slots && e < M::kExperts; ++e)
      compute(e);
}

/// The router's logits of one row, in one warp: a lane has pairs of
/// neighbouring experts.
template <class B> struct RouterLogits {
  using M = typename B::Model;
  static constexpr uint32_t kPairs = (M::kExperts + 63) / 64;
  float logit[kPairs][2]; // soft-capped; -infinity past the last expert

  GROK_DEVICE static uint32_t expert(B &block, uint32_t pair, uint32_t i) {
    return (pair * 32 + block.lane()) * 2 + i;
  }

  GROK_DEVICE void take(B &block, uint32_t b) {
    uint64_t word[kPairs][2];
    awaitPairs<FullWord>(block, Phase::kRoute, word, [&](uint32_t j) {
      uint32_t e = expert(block, j, 0);
      return Words{routerWords(block, b) + e, e < M::kExperts,
                   M::kExperts % 2 == 0 || e + 1 < M::kExperts};
    });
#pragma unroll
    for (uint32_t j = 0; j < kPairs; ++j)
#pragma unroll
      for (uint32_t i = 0; i < 2; ++i)
        logit[j][i] = expert(block, j, i) < M::kExperts
                          ? softCap(wordValue(word[j][i]), M::kRouterCap)
                          : kNegativeInfinity;
  }

  /// A number that grows with the logit.
  GROK_DEVICE static uint32_t key(float v) {
    uint32_t bits = __builtin_bit_cast(uint32_t, v);
    return bits ^ (bits >> 31 ? ~0u : 1u << 31);
  }

  /// The k experts with the largest logits, ties to the lower index, go to
  /// routing().expert[b], ascending.
  GROK_DEVICE void choose(B &block, uint32_t b) const {
    uint32_t keys[kPairs][2], chosen[M::kExpertsPerToken];
#pragma unroll
    for (uint32_t j = 0; j < kPairs; ++j)
#pragma unroll
      for (uint32_t i = 0; i < 2; ++i)
        keys[j][i] = key(logit[j][i]);
#pragma unroll
    for (uint32_t n = 0; n < M::kExpertsPerToken; ++n) {
      uint32_t most = 0, first = ~0u;
#pragma unroll
      for (uint32_t j = 0; j < kPairs; ++j)
#pragma unroll
        for (uint32_t i = 0; i < 2; ++i)
          most = keys[j][i] > most ? keys[j][i] : most;
      most = ptx::warpMax(most);
#pragma unroll
      for (uint32_t j = kPairs; j-- > 0;)
#pragma unroll
        for (uint32_t i = 2; i-- > 0;)
          first = keys[j][i] == most ? expert(block, j, i) : first;
      chosen[n] = ptx::warpMin(first);
#pragma unroll
      for (uint32_t j = 0; j < kPairs; ++j)
#pragma unroll
        for (uint32_t i = 0; i < 2; ++i)
          keys[j][i] = expert(block, j, i) == chosen[n] ? 0 : keys[j][i];
    }
    if (block.lane() == 0) {
#pragma unroll
      for (uint32_t n = 0; n < M::kExpertsPerToken; ++n) {
        uint32_t rank = 0;
#pragma unroll
        for (uint32_t m = 0; m < M::kExpertsPerToken; ++m)
          rank += chosen[m] < chosen[n] ? 1 : 0;
        block.routing().expert[b][rank] = chosen[n];
      }
    }
  }

  /// Softmax over all experts; the chosen ones' weights go to
  /// routing().weight[b].
  GROK_DEVICE void weigh(B &block, uint32_t b) const {
    auto &routing = block.routing();
    float top = kNegativeInfinity;
#pragma unroll
    for (uint32_t j = 0; j < kPairs; ++j)
#pragma unroll
      for (uint32_t i = 0; i < 2; ++i)
        top = logit[j][i] > top ? logit[j][i] : top;
#pragma unroll
    for (uint32_t m = 16; m; m >>= 1) {
      float other = ptx::shuffleXor(top, m);
      top = other > top ? other : top;
    }
    float p[kPairs][2], sum = 0;
#pragma unroll
    for (uint32_t j = 0; j < kPairs; ++j)
#pragma unroll
      for (uint32_t i = 0; i < 2; ++i)
        sum += p[j][i] = exp(logit[j][i] - top);
#pragma unroll
    for (uint32_t m = 16; m; m >>= 1)
      sum += ptx::shuffleXor(sum, m);
    ptx::warpSync();
#pragma unroll
    for (uint32_t n = 0; n < M::kExpertsPerToken; ++n)
#pragma unroll
      for (uint32_t j = 0; j < kPairs; ++j)
#pragma unroll
        for (uint32_t i = 0; i < 2; ++i)
          if (routing.expert[b][n] == expert(block, j, i))
            routing.weight[b][n] = p[j][i] / sum;
  }
};

/// Learned routing of this layer, float32 throughout: the slots compute the
/// logits, every slot chooses from all of them, a warp a row. The producer is
/// told before the weights are computed: its way is the longer one.
template <class B> GROK_DEVICE void routeByRouter(B &block) {
  constexpr uint32_t kPerToken = B::Model::kExpertsPerToken;
  publishRouterLogits(block);
  block.beginPhase();
  const uint32_t b = block.warp();
  const bool hasRow = b < block.rows(), active = hasRow && block.rowActive(b);
  RouterLogits<B> logits;
  if (active) {
    logits.take(block, b);
    logits.choose(block, b);
  } else if (hasRow && block.lane() < kPerToken) {
    block.routing().expert[b][block.lane()] =
        Routing<typename B::Model, typename B::Plan>::kNone;
  }
  if (block.rows() > 1)
    block.sync();
  if (block.warp() == 0)
    listActiveExperts(block);
  if (active)
    logits.weigh(block, b);
  block.sync();
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

/// OperandWords of the activations between gate_up and down of one row: each
/// chosen expert's [F], then the dense MLP's [Fd].
template <class B> GROK_DEVICE uint64_t *actWords(B &block, uint32_t b) {
  return block.template region<uint64_t>(Region::kAct) +
         (uint64_t(block.parity()) * B::Plan::kMaxBatch + b) *
             B::kShape.actWords();
}

/// act = gelu(gate) * up of every active expert, and of the dense MLP. The
/// operand is there, or is made by stageNormed.
template <class B>
GROK_DEVICE void gateUpPhase(B &block, RingReader<B> &ring,
                             FirstTiles<B, B::Model::kHidden> &ahead) {
  using M = typename B::Model;
  using P = typename B::Plan;
  const float *gain = block.vectors(block.layer()) + 2 * M::kHidden;
  bool staged = kWholeRow<B>;
  auto stage = [&](uint32_t first) { stageNormed(block, gain, first); };
  // `offset`: of the vector's first word; no vector for the row without `used`.
  auto emit = [&](Output out, float value, float partner, bool used,
                  uint32_t offset, uint32_t width) {
    uint32_t f = (out.tile * kTileRows + out.r) / 2;
    float act = gelu<M::kGeluErf>(value) * partner;
    float next = ptx::shuffleXor(act, 2);
    if (used && out.r % 2 == 0 && f < width) // rows 2f and 2f + 1 are gate f
                                             // and up f
      OperandWord<B>::publish(block, actWords(block, out.row) + offset, f, act,
                              next);
  };
  for (uint32_t a = 0; a < block.routing().activeCount; ++a) {
    uint32_t expert = block.routing().active[a];
    matvec(block, ring, block.routing().activeGateUp(a), staged, Phase::kGateUp,
           ahead, stage, [&](Output out, float value, float partner) {
             uint32_t place = out.mine ? placeInRow(block, out.row, expert)
                                       : M::kExpertsPerToken;
             emit(out, value, partner, place < M::kExpertsPerToken,
                  place * B::kShape.operandWords(M::kExpertWidth),
                  M::kExpertWidth);
           });
  }
  if constexpr (M::kDenseWidth > 0)
    matvec(block, ring, uint32_t(P::kMatrixDenseGateUp), staged, Phase::kGateUp,
           ahead, stage, [&](Output out, float value, float partner) {
             emit(out, value, partner, out.mine && block.rowActive(out.row),
                  M::kExpertsPerToken * B::kShape.operandWords(M::kExpertWidth),
                  M::kDenseWidth);
           });
}

/// The last kept expert of a row, whose contribution completes the row's sum.
template <class B> GROK_DEVICE uint32_t lastKept(B &block, uint32_t b) {
  uint32_t last = Routing<typename B::Model, typename B::Plan>::kNone;
#pragma unroll
  for (uint32_t i = 0; i < B::Model::kExpertsPerToken; ++i) {
    uint32_t e = block.routing().expert[b][i];
    if (block.routing().kept(e))
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
  using Out = OutputWord<B>;
  uint64_t *y = block.template region<uint64_t>(Region::kYMoe) +
                block.parity() * P::kMaxBatch * Out::kRowWords;
  float *sums = block.downSums(); // [tile of the slot][row][8]
  uint32_t rows = block.rows();
  for (uint32_t i = block.tid; i < P::kMaxDownTiles * rows * kTileRows;
       i += kConsumers)
    sums[i] = 0;

  // With one expert a token its activations are the row's only ones: staged
  // once, they serve every expert's matrix. Rows that don't use the expert hold
  // something else then; their outputs are not used.
  constexpr bool kOnce =
      M::kExpertsPerToken == 1 && M::kExpertWidth <= P::kBlockSteps * kTileK;
  constexpr uint32_t kExpertWords = B::kShape.operandWords(M::kExpertWidth);
  // By whole warps; hands the value over if it is `complete`.
  auto publishRow = [&](Output out, float value, bool complete) {
    uint32_t row = out.tile * kTileRows + out.r;
    float partner = ptx::shuffleXor(value, 1);
    if (complete && row < M::kHidden)
      Out::publish(block, y + out.row * Out::kRowWords, row, value, partner);
  };

  bool staged = false;
  FirstTiles<B, M::kExpertWidth> ahead;
  if (block.routing().activeCount)
    ahead.take(block, ring, block.routing().activeDown(0), Phase::kDown);
  for (uint32_t a = 0; a < block.routing().activeCount; ++a) {
    uint32_t expert = block.routing().active[a],
             matrix = block.routing().activeDown(a);
    uint32_t tileBegin = block.extent(matrix).tileBegin;
    staged &= kOnce;
    matvec(
        block, ring, matrix, staged, Phase::kDown, ahead,
        [&](uint32_t first) {
          stageWords<M::kExpertWidth>(
              block, first, Phase::kDown, [&](uint32_t b) {
                const auto &routing = block.routing();
                uint32_t place =
                    kOnce ? (routing.kept(routing.expert[b][0]) ? 0 : 1)
                          : placeInRow(block, b, expert);
                return Words{actWords(block, b) + place * kExpertWords,
                             place < M::kExpertsPerToken};
              });
          trace(block, Phase::kDown, TracePoint::kReady);
        },
        [&](Output out, float value, float) {
          uint32_t place = out.mine ? placeInRow(block, out.row, expert)
                                    : M::kExpertsPerToken;
          const bool used = place < M::kExpertsPerToken;
          float total = 0;
          if (used) {
            float *sum = sums +
                         ((out.tile - tileBegin) * rows + out.row) * kTileRows +
                         out.r;
            total =
                ptx::fma(block.routing().weight[out.row][place], value, *sum);
            *sum = total;
          }
          if constexpr (!kDense)
            publishRow(out, total, used && lastKept(block, out.row) == expert);
        });
  }
  if constexpr (kDense) {
    uint32_t matrix = uint32_t(P::kMatrixDenseDown),
             tileBegin = block.extent(matrix).tileBegin;
    staged = false;
    FirstTiles<B, M::kDenseWidth> none;
    matvec(
        block, ring, matrix, staged, Phase::kDown, none,
        [&](uint32_t first) {
          stageWords<M::kDenseWidth>(
              block, first, Phase::kDown, [&](uint32_t b) {
                return Words{actWords(block, b) +
                                 M::kExpertsPerToken * kExpertWords,
                             block.rowActive(b)};
              });
        },
        [&](Output out, float value, float) {
          const bool used = out.mine && block.rowActive(out.row);
          if (used)
            value +=
                sums[((out.tile - tileBegin) * rows + out.row) * kTileRows +
                     out.r];
          publishRow(out, value * 0.707106769f, used);
        });
  }
}

} // namespace grok::device
