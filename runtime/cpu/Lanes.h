// Sixteen float32 lanes, whatever the machine's vector width: the compiler
// splits them where registers are narrower, so the results are the same bits
// everywhere. Included once per instruction set, each time in a namespace of
// its own (GROK_ISA), because the same inline function compiled for two
// instruction sets must not be merged by the linker.
//
// The struct around the vector is never passed through memory: everything here
// is inlined.
#include <cstdint>
#include <utility>

#include "runtime/bundle/Quantized.h"

#define GROK_INLINE inline __attribute__((always_inline))

namespace grok::cpu::GROK_ISA {

constexpr unsigned kLanes = 16;

struct Lanes {
  using Vector = float __attribute__((vector_size(64)));
  using Ints = int32_t __attribute__((vector_size(64)));
  using Words = uint32_t __attribute__((vector_size(64)));
  using Halves = _Float16 __attribute__((vector_size(32)));
  using Shorts = uint16_t __attribute__((vector_size(32)));
  using Bytes = uint8_t __attribute__((vector_size(16)));
  using SignedBytes = int8_t __attribute__((vector_size(16)));
  Vector v;
};

/// Lanes of a register. A loop that keeps many sums goes over a part of the
/// lanes at a time, because more than the registers hold would be moved to
/// memory and back all along.
#if defined(__AVX512F__)
constexpr unsigned kPartLanes = 16;
#elif defined(__AVX2__)
constexpr unsigned kPartLanes = 8;
#else
constexpr unsigned kPartLanes = 4;
#endif
constexpr unsigned kParts = kLanes / kPartLanes;

struct Part {
  using Vector = float __attribute__((vector_size(4 * kPartLanes)));
  using Words = uint32_t __attribute__((vector_size(4 * kPartLanes)));
  using Halves = _Float16 __attribute__((vector_size(2 * kPartLanes)));
  using Shorts = uint16_t __attribute__((vector_size(2 * kPartLanes)));
  using Bytes = uint8_t __attribute__((vector_size(kPartLanes)));
  using SignedBytes = int8_t __attribute__((vector_size(kPartLanes)));
  Vector v;
};

GROK_INLINE Part loadPart(const float *p) {
  Part a;
  __builtin_memcpy(&a.v, p, sizeof(a.v));
  return a;
}
GROK_INLINE void storePart(float *p, const Part &a) {
  __builtin_memcpy(p, &a.v, sizeof(a.v));
}

GROK_INLINE Lanes splat(float x) { return {Lanes::Vector{} + x}; }
/// Any alignment.
GROK_INLINE Lanes load(const float *p) {
  Lanes a;
  __builtin_memcpy(&a.v, p, sizeof(a.v));
  return a;
}
GROK_INLINE void store(float *p, const Lanes &a) {
  __builtin_memcpy(p, &a.v, sizeof(a.v));
}
GROK_INLINE Lanes operator+(const Lanes &a, const Lanes &b) {
  return {a.v + b.v};
}
GROK_INLINE Lanes operator-(const Lanes &a, const Lanes &b) {
  return {a.v - b.v};
}
GROK_INLINE Lanes operator*(const Lanes &a, const Lanes &b) {
  return {a.v * b.v};
}
GROK_INLINE Lanes operator/(const Lanes &a, const Lanes &b) {
  return {a.v / b.v};
}
GROK_INLINE Lanes operator*(const Lanes &a, float b) { return {a.v * b}; }
GROK_INLINE Lanes operator+(const Lanes &a, float b) { return {a.v + b}; }
GROK_INLINE Lanes max(const Lanes &a, const Lanes &b) {
  return {a.v > b.v ? a.v : b.v};
}
GROK_INLINE Lanes min(const Lanes &a, const Lanes &b) {
  return {a.v < b.v ? a.v : b.v};
}

/// A mask: all bits of a lane set or none.
struct Mask {
  Lanes::Ints v;
};
GROK_INLINE Mask operator<(const Lanes &a, const Lanes &b) {
  return {a.v < b.v};
}
GROK_INLINE Lanes select(const Mask &m, const Lanes &a, const Lanes &b) {
  return {m.v ? a.v : b.v};
}
/// Lanes 0 .. n - 1.
GROK_INLINE Mask firstLanes(int n) {
  constexpr Lanes::Ints iota = {0, 1, 2,  3,  4,  5,  6,  7,
                                8, 9, 10, 11, 12, 13, 14, 15};
  return {iota < n};
}
/// Reads n < 16 floats, zeros behind them.
GROK_INLINE Lanes loadFirst(const float *p, unsigned n) {
  Lanes a = splat(0);
  __builtin_memcpy(&a.v, p, n * sizeof(float));
  return a;
}

/// Lane i of a and lane i + Width/2, for every group of Width lanes, of two
/// vectors at once: the result has the sums of a's groups and then of b's, in
/// groups of Width / 2. One step of the reduction tree for two rows.
template <int Width, size_t... I>
GROK_INLINE Lanes foldStep(const Lanes &a, const Lanes &b,
                           std::index_sequence<I...>) {
  constexpr int half = Width / 2;
  return {__builtin_shufflevector(a.v, b.v,
                                  (int(I) / half * Width + int(I) % half)...) +
          __builtin_shufflevector(
              a.v, b.v, (int(I) / half * Width + int(I) % half + half)...)};
}
template <int Width> GROK_INLINE Lanes fold(const Lanes &a, const Lanes &b) {
  return foldStep<Width>(a, b, std::make_index_sequence<16>());
}

/// The sum of all lanes, in the order of the tree: i + (i + 8), then + 4, + 2,
/// + 1.
GROK_INLINE float sum(const Lanes &a) {
  Lanes t = fold<16>(a, a);
  t = fold<8>(t, t);
  t = fold<4>(t, t);
  t = fold<2>(t, t);
  return t.v[0];
}
/// The sums of eight vectors, each in the order of sum().
GROK_INLINE void sumEach(const Lanes *a, float *out) {
  Lanes p[4], q[2];
  for (unsigned i = 0; i != 4; ++i)
    p[i] = fold<16>(a[2 * i], a[2 * i + 1]);
  for (unsigned i = 0; i != 2; ++i)
    q[i] = fold<8>(p[2 * i], p[2 * i + 1]);
  Lanes r = fold<4>(q[0], q[1]);
  r = fold<2>(r, r);
  for (unsigned i = 0; i != 8; ++i)
    out[i] = r.v[i];
}
GROK_INLINE float largest(const Lanes &a) {
  float m = a.v[0];
  for (unsigned i = 1; i != kLanes; ++i)
    m = a.v[i] > m ? a.v[i] : m;
  return m;
}

/// e^x, relative error below 2e-7 for -87 <= x <= 88; clamped to that range.
GROK_INLINE Lanes exp(const Lanes &a) {
  Lanes x = min(max(a, splat(-87.0f)), splat(88.0f));
  constexpr float kRound =
      12582912.0f; // 1.5 * 2^23: adding it rounds to an integer
  Lanes n = (x * 1.44269504088896341f + kRound) + -kRound;
  Lanes r = x - n * 0.693359375f;
  r = r - n * -2.12194440e-4f;
  Lanes p = splat(1.9875691500e-4f);
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  Lanes y = (p * (r * r) + r) + 1.0f;
  Lanes::Ints bits = (__builtin_convertvector(n.v, Lanes::Ints) + 127) << 23;
  return y * Lanes{(Lanes::Vector)bits};
}

GROK_INLINE Lanes magnitude(const Lanes &a) {
  return {(Lanes::Vector)((Lanes::Ints)a.v & 0x7fffffff)};
}
GROK_INLINE Lanes withSignOf(const Lanes &a, const Lanes &s) {
  return {(Lanes::Vector)((Lanes::Ints)a.v |
                          ((Lanes::Ints)s.v & (int32_t)0x80000000))};
}

/// tanh x, relative error below 3e-7, saturating: no overflow whatever x.
GROK_INLINE Lanes tanh(const Lanes &x) {
  Lanes m = magnitude(x), z = x * x;
  Lanes p = splat(-5.70498872745e-3f);
  p = p * z + 2.06390887954e-2f;
  p = p * z + -5.37397155531e-2f;
  p = p * z + 1.33314422036e-1f;
  p = p * z + -3.33332819422e-1f;
  Lanes small = p * z * m + m;
  Lanes large =
      splat(1.0f) - splat(2.0f) / (exp(min(m, splat(20.0f)) * 2.0f) + 1.0f);
  return withSignOf(select(m < splat(0.625f), small, large), x);
}

/// 1 - erf(x) for x >= 1, as e^(-x^2) / x times a polynomial in 1 / x^2 (one
/// for x below 2, one above).
GROK_INLINE Lanes erfcTail(const Lanes &a) {
  Lanes x = min(a, splat(9.0f)), q = splat(1.0f) / x, z = q * q;
  Lanes p = splat(2.326819970068386e-2f);
  p = p * z + -1.387039388740657e-1f;
  p = p * z + 3.687424674597105e-1f;
  p = p * z + -5.824733027278666e-1f;
  p = p * z + 6.210004621745983e-1f;
  p = p * z + -4.944515323274145e-1f;
  p = p * z + 3.404879937665872e-1f;
  p = p * z + -2.741127028184656e-1f;
  p = p * z + 5.638259427386472e-1f;
  Lanes r = splat(-1.047766399936249e+1f);
  r = r * z + 1.297719955372516e+1f;
  r = r * z + -7.495518717768503e+0f;
  r = r * z + 2.921019019210786e+0f;
  r = r * z + -1.015265279202700e+0f;
  r = r * z + 4.218463358204948e-1f;
  r = r * z + -2.820767439740514e-1f;
  r = r * z + 5.641895067754075e-1f;
  return exp(splat(0.0f) - x * x) * q * select(x < splat(2.0f), p, r);
}

/// erf x, absolute error below 2e-7.
GROK_INLINE Lanes erf(const Lanes &x) {
  Lanes m = magnitude(x), z = m * m;
  Lanes p = splat(7.853861353153693e-5f);
  p = p * z + -8.010193625184903e-4f;
  p = p * z + 5.188327685732524e-3f;
  p = p * z + -2.685381193529856e-2f;
  p = p * z + 1.128358514861418e-1f;
  p = p * z + -3.761262582423300e-1f;
  p = p * z + 1.128379165726710e+0f;
  Lanes tail = splat(1.0f) - erfcTail(max(m, splat(1.0f)));
  return withSignOf(select(m < splat(1.0f), m * p, tail), x);
}

} // namespace grok::cpu::GROK_ISA
