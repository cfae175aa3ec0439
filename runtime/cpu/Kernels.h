// The arithmetic of the CPU executor, compiled once per instruction set from
// one source. Every function computes the same bits in all of them: sixteen
// lanes, a product and then a sum (never fused), and a fixed tree at the end,
// so a result depends neither on the machine nor on how many columns or threads
// share the work.
//
// A column is one position of one row of the batch.
#pragma once

#include <cstdint>
#include <span>

namespace grok::cpu {

// Types of their own: this header is compiled for several instruction sets, so
// it includes nothing that has code.
enum class Storage { kF16, kBF16, kInt8, kFp8 };
enum class Gate { kTanhGelu, kErfGelu };

/// Consecutive tiles of one extent times several columns.
struct MatvecArgs {
  Storage storage;
  const uint8_t *extent; // first fragment of the extent
  uint32_t extentTiles;  // tiles of the extent
  uint32_t firstTile;    // of these, in the extent
  uint32_t tiles;
  uint32_t steps, blockSteps;
  uint64_t groupBytes; // of the extent's full groups of tiles
  uint32_t columns;
  const float *const
      *x;          // [columns]: operand in the order of permute(), steps * 32
  float *const *y; // [columns]: 8 * tiles sums
  const float
      *scale; // [columns], or null. With it, y += scale * sum; without, y = sum
};

/// The scores of one column's query heads of one kv head against a range of
/// positions, and what they select of V.
struct AttentionArgs {
  const float *q; // [heads][headStride], rotated, zero-padded
  uint32_t heads;
  uint32_t headStride;  // headDim rounded up to 16
  const float *keys;    // first block: [headStride][64]
  const float *values;  // first block: [64][headStride]
  uint64_t blockStride; // floats from a block to the next
  uint32_t positions;   // of the range, >= 1
  float scale, cap, temperature;
  float *scores; // scratch, [heads][positions rounded up to 64]
  float *out; // [heads][headStride + kPartialExtra]: weighted values, then the
              // maximum and the sum
  uint64_t outStride; // floats from a head to the next
};
/// Floats behind a partial output: the largest score and the sum of the
/// exponentials, in a whole vector.
inline constexpr uint32_t kPartialExtra = 16;

struct Kernels {
  const char *name;
  void (*matvec)(const MatvecArgs &);
  /// out = g * v / rms(v).
  void (*rmsNorm)(const float *v, const float *g, uint32_t n, float eps,
                  float *out);
  /// h += g * w / rms(w) with w = scale * v.
  void (*addRmsNorm)(float *h, const float *v, float scale, const float *g,
                     uint32_t n, float eps);
  /// Brings n floats, rounded up to 32 with what lies there, into the order in
  /// which a matvec of this type with rows of n reads them.
  void (*permute)(Storage, const float *in, uint32_t n, float *out);
  /// out[r] = row r of w [rows, n] times x.
  void (*dotRows)(const float *w, uint32_t rows, uint32_t n, const float *x,
                  float *out);
  void (*attention)(const AttentionArgs &);
  /// The heads' outputs from `chunks` partial ones: out[headDim].
  void (*mergePartials)(const float *partials, uint64_t chunkStride,
                        uint32_t chunks, uint32_t headStride, uint32_t headDim,
                        float *out);
  /// out[i] = gelu(pairs[2 i]) * pairs[2 i + 1].
  void (*gatedGelu)(Gate, const float *pairs, uint32_t n, float *out);
  /// v = cap * tanh(v * multiplier / cap); without a cap (0), v = v *
  /// multiplier.
  void (*scaleAndCap)(float *v, uint32_t n, float multiplier, float cap);
  /// v = e^(v - largest) / sum of them.
  void (*softmax)(float *v, uint32_t n);
  /// One row of `steps` consecutive fragments (rowBytes: its bytes of the
  /// first) times `multiplier`; the elements of each in natural order.
  void (*expandFragments)(Storage, const uint8_t *rowBytes, uint32_t steps,
                          float multiplier, float *out);
  /// n values of a 16-bit type times `multiplier`.
  void (*expandRow)(Storage, const uint8_t *bytes, uint32_t n, float multiplier,
                    float *out);
  /// Elementwise, for tests.
  void (*exp)(float *v, uint32_t n);
  void (*tanh)(float *v, uint32_t n);
  void (*erf)(float *v, uint32_t n);
};

/// Place of element f of n in the order of permute().
uint32_t permutedIndex(Storage storage, uint32_t n, uint32_t f);

/// What this machine can run, best first; the last is plain x86-64 (or the
/// compiler's baseline elsewhere).
std::span<const Kernels *const> supportedKernels();
/// The best of them.
const Kernels &bestKernels();

} // namespace grok::cpu
