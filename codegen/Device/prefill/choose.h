// The next token of the rows whose prompt ends in a pass.
#pragma once

#include "codegen/Device/head.h"
#include "codegen/Device/prefill/pass.h"

namespace grok::device {

/// The best token of the block's row, as the decode kernel chooses it: appended
/// to the row's ids.
template <class M, class P>
GROK_DEVICE void chooseNext(const abi::PrefillParams &params) {
  using Pass = device::Pass<M, P>;
  if (!(params.chooses >> ptx::ctaid() & 1)) // the whole block
    return;
  Pass pass{params};
  const abi::PrefillToken &token = pass.token(params.headToken[ptx::ctaid()]);
  const float *logits = (const float *)(params.arena + P::kLogitsOffset) +
                        uint64_t(ptx::ctaid()) * M::kVocab;
  const uint64_t key = sampling::noiseKey(params.seed, token.position + 1);
  Candidate best{kNegativeInfinity, kNoToken};
  constexpr uint32_t kTogether = 8; // logits on their way at a time
  for (uint32_t first = pass.tid; first < M::kVocab;
       first += kTogether * kGroupThreads) {
    float logit[kTogether];
#pragma unroll
    for (uint32_t i = 0; i < kTogether; ++i) {
      uint32_t id = first + i * kGroupThreads;
      logit[i] = id < M::kVocab ? logits[id] : kNegativeInfinity;
    }
#pragma unroll
    for (uint32_t i = 0; i < kTogether; ++i) {
      uint32_t id = first + i * kGroupThreads;
      float score = logit[i];
      if (params.inverseTemperature > 0)
        score = ptx::fma(score, params.inverseTemperature, gumbel(key, id));
      Candidate c{score, int32_t(id)};
      if (id < M::kVocab && c.better(best))
        best = c;
    }
  }
  Candidate *ofWarps = (Candidate *)pass.shared();
  best = bestOfWarp(best);
  if (pass.lane() == 0)
    ofWarps[pass.warp()] = best;
  ptx::barSync(0, kGroupThreads);
  if (pass.warp() == 0) {
    static_assert(kGroupThreads == 32 * 32, "a lane a warp");
    best = bestOfWarp(ofWarps[pass.lane()]);
    if (pass.lane() == 0)
      params.ids[uint64_t(token.row) * params.idStride + token.position + 1] =
          best.id;
  }
}

} // namespace grok::device
