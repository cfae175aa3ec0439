// TileLayout.h for a ModelConfig: matrix shapes, and the checkpoint row behind
// each matrix row.
#pragma once

#include <cstdint>

#include "runtime/bundle/ModelConfig.h"
#include "runtime/bundle/TileLayout.h"

namespace grok {

struct MatrixShape {
  uint32_t rows, k; // logical, unpadded
};

/// Unpadded shape of a streamed matrix.
constexpr MatrixShape matrixShape(const ModelConfig &m, MatrixKind kind) {
  switch (kind) {
  case MatrixKind::kQkv:
    return {m.qkvRows(), m.hiddenSize};
  case MatrixKind::kAttnOut:
    return {m.hiddenSize, m.numHeads * m.headDim};
  case MatrixKind::kGateUp:
    return {2 * m.expertWidth, m.hiddenSize};
  case MatrixKind::kDenseGateUp:
    return {2 * m.denseWidth, m.hiddenSize};
  case MatrixKind::kDown:
    return {m.hiddenSize, m.expertWidth};
  case MatrixKind::kDenseDown:
    return {m.hiddenSize, m.denseWidth};
  case MatrixKind::kHead:
    return {m.vocabSize, m.hiddenSize};
  }
  return {0, 0};
}

constexpr TensorRow matrixRow(const ModelConfig &m, MatrixKind kind,
                              uint32_t row) {
  return matrixRow(m.numHeads, m.numKvHeads, m.headDim, kind, row);
}

} // namespace grok
