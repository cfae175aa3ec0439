// Activations that cross slots: 64-bit words {one or two values, epoch}. The
// epoch says that the word belongs to this layer of this step, so no fence and
// no barrier stands between the writer and its readers.
#pragma once

#include "codegen/Device/block.h"

namespace grok::device {

GROK_DEVICE uint64_t makeWord(float value, uint32_t epoch) {
  return uint64_t(epoch) << 32 | __builtin_bit_cast(uint32_t, value);
}
GROK_DEVICE uint32_t wordPayload(uint64_t word) { return uint32_t(word); }
GROK_DEVICE float wordValue(uint64_t word) {
  return __builtin_bit_cast(float, uint32_t(word));
}
GROK_DEVICE uint32_t wordEpoch(uint64_t word) { return uint32_t(word >> 32); }

GROK_DEVICE void publish(uint64_t *word, float value, uint32_t epoch) {
  ptx::storeRelaxed(word, makeWord(value, epoch));
}

/// A word with 32 bits of payload.
struct FullWord {
  GROK_DEVICE static uint64_t empty(uint32_t epoch) {
    return makeWord(0, epoch);
  }
  GROK_DEVICE static bool fresh(uint64_t word, uint32_t epoch) {
    return wordEpoch(word) == epoch;
  }
};

/// A word with two values, float32 rounded to kValueBits bits (a mantissa of
/// 11), and the low kEpochBits bits of the epoch: [epoch][first][second]. The
/// runtime clears the words before an epoch would come again.
struct PackedWord {
  static constexpr uint32_t kEpochBits = abi::kPackedEpochBits,
                            kValueBits = (64 - kEpochBits) / 2,
                            kCut = 32 - kValueBits; // bits of a float32
  GROK_DEVICE static uint64_t empty(uint32_t epoch) {
    return uint64_t(epoch) << (64 - kEpochBits);
  }
  GROK_DEVICE static bool fresh(uint64_t word, uint32_t epoch) {
    constexpr uint32_t kShift = 32 - kEpochBits;
    return (wordEpoch(word) ^ epoch << kShift) < 1u << kShift;
  }
  GROK_DEVICE static uint64_t make(float first, float second, uint32_t epoch) {
    return empty(epoch) | uint64_t(cut(first)) << kValueBits | cut(second);
  }
  GROK_DEVICE static float first(uint64_t word) {
    return __builtin_bit_cast(float, uint32_t(word >> kValueBits) << kCut);
  }
  GROK_DEVICE static float second(uint64_t word) {
    return __builtin_bit_cast(float, uint32_t(word) << kCut);
  }

private:
  /// To the nearest, ties to even; NaN stays.
  GROK_DEVICE static uint32_t cut(float v) {
    uint32_t bits = __builtin_bit_cast(uint32_t, v);
    uint32_t odd = bits >> kCut & 1;
    return v == v ? (bits + (1u << (kCut - 1)) - 1 + odd) >> kCut
                  : 0x7fc00000u >> kCut;
  }
};

/// Two neighbouring words, 16-byte aligned, that may be asked for if they are
/// `there`; `both`: the second is one that somebody writes.
struct Words {
  const uint64_t *words;
  bool there, both = true;
};

/// A lane's pairs of words at(0) .. at(kCount - 1): all asked for at once and
/// the stale ones again until no lane has one, which is one trip to L2 instead
/// of one a pair. A payload is 0 where no word is there. Called by whole warps;
/// the first of the block speaks for all to the producer.
/// (A vector access is two scalar ones to PTX; each word brings its own epoch.)
template <class Format, uint32_t kCount, class B, class At>
GROK_DEVICE void awaitPairs(B &block, Phase phase, uint64_t (&word)[kCount][2],
                            At at) {
  const uint32_t epoch = block.epoch();
  volatile uint32_t *waiting = &block.control().waiting;
  // Where rows are staged K block by K block most words are there at once: what
  // is a wait shows then.
  if (kWholeRow<B> && block.tid == 0)
    *waiting = 1;
  auto stale = [&](uint32_t j) {
    return !Format::fresh(word[j][0], epoch) ||
           (at(j).both && !Format::fresh(word[j][1], epoch));
  };
  auto ask = [&](uint32_t j) {
    ptx::loadRelaxedPairIf(stale(j), at(j).words, word[j]);
  };
#pragma unroll
  for (uint32_t j = 0; j < kCount; ++j)
    word[j][0] = word[j][1] = Format::empty(at(j).there ? epoch - 1 : epoch);
  uint32_t since = 0;
#pragma unroll 1
  for (uint32_t polls = 1;; ++polls) {
#pragma unroll
    for (uint32_t j = 0; j < kCount; ++j)
      ask(j);
    bool fresh = true;
#pragma unroll
    for (uint32_t j = 0; j < kCount; ++j)
      fresh &= !stale(j);
    if (ptx::all(fresh) || (polls % kPollsBetweenChecks == 0 &&
                            !ptx::all(!gaveUp(block, since, phase))))
      break;
    if (!kWholeRow<B> && block.tid == 0)
      *waiting = 1;
  }
  if (block.tid == 0)
    *waiting = 0;
#pragma unroll
  for (uint32_t j = 0; j < kCount; ++j)
    if (!at(j).both)
      word[j][1] = Format::empty(epoch);
}

/// Waits for the words words[0] .. words[count - 1], whose payload nobody
/// wants.
template <class B>
GROK_DEVICE void awaitAll(B &block, const uint64_t *words, uint32_t count,
                          Phase phase) {
  for (uint32_t first = 0; first < count; first += 2 * kConsumers) {
    uint32_t i = first + 2 * block.tid;
    uint64_t word[1][2];
    awaitPairs<FullWord>(block, phase, word, [&](uint32_t) {
      return Words{words + i, i < count, i + 1 < count};
    });
  }
}

/// A word that this thread has awaited before.
GROK_DEVICE uint64_t arrived(const uint64_t *word) {
  return ptx::loadRelaxed(word);
}

/// What becomes a 16-bit operand crosses as such, two values a word: half the
/// words to ask for, and the same operand. Split activations need the float32.
template <class B> struct OperandWord {
  static constexpr bool kPair = B::Plan::kPlanes == 1;
  static constexpr uint32_t kValues = kPair ? 2 : 1;
  static constexpr bool kBF16 = B::Model::kBF16;

  /// Publishes element `index` of a vector. Every lane of the warp calls it;
  /// `partner` is the value of the element index ^ 1.
  GROK_DEVICE static void publish(B &block, uint64_t *words, uint32_t index,
                                  float value, float partner) {
    if constexpr (!kPair)
      device::publish(words + index, value, block.epoch());
    else if (index % 2 == 0)
      ptx::storeRelaxed(words + index / 2, uint64_t(block.epoch()) << 32 |
                                               to16Pair<kBF16>(value, partner));
  }

  /// Publishes elements `index`, an even number, and index + 1.
  GROK_DEVICE static void publishPair(B &block, uint64_t *words, uint32_t index,
                                      float first, float second) {
    publish(block, words, index, first, second);
    if constexpr (!kPair)
      device::publish(words + index + 1, second, block.epoch());
  }
};

template <bool kPacked> constexpr auto format() {
  if constexpr (kPacked)
    return PackedWord{};
  else
    return FullWord{};
}

/// A sub-block's output, which is added to the residual stream: two values a
/// word; the full float32 where activations are split.
template <class B> struct OutputWord {
  static constexpr bool kPacked = B::Plan::kPlanes == 1;
  using Format = decltype(format<kPacked>());
  static constexpr uint32_t kValues = kPacked ? 2 : 1;
  /// Words of a vector [D].
  static constexpr uint32_t kRowWords =
      B::kShape.outputWords(B::Model::kHidden);

  /// Publishes element `index` of a vector. Every lane of the warp calls it;
  /// `partner` is the value of the element index ^ 1.
  GROK_DEVICE static void publish(B &block, uint64_t *words, uint32_t index,
                                  float value, float partner) {
    if constexpr (!kPacked)
      device::publish(words + index, value, block.epoch());
    else if (index % 2 == 0)
      ptx::storeRelaxed(words + index / 2,
                        PackedWord::make(value, partner, block.epoch()));
  }
  /// The values of two neighbouring words.
  GROK_DEVICE static void values(const uint64_t (&word)[2],
                                 float (&v)[2 * kValues]) {
#pragma unroll
    for (uint32_t w = 0; w < 2; ++w)
      if constexpr (kPacked) {
        v[2 * w] = PackedWord::first(word[w]);
        v[2 * w + 1] = PackedWord::second(word[w]);
      } else {
        v[w] = wordValue(word[w]);
      }
  }
};

} // namespace grok::device
