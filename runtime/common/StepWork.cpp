#include "runtime/common/StepWork.h"

#include "runtime/bundle/DecodeMemory.h"
#include "runtime/bundle/WeightLayout.h"

namespace grok {
namespace {

/// Elements, and the scales of a row's blocks of inputs.
double weightBytes(const ModelConfig &model, MatrixKind kind, Quantization q) {
  MatrixShape shape = matrixShape(model, kind);
  double scales = q == Quantization::kNone  ? 0
                  : hasScaleBlocks(shape.k) ? 2 * kScaleBlocks
                                            : 2;
  return shape.rows * (double(elementBytes(q)) * shape.k + scales);
}

} // namespace

StepBytes stepBytes(const ModelConfig &m, uint32_t rows, uint32_t context,
                    double experts, Quantization quantization,
                    uint32_t kvElementBytes) {
  auto bytes = [&](MatrixKind kind) {
    return weightBytes(m, kind, quantization);
  };
  const double layers = m.numLayers, hidden = m.hiddenSize;
  StepBytes b;
  b.qkv = layers * bytes(MatrixKind::kQkv);
  b.attnOut = layers * bytes(MatrixKind::kAttnOut);
  b.experts = experts * (bytes(MatrixKind::kGateUp) + bytes(MatrixKind::kDown));
  b.denseMlp = layers * (bytes(MatrixKind::kDenseGateUp) +
                         bytes(MatrixKind::kDenseDown));
  double router = m.hash ? 0 : m.numExperts;
  b.vectors = sizeof(float) * hidden * (layers * (4 + router) + 1);
  b.head = bytes(MatrixKind::kHead);
  double element = m.tiedHead ? elementBytes(quantization) : 2;
  b.embedding = element * rows * hidden;
  double entry = 2.0 * m.numKvHeads * m.headDim * kvElementBytes; // K and V
  b.kv = layers * rows * context * entry; // context - 1 read, 1 written
  return b;
}

uint32_t handOversOfStep(const ModelConfig &m) {
  // The first layer's qkv waits for the choice and not for a layer before it,
  // and the head for the last layer.
  uint32_t phases = kNumPhases - 1 - (m.hash ? 1 : 0); // without head and route
  return m.numLayers * phases + 1;
}

} // namespace grok
