#include "runtime/handovers/Buffers.h"

#include <algorithm>

namespace grok::handovers {

Buffers::Buffers(const PlanTables &plan, const DecodeShape &shape) : s_(shape) {
  auto at = [&](const char *name) {
    const ArenaRegion *region = plan.findRegion(name);
    return region ? region->offset / kWordBytes : 0;
  };
  q_ = at("q");
  kvNew_ = at("kv_new");
  partials_ = at("partials");
  attn_ = at("attn");
  yAttn_ = at("y_attn");
  router_ = at("router");
  act_ = at("act");
  yMoe_ = at("y_moe");
  presence_ = at("presence");
  candidates_ = at("candidates");
  blocks_ = plan.arenaBytes / kWordBytes;
}

WordRange Buffers::queries(uint32_t parity, uint32_t row,
                           uint32_t kvHead) const {
  uint64_t group = uint64_t(s_.headsPerKv()) * s_.headDim,
           begin =
               q_ + rowOf(parity, row) * s_.heads * s_.headDim + kvHead * group;
  return {begin, begin + group};
}

WordRange Buffers::newKv(uint32_t parity, uint32_t row, uint32_t value,
                         uint32_t kvHead) const {
  uint64_t begin =
      kvNew_ +
      ((rowOf(parity, row) * 2 + value) * s_.kvHeads + kvHead) * s_.headDim;
  return {begin, begin + s_.headDim};
}

void Buffers::qkvOutputs(uint32_t parity, uint32_t row, uint32_t tileBegin,
                         uint32_t tileEnd,
                         std::vector<WordRange> &words) const {
  const uint32_t dim = s_.headDim,
                 end = std::min(tileEnd * kTileRows,
                                (s_.heads + 2 * s_.kvHeads) * dim);
  for (uint32_t r = tileBegin * kTileRows; r < end;) {
    const uint32_t head = r / dim, from = r % dim,
                   to = std::min(dim, from + end - r);
    r += to - from;
    if (head >= s_.heads + s_.kvHeads) {
      uint64_t value =
          newKv(parity, row, 1, head - s_.heads - s_.kvHeads).begin;
      words.push_back({value + from, value + to});
      continue;
    }
    // Rows 2j and 2j + 1 are dimensions j and j + dh/2.
    uint64_t vector = head < s_.heads
                          ? queries(parity, row, 0).begin + uint64_t(head) * dim
                          : newKv(parity, row, 0, head - s_.heads).begin;
    for (uint64_t half : {vector, vector + dim / 2})
      words.push_back({half + from / 2, half + to / 2});
  }
}

WordRange Buffers::partials(uint32_t parity, uint32_t row, uint32_t head,
                            uint32_t block) const {
  uint64_t words = s_.headDim + 2,
           begin = partials_ +
                   ((rowOf(parity, row) * s_.heads + head) * s_.kvBlocks() +
                    block) *
                       words;
  return {begin, begin + words};
}

WordRange Buffers::attention(uint32_t parity, uint32_t row,
                             uint32_t head) const {
  uint64_t words = s_.headDim / s_.operandValues(),
           begin = attention(parity, row).begin + head * words;
  return {begin, begin + words};
}

WordRange Buffers::attention(uint32_t parity, uint32_t row) const {
  uint32_t width = s_.heads * s_.headDim;
  uint64_t begin = attn_ + rowOf(parity, row) * s_.operandWords(width);
  return {begin, begin + ceilDiv(width, s_.operandValues())};
}

WordRange Buffers::outputs(uint64_t base, uint32_t parity, uint32_t row,
                           uint32_t tileBegin, uint32_t tileEnd) const {
  const uint32_t values = s_.operandValues();
  uint64_t begin = base + rowOf(parity, row) * s_.outputWords(s_.hidden);
  return {begin + tileBegin * kTileRows / values,
          begin + ceilDiv(std::min(tileEnd * kTileRows, s_.hidden), values)};
}

WordRange Buffers::router(uint32_t parity, uint32_t row, uint32_t firstExpert,
                          uint32_t count) const {
  uint64_t begin =
      router_ + rowOf(parity, row) * pairedWords(s_.experts) + firstExpert;
  return {begin, begin + count};
}

WordRange Buffers::activations(uint32_t parity, uint32_t row, uint32_t place,
                               uint32_t tileBegin, uint32_t tileEnd) const {
  const uint32_t values = s_.operandValues(),
                 width = place == s_.expertsPerToken ? s_.denseWidth
                                                     : s_.expertWidth;
  constexpr uint32_t kPairs = kTileRows / 2; // rows 2f and 2f + 1 make one
  uint64_t begin = act_ + rowOf(parity, row) * s_.actWords() +
                   uint64_t(place) * s_.operandWords(s_.expertWidth);
  return {begin + tileBegin * kPairs / values,
          begin + ceilDiv(std::min(tileEnd * kPairs, width), values)};
}

WordRange Buffers::activations(uint32_t parity, uint32_t row,
                               uint32_t place) const {
  uint32_t width = place == s_.expertsPerToken ? s_.denseWidth : s_.expertWidth;
  return activations(parity, row, place, 0, ceilDiv(2 * width, kTileRows));
}

WordRange Buffers::presence(uint32_t parity, uint32_t firstSlot,
                            uint32_t count) const {
  uint64_t begin = presence_ + parity * pairedWords(s_.slots) + firstSlot;
  return {begin, begin + count};
}

WordRange Buffers::candidates(uint32_t parity, uint32_t slot,
                              uint32_t row) const {
  uint64_t begin =
      candidates_ +
      ((uint64_t(parity) * s_.slots + slot) * s_.maxBatch + row) * 2;
  return {begin, begin + 2};
}

std::string Buffers::blockWordName(uint64_t word) {
  constexpr const char *kNames[] = {
      "the routing that its block announces", "its stream's taking of that",
      "the other block's wish for an operand", "an operand of the other block"};
  uint64_t place = word % kBlockWords;
  return place < 4 ? kNames[place]
                   : "row " + std::to_string(place - 4) + " of its operand";
}

} // namespace grok::handovers
