// Which words of the arena are what, as the decode kernel indexes its regions.
#pragma once

#include <string>
#include <vector>

#include "runtime/bundle/DecodeMemory.h"
#include "runtime/bundle/KernelAbi.h"
#include "runtime/bundle/PlanTables.h"
#include "runtime/handovers/Program.h"

namespace grok::handovers {

/// Words of one parity (of the layer, or, for candidates, of the step). `row`
/// is of the batch; tile ranges are of the matrix that makes the words.
class Buffers {
public:
  Buffers(const PlanTables &plan, const DecodeShape &shape);

  WordRange queries(uint32_t parity, uint32_t row, uint32_t kvHead) const;
  /// The new key (0) or value (1).
  WordRange newKv(uint32_t parity, uint32_t row, uint32_t value,
                  uint32_t kvHead) const;
  /// Queries, new keys and values that tiles of qkv make.
  void qkvOutputs(uint32_t parity, uint32_t row, uint32_t tileBegin,
                  uint32_t tileEnd, std::vector<WordRange> &words) const;
  WordRange partials(uint32_t parity, uint32_t row, uint32_t head,
                     uint32_t block) const;
  /// Attention's output of one head, and of all.
  WordRange attention(uint32_t parity, uint32_t row, uint32_t head) const;
  WordRange attention(uint32_t parity, uint32_t row) const;
  WordRange attnOut(uint32_t parity, uint32_t row, uint32_t tileBegin,
                    uint32_t tileEnd) const {
    return outputs(yAttn_, parity, row, tileBegin, tileEnd);
  }
  WordRange moeOut(uint32_t parity, uint32_t row, uint32_t tileBegin,
                   uint32_t tileEnd) const {
    return outputs(yMoe_, parity, row, tileBegin, tileEnd);
  }
  /// Tiles of a matrix with one output an element of the residual stream.
  uint32_t hiddenTiles() const { return ceilDiv(s_.hidden, kTileRows); }
  WordRange router(uint32_t parity, uint32_t row, uint32_t firstExpert,
                   uint32_t count) const;
  /// Activations of a row's expert in place `place`; expertsPerToken: of the
  /// dense MLP.
  WordRange activations(uint32_t parity, uint32_t row, uint32_t place,
                        uint32_t tileBegin, uint32_t tileEnd) const;
  WordRange activations(uint32_t parity, uint32_t row, uint32_t place) const;
  WordRange presence(uint32_t parity, uint32_t firstSlot, uint32_t count) const;
  WordRange candidates(uint32_t parity, uint32_t slot, uint32_t row) const;
  // Words behind the arena that stand for a block's barriers and its operand.
  /// What the consumers announce, and what the producer has taken.
  WordRange announced(uint32_t slot) const { return blockWord(slot, 0); }
  WordRange taken(uint32_t slot) const { return blockWord(slot, 1); }
  /// What a pair's other block wants of this one, and has given it.
  WordRange wanted(uint32_t slot) const { return blockWord(slot, 2); }
  WordRange given(uint32_t slot) const { return blockWord(slot, 3); }
  /// A row of the operand, which the other block stores.
  WordRange operand(uint32_t slot, uint32_t row) const {
    return blockWord(slot, 4 + row);
  }
  /// What such a word stands for, counted from the arena's end.
  static std::string blockWordName(uint64_t word);

private:
  WordRange outputs(uint64_t base, uint32_t parity, uint32_t row,
                    uint32_t tileBegin, uint32_t tileEnd) const;
  uint64_t rowOf(uint32_t parity, uint32_t row) const {
    return uint64_t(parity) * s_.maxBatch + row;
  }

  WordRange blockWord(uint32_t slot, uint32_t word) const {
    uint64_t begin = blocks_ + uint64_t(slot) * kBlockWords + word;
    return {begin, begin + 1};
  }
  static constexpr uint32_t kBlockWords = 4 + abi::kMaxBatch;

  const DecodeShape s_;
  uint64_t q_, kvNew_, partials_, attn_, yAttn_, router_, act_, yMoe_,
      presence_, candidates_, blocks_;
};

} // namespace grok::handovers
