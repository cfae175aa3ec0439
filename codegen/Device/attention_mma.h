// An attention task on the tensor cores: scores S = K q and outputs O = V^T p,
// both with 16 rows of the cache's blocks as the left operand. A query head is
// two columns, the high and the low half of its float32 values, so that nothing
// but the cache is rounded to 16 bits.
#pragma once

#include "codegen/Device/attention_common.h"

namespace grok::device {

/// The parts of the block's scratch that a task uses.
template <class B> struct TensorScratch {
  static constexpr uint32_t kHeadDim = B::Model::kHeadDim,
                            kGroup = B::Model::kHeads / B::Model::kKvHeads,
                            kQuads = (kGroup + 3) / 4; // four heads, 8 columns
  static constexpr uint32_t kStride = kHeadDim + 8;    // lets columns lie in
                                                       // different banks
  static constexpr uint32_t kTiles = kKvPositions / 16;
  uint32_t base; // shared address
  GROK_DEVICE static TensorScratch of(B &block) {
    return {block.sharedAddress(B::kShared.scratch)};
  }
  /// Column c of four heads' queries: [dh] of 16 bits.
  GROK_DEVICE uint32_t query(uint32_t quad, uint32_t column) const {
    return base + (quad * 8 + column) * kStride * 2;
  }
  /// The weights of the 16 positions of a tile as a right operand: a lane's 8
  /// bytes side by side.
  GROK_DEVICE uint32_t weights(uint32_t quad, uint32_t tile) const {
    return base + kQuads * 8 * kStride * 2 + (quad * kTiles + tile) * 256;
  }
  /// Weights are relative to the largest score of their 16 positions: e^score
  /// of it (where scores are not bounded, the score), and the weights' sum.
  GROK_DEVICE uint32_t scale(uint32_t quad, uint32_t tile,
                             uint32_t head) const {
    return base + kQuads * (8 * kStride * 2 + kTiles * 256) +
           ((quad * kTiles + tile) * 4 + head) * 8;
  }
};

/// A float32 as the sum of two 16-bit values.
template <class B> GROK_DEVICE uint32_t highAndLow(float v) {
  constexpr bool kBF16 = B::Model::kBF16;
  uint32_t high = to16Pair<kBF16>(v, 0);
  return to16Pair<kBF16>(from16<kBF16>(uint16_t(high)),
                         v - from16<kBF16>(uint16_t(high)));
}

/// The first `count` (0..8) of 8 16-bit values, then zeros.
GROK_DEVICE ptx::U4 firstHalves(const ptx::U4 &v, uint32_t count) {
  auto keep = [&](uint32_t word, uint32_t before) {
    uint32_t here = count > before ? count - before : 0;
    return here >= 2 ? word : here == 1 ? word & 0xffff : 0;
  };
  return {keep(v.x, 0), keep(v.y, 2), keep(v.z, 4), keep(v.w, 6)};
}

/// Waits for the queries and, in the newest block, for the new key and value,
/// which join the cached ones in the ring as position `newest`; the values lie
/// `values` bytes ahead in it, the keys at its place.
template <class B>
GROK_DEVICE void takeQueries(B &block, RingReader<B> &ring, uint32_t b,
                             uint32_t kvHead, uint32_t newest, bool hasNewest,
                             uint32_t values) {
  using T = TensorScratch<B>;
  using L = KvLayout<B>;
  constexpr bool kBF16 = B::Model::kBF16;
  constexpr uint32_t kDim = T::kHeadDim, kVectors = 2 + T::kGroup,
                     kPairs = kVectors * kDim / 2,
                     kRounds = (kPairs + kConsumers - 1) / kConsumers,
                     kAtOnce = kRounds < 4 ? kRounds : 4;
  T scratch = T::of(block);
  const uint64_t *key = newKvWords(block, b) + kvHead * kDim,
                 *value = key + B::Model::kKvHeads * kDim,
                 *query = queryWords(block, b) + kvHead * T::kGroup * kDim;
#pragma unroll 1
  for (uint32_t round = 0; round < kRounds; round += kAtOnce) {
    uint64_t word[kAtOnce][2];
    // Vectors in the order queries, new key, new value.
    auto first = [&](uint32_t j) {
      return ((round + j) * kConsumers + block.tid) * 2;
    };
    awaitPairs<FullWord>(block, Phase::kAttention, word, [&](uint32_t j) {
      uint32_t i = first(j), vector = i / kDim, d = i % kDim;
      const uint64_t *words = vector < T::kGroup    ? query + i
                              : vector == T::kGroup ? key + d
                                                    : value + d;
      return Words{words,
                   i < kVectors * kDim && (vector < T::kGroup || hasNewest)};
    });
#pragma unroll
    for (uint32_t j = 0; j < kAtOnce; ++j) {
      uint32_t i = first(j), vector = i / kDim, d = i % kDim;
      float x = wordValue(word[j][0]), y = wordValue(word[j][1]);
      if (vector < T::kGroup) {
        uint32_t to = scratch.query(vector / 4, vector % 4 * 2) + d * 2;
        uint32_t high = to16Pair<kBF16>(x, y);
        ptx::storeShared(to, high);
        ptx::storeShared(to + T::kStride * 2, rest16Pair<kBF16>(x, y, high));
      } else if (vector < kVectors && hasNewest) {
        uint32_t pair = to16Pair<kBF16>(x, y);
        if (vector == T::kGroup) {
          ptx::storeShared(ring.address(block, L::key(newest, d)), pair);
        } else {
          ptx::storeShared16(ring.address(block, values + L::value(newest, d)),
                             uint16_t(pair));
          ptx::storeShared16(
              ring.address(block, values + L::value(newest, d + 1)),
              uint16_t(pair >> 16));
        }
      }
    }
  }
}

/// Scores of 16 positions and four heads, and from them the weights.
template <class B>
GROK_DEVICE void tileWeights(B &block, RingReader<B> &ring, uint32_t quad,
                             uint32_t tile, uint32_t count, float temperature) {
  using M = typename B::Model;
  using T = TensorScratch<B>;
  using L = KvLayout<B>;
  const uint32_t lane = block.lane(), row = lane / 4, head = lane % 4;
  T scratch = T::of(block);
  constexpr uint32_t kChains = 2; // of products that depend on one another
  float chain[kChains][4] = {};
#pragma unroll
  for (uint32_t step = 0; step < L::kDimSteps; ++step) {
    float (&c)[4] = chain[step % kChains];
    ptx::U4 upper = ptx::loadShared16(
                ring.address(block, L::keyPart(tile, step, 0)) + lane * 16),
            lower = ptx::loadShared16(
                ring.address(block, L::keyPart(tile, step, 1)) + lane * 16),
            q = ptx::loadShared16(scratch.query(quad, row) + step * 64 +
                                  head * 16);
    ptx::mma<M::kBF16>(c, {upper.x, lower.x, upper.y, lower.y}, q.x, q.y);
    ptx::mma<M::kBF16>(c, {upper.z, lower.z, upper.w, lower.w}, q.z, q.w);
  }
  // The lane has two positions of one head.
  auto score = [&](float dot, uint32_t inTile) {
    return L::position(tile, inTile) < count
               ? softCap(dot * M::kAttentionScale, M::kAttentionCap) *
                     temperature
               : kNegativeInfinity;
  };
  float c[4];
#pragma unroll
  for (uint32_t e = 0; e < 4; ++e)
    c[e] = chain[0][e] + chain[1][e];
  float first = score(c[0] + c[1], row), second = score(c[2] + c[3], row + 8);
  float top = first > second ? first : second;
#pragma unroll
  for (uint32_t m = 4; m < 32; m *= 2) {
    float other = ptx::shuffleXor(top, m);
    top = other > top ? other : top;
  }
  top = top > -1e30f ? top : -1e30f; // no position at all: weights of zero
  first = exp(first - top);
  second = exp(second - top);
  float sum = first + second;
#pragma unroll
  for (uint32_t m = 4; m < 32; m *= 2)
    sum += ptx::shuffleXor(sum, m);
  // Columns 2 head and 2 head + 1, positions row and row + 8 of the tile.
  uint32_t a = highAndLow<B>(first), b = highAndLow<B>(second);
  uint32_t to =
      scratch.weights(quad, tile) + (head * 2 * 4 + row / 2) * 8 + row % 2 * 2;
  ptx::storeShared16(to, uint16_t(a));
  ptx::storeShared16(to + 4, uint16_t(b));
  ptx::storeShared16(to + 32, uint16_t(a >> 16));
  ptx::storeShared16(to + 36, uint16_t(b >> 16));
  if (row == 0)
    ptx::storeSharedPair(scratch.scale(quad, tile, head),
                         kBoundedScores<M> ? exp(top) : top, sum);
}

/// Weighted sums of 16 dimensions of the values for four heads, which are
/// handed over. `words`: of the first of the heads; `heads` of them there are.
template <class B>
GROK_DEVICE void tileOutputs(B &block, RingReader<B> &ring, uint32_t values,
                             uint32_t quad, uint32_t tile, uint32_t count,
                             uint64_t *words, uint32_t heads) {
  using M = typename B::Model;
  using T = TensorScratch<B>;
  using L = KvLayout<B>;
  const uint32_t lane = block.lane(), row = lane / 4, head = lane % 4;
  T scratch = T::of(block);
  float c[T::kTiles][4] = {}, scale[T::kTiles], sums[T::kTiles];
#pragma unroll
  for (uint32_t half = 0; half < kKvPositions / 32; ++half) {
    ptx::U4 upper{}, lower{};
    if (half * 32 < count) { // else the cache holds nothing yet
      upper = ptx::loadShared16(
          ring.address(block, values + L::valuePart(half, tile, 0)) +
          lane * 16);
      lower = ptx::loadShared16(
          ring.address(block, values + L::valuePart(half, tile, 1)) +
          lane * 16);
      if (count < half * 32 + 32) {
        uint32_t from = half * 32 + head * 8; // first of the lane's positions
        uint32_t left = count > from ? count - from : 0;
        upper = firstHalves(upper, left);
        lower = firstHalves(lower, left);
      }
    }
    uint32_t p[2];
    ptx::loadSharedWords(scratch.weights(quad, half * 2) + lane * 8, p);
    ptx::mma<M::kBF16>(c[half * 2], {upper.x, lower.x, upper.y, lower.y}, p[0],
                       p[1]);
    ptx::loadSharedWords(scratch.weights(quad, half * 2 + 1) + lane * 8, p);
    ptx::mma<M::kBF16>(c[half * 2 + 1], {upper.z, lower.z, upper.w, lower.w},
                       p[0], p[1]);
  }
#pragma unroll
  for (uint32_t t = 0; t < T::kTiles; ++t) {
    uint32_t both[2];
    ptx::loadSharedWords(scratch.scale(quad, t, head), both);
    scale[t] = __builtin_bit_cast(float, both[0]);
    sums[t] = __builtin_bit_cast(float, both[1]);
  }
  float top = 0;
  if constexpr (!kBoundedScores<M>) {
    top = scale[0];
#pragma unroll
    for (uint32_t t = 1; t < T::kTiles; ++t)
      top = scale[t] > top ? scale[t] : top;
#pragma unroll
    for (uint32_t t = 0; t < T::kTiles; ++t)
      scale[t] = exp(scale[t] - top);
  }
  float first = 0, second = 0, sum = 0;
#pragma unroll
  for (uint32_t t = 0; t < T::kTiles; ++t) {
    first = ptx::fma(scale[t], c[t][0] + c[t][1], first);
    second = ptx::fma(scale[t], c[t][2] + c[t][3], second);
    sum = ptx::fma(scale[t], sums[t], sum);
  }
  if (head >= heads)
    return;
  words += head * partialHeadWords<B>();
  publish(words + 2 + tile * 16 + row, first, block.epoch());
  publish(words + 2 + tile * 16 + row + 8, second, block.epoch());
  if (tile == 0 && row < 2)
    publish(words + row, row == 0 ? sum : top, block.epoch());
}

/// One task: the partial attention of every query head of a kv head over one
/// block of positions, `cached` of which come through the ring, keys first.
template <class B>
GROK_DEVICE void tensorAttentionTask(B &block, RingReader<B> &ring, uint32_t b,
                                     uint32_t kvHead, uint32_t kvBlock,
                                     uint32_t cached) {
  using T = TensorScratch<B>;
  const uint32_t position = block.position(b), bytes = kvStreamBytes<B>(cached);
  const bool hasNewest = kvBlock == position / kKvPositions;
  const uint32_t count = cached + (hasNewest ? 1 : 0);
  const uint32_t values = uint32_t(alignUp(bytes, B::Plan::kChunkBytes));

  block.sync(); // the scratch of what came before has been read
  ring.await(block, values + bytes, Phase::kAttention);
  takeQueries(block, ring, b, kvHead, cached, hasNewest, values);
  block.sync();
  trace(block, Phase::kAttention, TracePoint::kReady);
  const float temperature = attentionTemperature<typename B::Model>(position);
#pragma unroll 1
  for (uint32_t i = block.warp(); i < T::kQuads * T::kTiles; i += kWarps)
    tileWeights(block, ring, i / T::kTiles, i % T::kTiles, count, temperature);
  block.sync();
  uint64_t *words = partialWords(block, b, kvHead * T::kGroup, kvBlock);
#pragma unroll 1
  for (uint32_t tile = block.warp(); tile < KvLayout<B>::kDimTiles;
       tile += kWarps)
#pragma unroll 1
    for (uint32_t quad = 0; quad < T::kQuads; ++quad)
      tileOutputs(block, ring, values, quad, tile, count,
                  words + quad * 4 * partialHeadWords<B>(),
                  T::kGroup - quad * 4);
  // The newest key and value were ordinary stores to what bulk copies will
  // fill next.
  if constexpr (B::Plan::kSm >= 90)
    if (hasNewest)
      ptx::fenceAsyncProxyShared();
  ring.advance(block, bytes);
  ring.finish(block);
  ring.advance(block, bytes);
  ring.finish(block);
}

} // namespace grok::device
