#include "runtime/checkpoint/GgufNumbers.h"

#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace grok {
namespace {

struct Claim {
  const char *key;
  double expected;
  const char *configKey;
};

std::vector<Claim> claimsOf(const ModelConfig &m) {
  std::vector<Claim> claims = {
      {"grok.embedding_length", double(m.hiddenSize), "hidden_size"},
      {"grok.block_count", double(m.numLayers), "num_hidden_layers"},
      {"grok.attention.head_count", double(m.numHeads), "num_attention_heads"},
      {"grok.attention.head_count_kv", double(m.numKvHeads),
       "num_key_value_heads"},
      {"grok.attention.key_length", double(m.headDim), "head_dim"},
      {"grok.attention.value_length", double(m.headDim), "head_dim"},
      {"grok.attention.layer_norm_rms_epsilon", m.normEps, "rms_norm_eps"},
      {"grok.rope.freq_base", m.ropeTheta, "rope_theta"},
      {"grok.rope.dimension_count", double(m.headDim), "head_dim"},
      {"grok.expert_count", double(m.numExperts), "num_experts"},
      {"grok.embedding_scale", m.embeddingMultiplier,
       "embedding_multiplier_scale"},
      {"grok.logit_scale", m.outputMultiplier, "output_multiplier_scale"},
      {"grok.attention.output_scale", m.attentionScale,
       "attn_output_multiplier"},
      {"grok.attn_logit_softcapping", m.attentionCap, "attn_logit_softcapping"},
      {"grok.final_logit_softcapping", m.finalCap, "final_logit_softcapping"},
      {"grok.attention.temperature_length",
       double(m.attentionTemperatureLength), "attn_temperature_len"},
  };
  if (!m.hash)
    claims.push_back({"grok.expert_used_count", double(m.expertsPerToken),
                      "num_experts_per_tok"});
  // Converters write 30 for Grok-1 too, whose router has no cap: no claim.
  if (m.routerCap > 0)
    claims.push_back({"grok.router_logit_softcapping", m.routerCap,
                      "router_logit_softcapping"});
  return claims;
}

/// Files hold float32.
bool agree(double a, double b) {
  return std::fabs(a - b) <= 1e-6 * std::fmax(std::fabs(a), std::fabs(b));
}

std::string text(double value) {
  return value == std::floor(value) ? absl::StrFormat("%.0f", value)
                                    : absl::StrCat(value);
}

} // namespace

absl::Status checkNumbers(const FileSet &set, const ModelConfig &model) {
  for (const Claim &claim : claimsOf(model)) {
    auto it = set.numbers.find(claim.key);
    if (it != set.numbers.end() && !agree(it->second, claim.expected))
      return absl::InvalidArgumentError(
          absl::StrCat(set.files[0].path(), ": key '", claim.key, "': found ",
                       text(it->second), ", expected ", text(claim.expected),
                       " as the config says (", claim.configKey,
                       "); config and weights are of different models"));
  }
  return absl::OkStatus();
}

} // namespace grok
