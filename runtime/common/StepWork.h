// What a decode step cannot do without, whoever runs it: the bytes that it
// reads and writes, and the times that slots wait for each other.
#pragma once

#include "runtime/bundle/ModelConfig.h"
#include "runtime/bundle/Quantized.h"

namespace grok {

/// Bytes of a step by what they belong to: logical elements times their size,
/// without any padding. Doubles, as experts may be a mean over steps.
struct StepBytes {
  double qkv = 0, attnOut = 0;
  double experts = 0; // the distinct ones that some row uses
  double denseMlp = 0;
  double vectors = 0; // norms and a learned router, float32
  double head = 0;
  double embedding = 0; // a row of the table a row of the batch
  double kv = 0;        // entries of the earlier positions, and the new ones
  double total() const {
    return qkv + attnOut + experts + denseMlp + vectors + head + embedding + kv;
  }
};

/// `experts`: distinct experts of the step, summed over the layers.
StepBytes stepBytes(const ModelConfig &model, uint32_t rows, uint32_t context,
                    double experts, Quantization quantization,
                    uint32_t kvElementBytes);

/// Hand-overs that a step waits for one after the other: one a phase of every
/// layer, and the choice of the tokens.
uint32_t handOversOfStep(const ModelConfig &model);

} // namespace grok
