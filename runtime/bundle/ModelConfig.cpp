#include "runtime/bundle/ModelConfig.h"

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "runtime/bundle/JsonReader.h"
#include "runtime/bundle/ModelJson.h"
#include "runtime/bundle/Names.h"

namespace grok {
namespace {

absl::Status bad(std::string_view field, std::string_view found,
                 std::string_view expected) {
  return absl::InvalidArgumentError(
      absl::StrCat("'", std::string(field), "': found ", std::string(found),
                   ", expected ", std::string(expected)));
}

struct Range {
  const char *field;
  uint64_t value, low, high;
};

struct Real {
  const char *field;
  double value;
  enum { kAny, kNonZero, kPositive, kNonNegative, kAboveOne } kind;
};

absl::Status checkSizes(const ModelConfig &c) {
  // Bounds that keep every product below in range; the layer and expert bounds
  // are also those of a synthetic tensor's key.
  constexpr uint64_t kWide = 1 << 24;
  const Range ranges[] = {
      {"vocab_size", c.vocabSize, 1, kWide},
      {"hidden_size", c.hiddenSize, 1, kWide},
      {"num_layers", c.numLayers, 1, 65535},
      {"num_heads", c.numHeads, 1, 65535},
      {"num_kv_heads", c.numKvHeads, 1, 65535},
      {"head_dim", c.headDim, 2, 65534},
      {"num_experts", c.numExperts, 1, 65535},
      {"experts_per_token", c.expertsPerToken, 1, 65535},
      {"expert_width", c.expertWidth, 1, kWide},
      {"dense_width", c.denseWidth, 0, kWide},
      {"max_positions", c.maxPositions, 1, 0x7fffffff},
      {"attention_temperature_length", c.attentionTemperatureLength, 0,
       0x7fffffff},
  };
  for (const Range &r : ranges)
    if (r.value < r.low || r.value > r.high)
      return bad(r.field, absl::StrCat(r.value),
                 absl::StrCat(r.low, " .. ", r.high));
  if (c.headDim % 2)
    return bad("head_dim", absl::StrCat(c.headDim), "an even number");
  if (c.numHeads % c.numKvHeads)
    return bad("num_heads", absl::StrCat(c.numHeads),
               absl::StrCat("a multiple of num_kv_heads (", c.numKvHeads, ")"));
  if (c.expertsPerToken > c.numExperts)
    return bad("experts_per_token", absl::StrCat(c.expertsPerToken),
               absl::StrCat("at most num_experts (", c.numExperts, ")"));
  if (c.attentionTemperatureLength == 1)
    return bad("attention_temperature_length", "1",
               "0 (off) or at least 2: its logarithm divides");
  return absl::OkStatus();
}

/// Products that the code computes in 32 bits, and the model's bytes.
absl::Status checkProducts(const ModelConfig &c) {
  uint64_t rows =
      (uint64_t(c.numHeads) + 2 * uint64_t(c.numKvHeads)) * c.headDim;
  if (rows > 0x7fffffff)
    return bad("head_dim", absl::StrCat(c.headDim),
               absl::StrCat("(num_heads + 2 num_kv_heads) head_dim below 2^31, "
                            "not ",
                            rows));
  using Wide = unsigned __int128;
  Wide perLayer = Wide(rows + uint64_t(c.numHeads) * c.headDim) * c.hiddenSize +
                  Wide(c.numExperts) * 3 * c.expertWidth * c.hiddenSize +
                  Wide(3) * c.denseWidth * c.hiddenSize +
                  Wide(c.numExperts) * c.hiddenSize + Wide(4) * c.hiddenSize;
  Wide total = perLayer * c.numLayers + Wide(2) * c.vocabSize * c.hiddenSize;
  if (total >= Wide(1) << 56)
    return absl::InvalidArgumentError("the model's sizes together: found 2^56 "
                                      "weights or more, expected fewer");
  return absl::OkStatus();
}

absl::Status checkReals(const ModelConfig &c) {
  const Real reals[] = {
      {"embedding_multiplier", c.embeddingMultiplier, Real::kNonZero},
      {"output_multiplier", c.outputMultiplier, Real::kNonZero},
      {"attention_scale", c.attentionScale, Real::kNonZero},
      {"attention_cap", c.attentionCap, Real::kNonNegative},
      {"router_cap", c.routerCap, Real::kNonNegative},
      {"final_cap", c.finalCap, Real::kNonNegative},
      {"rope_theta", c.ropeTheta, Real::kAboveOne},
      {"norm_eps", c.normEps, Real::kPositive},
  };
  for (const Real &r : reals) {
    double size = std::fabs(r.value);
    // Written so that NaN fails; the kernels hold these in float32.
    bool fits = size <= double(std::numeric_limits<float>::max()) &&
                (size == 0 || float(size) > 0);
    if (!fits)
      return bad(r.field, absl::StrCat(r.value), "a finite float32");
    if (r.kind == Real::kNonZero && r.value == 0)
      return bad(r.field, "0", "any other number");
    if (r.kind == Real::kPositive && r.value <= 0)
      return bad(r.field, absl::StrCat(r.value), "a number above 0");
    if (r.kind == Real::kAboveOne && r.value <= 1)
      return bad(r.field, absl::StrCat(r.value), "a number above 1");
    if (r.kind == Real::kNonNegative && r.value < 0)
      return bad(r.field, absl::StrCat(r.value), "0 (off) or more");
  }
  return absl::OkStatus();
}

absl::Status checkHash(const ModelConfig &c) {
  const HashRouting &h = *c.hash;
  if (c.expertsPerToken != 1)
    return bad("experts_per_token", absl::StrCat(c.expertsPerToken),
               "1 with hash routing");
  if (c.routerCap != 0)
    return bad("router_cap", absl::StrCat(c.routerCap),
               "0 with hash routing, which has no router logits");
  if (h.numGroups == 0 || h.expertsPerGroup == 0 ||
      uint64_t(h.numGroups) * h.expertsPerGroup != c.numExperts)
    return bad(
        "num_groups",
        absl::StrCat(h.numGroups, " of ", h.expertsPerGroup, " experts"),
        absl::StrCat("groups that make up num_experts (", c.numExperts, ")"));
  if (h.hashBits < 1 || h.hashBits > 32)
    return bad("hash_bits", absl::StrCat(h.hashBits), "1 .. 32");
  if (h.indexShift > 31)
    return bad("index_shift", absl::StrCat(h.indexShift), "0 .. 31");
  if (h.indexMask >= h.expertsPerGroup)
    return bad("index_mask", absl::StrCat(h.indexMask),
               absl::StrCat("less than experts_per_group (", h.expertsPerGroup,
                            "), so that every index is an expert"));
  return absl::OkStatus();
}

absl::Status checkIds(const ModelConfig &c) {
  const std::pair<const char *, int64_t> ids[] = {
      {"bos_id", c.bosId}, {"eos_id", c.eosId}, {"pad_id", c.padId}};
  for (auto [field, id] : ids)
    if (id < -1 || id >= int64_t(c.vocabSize))
      return bad(field, absl::StrCat(id),
                 absl::StrCat("-1 (none) or an id below vocab_size (",
                              c.vocabSize, ")"));
  return absl::OkStatus();
}

HashRouting readHash(const json::Document &document, const std::string &pointer,
                     absl::Status &status) {
  HashRouting h;
  json::ObjectReader in(document, pointer);
  in.u32("num_groups", h.numGroups);
  in.u32("experts_per_group", h.expertsPerGroup);
  in.u32("token_multiplier", h.tokenMultiplier);
  in.u32("position_multiplier", h.positionMultiplier);
  in.u32("hash_bits", h.hashBits);
  in.u32("index_shift", h.indexShift);
  in.u32("index_mask", h.indexMask);
  in.u32("position_offset_mask", h.positionOffsetMask);
  status = in.finish();
  return h;
}

} // namespace

absl::Status ModelConfig::validate() const {
  if (absl::Status s = checkSizes(*this); !s.ok())
    return s;
  if (absl::Status s = checkProducts(*this); !s.ok())
    return s;
  if (absl::Status s = checkReals(*this); !s.ok())
    return s;
  if (hash)
    if (absl::Status s = checkHash(*this); !s.ok())
      return s;
  return checkIds(*this);
}

/// Member by member: what a braced list makes on its way takes memory to go
/// away (takeApart).
void writeModelConfig(const ModelConfig &c, nlohmann::json &out) {
  json::startObject(out);
  out["vocab_size"] = c.vocabSize;
  out["hidden_size"] = c.hiddenSize;
  out["num_layers"] = c.numLayers;
  out["num_heads"] = c.numHeads;
  out["num_kv_heads"] = c.numKvHeads;
  out["head_dim"] = c.headDim;
  out["num_experts"] = c.numExperts;
  out["experts_per_token"] = c.expertsPerToken;
  out["expert_width"] = c.expertWidth;
  out["dense_width"] = c.denseWidth;
  out["max_positions"] = c.maxPositions;
  out["embedding_multiplier"] = c.embeddingMultiplier;
  out["output_multiplier"] = c.outputMultiplier;
  out["attention_scale"] = c.attentionScale;
  out["attention_cap"] = c.attentionCap;
  out["router_cap"] = c.routerCap;
  out["final_cap"] = c.finalCap;
  out["rope_theta"] = c.ropeTheta;
  out["norm_eps"] = c.normEps;
  out["attention_temperature_length"] = c.attentionTemperatureLength;
  out["gelu"] = std::string(wordFor(c.gelu));
  out["tied_head"] = c.tiedHead;
  out["checkpoint_dtype"] = std::string(wordFor(c.checkpointDType));
  out["bos_id"] = c.bosId;
  out["eos_id"] = c.eosId;
  out["pad_id"] = c.padId;
  out["hash_routing"] = nullptr;
  if (!c.hash)
    return;
  nlohmann::json &hash = json::startObject(out["hash_routing"]);
  hash["num_groups"] = c.hash->numGroups;
  hash["experts_per_group"] = c.hash->expertsPerGroup;
  hash["token_multiplier"] = c.hash->tokenMultiplier;
  hash["position_multiplier"] = c.hash->positionMultiplier;
  hash["hash_bits"] = c.hash->hashBits;
  hash["index_shift"] = c.hash->indexShift;
  hash["index_mask"] = c.hash->indexMask;
  hash["position_offset_mask"] = c.hash->positionOffsetMask;
}

absl::StatusOr<ModelConfig> modelConfigFromJson(const json::Document &document,
                                                const std::string &pointer) {
  ModelConfig c;
  json::ObjectReader in(document, pointer);
  in.u32("vocab_size", c.vocabSize);
  in.u32("hidden_size", c.hiddenSize);
  in.u32("num_layers", c.numLayers);
  in.u32("num_heads", c.numHeads);
  in.u32("num_kv_heads", c.numKvHeads);
  in.u32("head_dim", c.headDim);
  in.u32("num_experts", c.numExperts);
  in.u32("experts_per_token", c.expertsPerToken);
  in.u32("expert_width", c.expertWidth);
  in.u32("dense_width", c.denseWidth);
  in.u32("max_positions", c.maxPositions);
  in.number("embedding_multiplier", c.embeddingMultiplier);
  in.number("output_multiplier", c.outputMultiplier);
  in.number("attention_scale", c.attentionScale);
  in.number("attention_cap", c.attentionCap);
  in.number("router_cap", c.routerCap);
  in.number("final_cap", c.finalCap);
  in.number("rope_theta", c.ropeTheta);
  in.number("norm_eps", c.normEps);
  in.u32("attention_temperature_length", c.attentionTemperatureLength);
  in.choice("gelu", c.gelu, geluWords());
  in.boolean("tied_head", c.tiedHead);
  in.choice("checkpoint_dtype", c.checkpointDType, dtypeWords());
  in.i64("bos_id", c.bosId);
  in.i64("eos_id", c.eosId);
  in.i64("pad_id", c.padId);
  if (const nlohmann::json *hash = in.member("hash_routing");
      hash && !hash->is_null()) {
    absl::Status status;
    c.hash = readHash(document, in.pointerTo("hash_routing"), status);
    if (!status.ok())
      return status;
  }
  if (absl::Status status = in.finish(); !status.ok())
    return status;
  if (absl::Status status = c.validate(); !status.ok())
    return absl::InvalidArgumentError(
        absl::StrCat(document.place(pointer), ": ", status.message()));
  return c;
}

std::string ModelConfig::toJson() const {
  json::Document out;
  writeModelConfig(*this, out.root);
  return out.root.dump(2) + "\n";
}

absl::StatusOr<ModelConfig> ModelConfig::fromJson(std::string_view text,
                                                  std::string_view file) {
  absl::StatusOr<json::Document> document = json::parse(text, file);
  if (!document.ok())
    return document.status();
  return modelConfigFromJson(*document, "");
}

} // namespace grok
