// The public spellings of the model's tensors.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "runtime/bundle/TensorSource.h"

namespace grok {

enum class Spelling {
  kAttn,        // model.layers.N.attn, .moe_block (Grok-1)
  kTransformer, // transformer.decoder_layer.N.multi_head_attention (Grok-1)
  kSelfAttn,    // model.layers.N.self_attn, .block_sparse_moe (Grok-1, Grok-2)
  kGguf,        // blk.N.attn_q (GGUF)
  kJax,         // transformer/decoder_layer_N/... (xAI's ckpt-0)
};
inline constexpr size_t kSpellings = 5;
/// The spelling by an example, for messages.
std::string_view spellingExample(Spelling spelling);

/// The stored name; empty where the spelling has none (a dense MLP exists only
/// in kSelfAttn and kGguf). Where isStacked, one tensor of three dimensions has
/// that of all experts.
std::string storedName(Spelling spelling, const TensorId &id);
/// The tensor whose storedName this is; none if there is none.
std::optional<TensorId> storedId(Spelling spelling, std::string_view name);

bool isStacked(Spelling spelling, TensorKind kind);

/// The spelling of a stored name; none if it could be of several or of none.
std::optional<Spelling> spellingOf(std::string_view name);

/// Buffers that exporters leave among the weights and that carry none.
bool isIgnoredTensor(std::string_view name);

/// The dimension along which a tensor-parallel set cuts a tensor; none if it
/// must be whole.
std::optional<unsigned> splitDimension(std::string_view name);

/// Every tensor of the model, in the order of the layers, until `visit` returns
/// an error. The head is visited for tied models too.
absl::Status
forEachTensor(const ModelConfig &model,
              const std::function<absl::Status(const TensorId &)> &visit);
/// How many that are, and whether one is among them.
uint64_t countTensors(const ModelConfig &model);
bool hasTensor(const ModelConfig &model, const TensorId &id);

} // namespace grok
