// The canonical description of a model: what every spelling of a config.json is
// reduced to, and what a bundle's model.json holds. Shapes and constants only;
// nothing of a machine.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace grok {

/// How the expert MLPs' GELU is computed.
enum class Gelu { kTanh, kErf };

/// Storage type of weights (and of single-precision activations and KV
/// entries).
enum class DType { kF16, kBF16 };

/// Expert routing by token id and absolute position alone:
///   h     = (id * token_multiplier + pos * position_multiplier) mod 2^32, low
///   hash_bits bits group = h mod num_groups index = ((h >> index_shift) + (pos
///   & position_offset_mask)) & index_mask expert = group * experts_per_group +
///   index
struct HashRouting {
  uint32_t numGroups = 0;
  uint32_t expertsPerGroup = 0;
  uint32_t tokenMultiplier = 0;
  uint32_t positionMultiplier = 0;
  uint32_t hashBits = 0;
  uint32_t indexShift = 0;
  uint32_t indexMask = 0;
  uint32_t positionOffsetMask = 0;

  /// The low hashBits bits of the hash.
  uint32_t hash(uint32_t tokenId, uint32_t position) const {
    uint32_t h = tokenId * tokenMultiplier + position * positionMultiplier;
    return hashBits >= 32 ? h : h & ((1u << hashBits) - 1);
  }
  uint32_t groupOf(uint32_t h) const { return h % numGroups; }
  uint32_t expertOf(uint32_t h, uint32_t position) const {
    uint32_t index =
        ((h >> indexShift) + (position & positionOffsetMask)) & indexMask;
    return groupOf(h) * expertsPerGroup + index;
  }
  bool operator==(const HashRouting &) const = default;
};

struct ModelConfig {
  uint32_t vocabSize = 0;       // V
  uint32_t hiddenSize = 0;      // D
  uint32_t numLayers = 0;       // L
  uint32_t numHeads = 0;        // H
  uint32_t numKvHeads = 0;      // K, divides H
  uint32_t headDim = 0;         // dh, even
  uint32_t numExperts = 0;      // E
  uint32_t expertsPerToken = 0; // k; 1 for hash routing
  uint32_t expertWidth = 0;     // F
  uint32_t denseWidth = 0;      // Fd; 0: no residual dense MLP (Grok-1)
  uint32_t maxPositions = 0;    // context length of the checkpoint
  double embeddingMultiplier = 1;
  double outputMultiplier = 1;
  double attentionScale = 1; // multiplies q.k before the soft-cap
  double attentionCap = 0;   // 0: off
  double routerCap = 0;      // 0: off
  double finalCap = 0;       // 0: off
  double ropeTheta = 10000;
  double normEps = 1e-5;
  uint32_t attentionTemperatureLength = 0; // 0: off
  Gelu gelu = Gelu::kTanh;
  bool tiedHead = true;
  DType checkpointDType = DType::kBF16; // torch_dtype; what --dtype defaults to
  std::optional<HashRouting> hash;      // absent: learned top-k router
  int64_t bosId = -1, eosId = -1, padId = -1; // -1: none

  /// Positions of a row where none are asked for, and at most.
  uint32_t defaultMaxSeq() const { return std::min(maxPositions, 8192u); }
  uint32_t qkvRows() const { return (numHeads + 2 * numKvHeads) * headDim; }
  bool operator==(const ModelConfig &) const = default;

  /// Canonical JSON (keys sorted, shortest exact doubles): the same config
  /// gives the same bytes.
  std::string toJson() const;
  /// Reads what toJson wrote; every key must be there and valid. `file` names
  /// the source in errors.
  static absl::StatusOr<ModelConfig> fromJson(std::string_view text,
                                              std::string_view file);
  /// Checks ranges, divisibility and overflow of products; the error names the
  /// field. Used by fromJson and by the config reader.
  absl::Status validate() const;
};

} // namespace grok
