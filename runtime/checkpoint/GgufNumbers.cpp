#include "runtime/checkpoint/GgufNumbers.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "runtime/checkpoint/Messages.h"

namespace grok {
namespace {

constexpr std::string_view kPrefix = "grok.";
constexpr std::string_view kScaling = "grok.rope.scaling.";
constexpr std::string_view kRouterCap = "grok.router_logit_softcapping";
constexpr const char *kContext = "grok.context_length";
constexpr const char *kLinearScaling = "grok.rope.scale_linear";

struct Claim {
  std::string key;
  double expected;
  const char *configKey;
};

std::vector<Claim> claimsOf(const ModelConfig &m) {
  std::vector<Claim> claims = {
      {"grok.vocab_size", double(m.vocabSize), "vocab_size"},
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

/// Keys of other models in this format, and the values that say that this is
/// none of them.
struct Foreign {
  const char *key;
  double none, alsoNone;
};
constexpr Foreign kForeign[] = {
    {"grok.attention.sliding_window", 0, 0},
    {"grok.attention.causal", 1, 1},
    {"grok.attention.clamp_kqv", 0, 0},
    {"grok.attention.max_alibi_bias", 0, 0},
    {"grok.expert_gating_func", 1, 0}, // softmax
    {"grok.expert_group_count", 1, 0},
    {"grok.expert_shared_count", 0, 0},
    {"grok.expert_weights_scale", 1, 0},
    {"grok.interleave_moe_layer_step", 1, 0},
    {"grok.leading_dense_block_count", 0, 0},
    {"grok.residual_scale", 1, 0},
    {"grok.use_parallel_residual", 0, 0},
};

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

absl::Status checkForeign(const FileSet &set, const Foreign &foreign) {
  constexpr const char *kRemedy = "; such a model is not computed here";
  std::string expected = absl::StrCat("the number ", text(foreign.none));
  if (std::string other = otherThanNumber(set, foreign.key); !other.empty())
    return error(set, foreign.key, other, absl::StrCat(expected, kRemedy));
  auto it = set.numbers.find(foreign.key);
  if (it == set.numbers.end() || it->second == foreign.none ||
      it->second == foreign.alsoNone)
    return absl::OkStatus();
  return error(set, foreign.key, text(it->second),
               absl::StrCat(expected, kRemedy));
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
  for (const char *key : {"grok.rope.scaling.factor", kLinearScaling}) {
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

/// Keys that may say something of the model, in quotes, without those that are
/// looked at, and without RoPE's.
Listing unknownKeys(const FileSet &set, const ModelConfig &model) {
  std::set<std::string> known = {kContext, kLinearScaling,
                                 "grok.expert_used_count",
                                 "grok.tensor_data_layout"};
  for (const Claim &claim : claimsOf(model))
    known.insert(claim.key);
  for (const Foreign &foreign : kForeign)
    known.insert(foreign.key);
  Listing out;
  auto add = [&](const std::string &key) {
    if (key.starts_with(kPrefix) && !key.starts_with(kScaling) &&
        !known.count(key))
      out.add(inQuotes(key));
  };
  for (const auto &[key, value] : set.numbers)
    add(key);
  for (const auto &[key, value] : set.texts)
    add(key);
  std::ranges::for_each(set.lists, add);
  return out;
}

} // namespace

absl::Status checkNumbers(const FileSet &set, const ModelConfig &model) {
  if (set.files.empty())
    return absl::OkStatus();
  for (const Claim &claim : claimsOf(model))
    if (absl::Status status = checkClaim(set, claim); !status.ok())
      return status;
  for (const Foreign &foreign : kForeign)
    if (absl::Status status = checkForeign(set, foreign); !status.ok())
      return status;
  return checkScaling(set);
}

void noteNumbers(FileSet &set, const ModelConfig &model) {
  if (auto it = set.numbers.find(kContext);
      it != set.numbers.end() && it->second < model.maxPositions)
    set.notes.push_back(absl::StrCat(
        set.files[0].path(), ": key '", kContext, "': found ", text(it->second),
        ", expected at least the config's ", model.maxPositions,
        " (context_len, else max_position_embeddings): later positions may be "
        "of no use"));
  const Listing unknown = unknownKeys(set, model);
  if (unknown.count == 0)
    return;
  const uint64_t more = unknown.count - unknown.first.size();
  set.notes.push_back(absl::StrCat(
      set.files[0].path(), ": found unknown keys ",
      absl::StrJoin(unknown.first, ", "),
      more ? absl::StrCat(" and ", more, " more") : "",
      ", which are ignored: what they say of the model is not computed"));
}

} // namespace grok
