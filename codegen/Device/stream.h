// The streaming ceiling: what the memory gives to the ring of the decode kernel
// when nothing but reading the bytes stands behind it.
#pragma once

#include "codegen/Device/ring.h"

namespace grok::device {

/// Every block streams its own part of the data, unpaced; the consumer warps
/// read every byte of a chunk together.
template <class Model, class Plan>
GROK_DEVICE void stream(const abi::StreamParams &params) {
  using B = Block<Model, Plan>;
  const abi::DecodeParams none{};
  B block{.params = none, .tid = ptx::tid()};
  if (block.tid == 0) {
    RingBarriers<B>::of(block).init();
    block.control().failed = 0;
    block.control().stop = 0;
    block.control().waiting = 0;
  }
  ptx::barSync(0, kThreads);
  if (block.warp() == kWarps) {
    RingWriter<B> ring = RingWriter<B>::of(block, {Plan::kRingStages, 0});
    ring.push(block, params.data + ptx::ctaid() * params.bytesPerBlock,
              params.bytesPerBlock, streamPolicy<B>(false));
    ring.drain();
    return;
  }
  RingReader<B> ring;
  constexpr uint32_t kSteps = Plan::kChunkBytes / kFragmentBytes;
  ptx::U4 sum{};
  for (uint64_t left = params.bytesPerBlock; left > 0;) {
    uint32_t bytes =
        left < Plan::kChunkBytes ? uint32_t(left) : Plan::kChunkBytes;
    ring.await(block, bytes, Phase::kHead);
#pragma unroll
    for (uint32_t i = 0; i < (kSteps + kWarps - 1) / kWarps; ++i) {
      uint32_t at = (i * kWarps + block.warp()) * kFragmentBytes;
      ptx::U4 v = ptx::loadShared16If(at < bytes, ring.address(block, at) +
                                                      block.lane() * 16);
      sum = {sum.x ^ v.x, sum.y ^ v.y, sum.z ^ v.z, sum.w ^ v.w};
    }
    ring.advance(block, bytes);
    left -= bytes;
  }
  ring.finish(block);
  if ((sum.x ^ sum.y ^ sum.z ^ sum.w) == 0x9E3779B9) // which no one can know
    *params.sink = sum.x;
}

} // namespace grok::device
