#include "runtime/common/Rope.h"

#include <cmath>

namespace grok {

std::vector<float> ropeTable(const ModelConfig &model, uint32_t positions) {
  uint32_t half = model.headDim / 2;
  std::vector<float> table(uint64_t(positions) * half * 2);
  for (uint32_t j = 0; j < half; ++j) {
    double frequency = std::pow(model.ropeTheta, -2.0 * j / model.headDim);
    for (uint32_t position = 0; position < positions; ++position) {
      float *entry = table.data() + (uint64_t(position) * half + j) * 2;
      entry[0] = float(std::cos(position * frequency));
      entry[1] = float(std::sin(position * frequency));
    }
  }
  return table;
}

} // namespace grok
