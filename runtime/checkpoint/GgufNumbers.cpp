#include "runtime/checkpoint/GgufNumbers.h"

#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/checkpoint/Messages.h"

namespace grok {
namespace {

constexpr std::string_view kRouterCap = "grok.router_logit_softcapping";

struct Claim {
  std::string key;
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
      {"grok.feed_forward_length",
       double(m.denseWidth ? m.denseWidth : m.expertWidth),
       "intermediate_size"},
      {"grok.expert_feed_forward_length", double(m.expertWidth),
       "moe_intermediate_size, else intermediate_size"},
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
  claims.push_back(
      {std::string(kRouterCap), m.routerCap, "router_logit_softcapping"});
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

absl::Status error(const FileSet &set, const std::string &key,
                   const std::string &found, const std::string &expected) {
  return absl::InvalidArgumentError(absl::StrCat(set.files[0].path(), ": key '",
                                                 key, "': found ", found,
                                                 ", expected ", expected));
}

/// What is stated under a key that should be a number; empty: nothing that is
/// none.
std::string otherThanNumber(const FileSet &set, const std::string &key) {
  if (auto it = set.texts.find(key); it != set.texts.end())
    return absl::StrCat("the text ", inQuotes(it->second));
  return set.lists.count(key) ? "a list" : "";
}

absl::Status checkClaim(const FileSet &set, const Claim &claim) {
  // Converters write 30 for Grok-1 too, whose router has no cap.
  constexpr double kNoCap = 30;
  const std::string expected = absl::StrCat(
      text(claim.expected), " as the config says (", claim.configKey, ")");
  if (std::string other = otherThanNumber(set, claim.key); !other.empty())
    return error(set, claim.key, other,
                 absl::StrCat("the number ", expected,
                              "; convert the checkpoint again"));
  auto it = set.numbers.find(claim.key);
  if (it == set.numbers.end() || agree(it->second, claim.expected) ||
      (claim.key == kRouterCap && claim.expected == 0 && it->second == kNoCap))
    return absl::OkStatus();
  return error(
      set, claim.key, text(it->second),
      absl::StrCat(expected, "; config and weights are of different models"));
}

/// RoPE is the config's; what converters declare for Grok-2 is YaRN.
absl::Status checkScaling(const FileSet &set) {
  constexpr const char *kType = "grok.rope.scaling.type";
  constexpr const char *kRemedy = "; such positions are not computed here";
  auto type = set.texts.find(kType);
  bool named = type != set.texts.end();
  if (set.numbers.count(kType) || set.lists.count(kType))
    return error(set, kType, "no text",
                 "'none' or 'yarn'; convert the checkpoint again");
  if (named && type->second == "yarn")
    return absl::OkStatus();
  for (const char *key :
       {"grok.rope.scaling.factor", "grok.rope.scale_linear"}) {
    if (std::string other = otherThanNumber(set, key); !other.empty())
      return error(set, key, other,
                   "the number 1; convert the checkpoint again");
    // Readers know factors of 0 and 1 as none.
    if (auto it = set.numbers.find(key);
        it != set.numbers.end() && it->second != 0 && it->second != 1)
      return error(set, key, text(it->second),
                   absl::StrCat("1, as scaling is not YaRN", kRemedy));
  }
  if (named && type->second != "none" && type->second != "linear")
    return error(set, kType, inQuotes(type->second),
                 absl::StrCat("'none' or 'yarn'", kRemedy));
  return absl::OkStatus();
}

} // namespace

absl::Status checkNumbers(const FileSet &set, const ModelConfig &model) {
  if (set.files.empty())
    return absl::OkStatus();
  for (const Claim &claim : claimsOf(model))
    if (absl::Status status = checkClaim(set, claim); !status.ok())
      return status;
  return checkScaling(set);
}

} // namespace grok
