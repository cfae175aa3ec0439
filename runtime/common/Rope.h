// The rotation angles of RoPE.
#pragma once

#include <vector>

#include "runtime/bundle/ModelConfig.h"

namespace grok {

/// [position][headDim / 2] {cos, sin} of position * theta^(-2 j / headDim),
/// computed in double and rounded once.
std::vector<float> ropeTable(const ModelConfig &model, uint32_t positions);

} // namespace grok
