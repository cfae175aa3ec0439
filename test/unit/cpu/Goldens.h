// The reference results beside a test model: golden.safetensors (see
// test/models/README.md).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace grok::test {

/// One sequence of ids and the reference logits of some of its positions.
struct Golden {
  std::vector<int32_t> ids;
  uint32_t stride = 1;       // logits of positions 0, stride, 2 * stride, ...
  std::vector<float> logits; // [positions, vocab]
};

/// Reads every sequence of DIRECTORY/golden.safetensors; a failed test and
/// nothing if it cannot be read.
std::vector<Golden> readGoldens(const std::string &directory);

/// The directory of test models, from GROK_TEST_MODELS.
std::string modelsDirectory();

} // namespace grok::test
