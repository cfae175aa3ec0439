#include "runtime/checkpoint/TensorNames.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <span>

#include "absl/strings/str_cat.h"

namespace grok {
namespace {

/// What follows the layer's prefix, or the expert's. Null: not in the spelling.
struct Row {
  TensorKind kind;
  std::array<const char *, kSpellings> names;
};
constexpr Row kRows[] = {
    {TensorKind::kTokenEmbedding,
     {"model.embed_tokens.weight", "transformer.in_out_embed.weight",
      "model.embed_tokens.weight", "token_embd.weight",
      "language_model/in_out_embed/embeddings"}},
    {TensorKind::kHead,
     {"lm_head.weight", "lm_head.weight", "lm_head.weight", "output.weight",
      nullptr}},
    {TensorKind::kFinalNorm,
     {"model.norm.scale", "transformer.rms_norm.weight", "model.norm.weight",
      "output_norm.weight", "language_model/rms_norm/scale"}},
    {TensorKind::kPreAttnNorm,
     {"pre_attn_norm.scale", "rms_norm.weight", "pre_attn_norm.weight",
      "attn_norm.weight", "rms_norm/scale"}},
    {TensorKind::kPostAttnNorm,
     {"post_attn_norm.scale", "rms_norm_1.weight", "post_attn_norm.weight",
      "attn_output_norm.weight", "rms_norm_1/scale"}},
    {TensorKind::kPreMoeNorm,
     {"pre_moe_norm.scale", "rms_norm_2.weight", "pre_moe_norm.weight",
      "ffn_norm.weight", "rms_norm_2/scale"}},
    {TensorKind::kPostMoeNorm,
     {"post_moe_norm.scale", "rms_norm_3.weight", "post_moe_norm.weight",
      "post_ffw_norm.weight", "rms_norm_3/scale"}},
    {TensorKind::kQuery,
     {"attn.q_proj.weight", "multi_head_attention.query.weight",
      "self_attn.q_proj.weight", "attn_q.weight",
      "multi_head_attention/query/w"}},
    {TensorKind::kKey,
     {"attn.k_proj.weight", "multi_head_attention.key.weight",
      "self_attn.k_proj.weight", "attn_k.weight",
      "multi_head_attention/key/w"}},
    {TensorKind::kValue,
     {"attn.v_proj.weight", "multi_head_attention.value.weight",
      "self_attn.v_proj.weight", "attn_v.weight",
      "multi_head_attention/value/w"}},
    {TensorKind::kAttnOut,
     {"attn.o_proj.weight", "multi_head_attention.linear.weight",
      "self_attn.o_proj.weight", "attn_output.weight",
      "multi_head_attention/linear/w"}},
    {TensorKind::kRouter,
     {"moe_block.gate.weight", "router.weight", "block_sparse_moe.gate.weight",
      "ffn_gate_inp.weight", "router/w"}},
    {TensorKind::kExpertGate,
     {"linear.weight", "linear.weight", "w1.weight", "ffn_gate_exps.weight",
      "moe/linear/w"}},
    {TensorKind::kExpertUp,
     {"linear_v.weight", "linear_v.weight", "w3.weight", "ffn_up_exps.weight",
      "moe/linear_v/w"}},
    {TensorKind::kExpertDown,
     {"linear_1.weight", "linear_1.weight", "w2.weight", "ffn_down_exps.weight",
      "moe/linear_1/w"}},
    {TensorKind::kDenseGate,
     {nullptr, nullptr, "mlp.gate_proj.weight", "ffn_gate.weight", nullptr}},
    {TensorKind::kDenseUp,
     {nullptr, nullptr, "mlp.up_proj.weight", "ffn_up.weight", nullptr}},
    {TensorKind::kDenseDown,
     {nullptr, nullptr, "mlp.down_proj.weight", "ffn_down.weight", nullptr}},
};

const char *suffix(Spelling spelling, TensorKind kind) {
  for (const Row &row : kRows)
    if (row.kind == kind)
      return row.names[size_t(spelling)];
  return nullptr;
}

constexpr std::array<const char *, kSpellings> kLayerPrefix = {
    "model.layers.", "transformer.decoder_layer.", "model.layers.", "blk.",
    "transformer/decoder_layer_"};
/// Between a layer's number and what follows.
constexpr std::array<const char *, kSpellings> kAfterLayer = {".", ".", ".",
                                                              ".", "/"};
/// Null: one tensor holds all experts.
constexpr std::array<const char *, kSpellings> kExpertPrefix = {
    "moe_block.experts.", "moe.", "block_sparse_moe.experts.", nullptr,
    nullptr};

bool isExpertKind(TensorKind kind) {
  return kind == TensorKind::kExpertGate || kind == TensorKind::kExpertUp ||
         kind == TensorKind::kExpertDown;
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != text.npos;
}

/// Takes `prefix` and the number after it off the front; 0 if they aren't
/// there.
uint32_t takeNumber(std::string_view &text, std::string_view prefix) {
  uint32_t number = 0;
  if (text.starts_with(prefix)) {
    text.remove_prefix(prefix.size());
    const char *end = text.data() + text.size();
    text.remove_prefix(
        size_t(std::from_chars(text.data(), end, number).ptr - text.data()));
  }
  return number;
}

/// What a model has one of; each layer; each expert of each layer; and each
/// layer after its experts.
constexpr TensorKind kOfModel[] = {TensorKind::kTokenEmbedding,
                                   TensorKind::kHead, TensorKind::kFinalNorm};
constexpr TensorKind kOfLayer[] = {
    TensorKind::kPreAttnNorm, TensorKind::kPostAttnNorm,
    TensorKind::kPreMoeNorm,  TensorKind::kPostMoeNorm,
    TensorKind::kQuery,       TensorKind::kKey,
    TensorKind::kValue,       TensorKind::kAttnOut,
    TensorKind::kRouter}; // the last one with a learned router only
constexpr TensorKind kOfExpert[] = {
    TensorKind::kExpertGate, TensorKind::kExpertUp, TensorKind::kExpertDown};
constexpr TensorKind kOfDense[] = {TensorKind::kDenseGate, TensorKind::kDenseUp,
                                   TensorKind::kDenseDown};

struct Kinds {
  explicit Kinds(const ModelConfig &model)
      : ofLayer(kOfLayer, std::size(kOfLayer) - (model.hash ? 1 : 0)),
        afterExperts(kOfDense, model.denseWidth ? std::size(kOfDense) : 0) {}
  std::span<const TensorKind> ofModel = kOfModel, ofLayer, ofExpert = kOfExpert,
                              afterExperts;
};

} // namespace

std::string_view spellingExample(Spelling spelling) {
  switch (spelling) {
  case Spelling::kAttn:
    return "model.layers.N.attn.q_proj.weight";
  case Spelling::kTransformer:
    return "transformer.decoder_layer.N.multi_head_attention.query.weight";
  case Spelling::kSelfAttn:
    return "model.layers.N.self_attn.q_proj.weight";
  case Spelling::kGguf:
    return "blk.N.attn_q.weight";
  case Spelling::kJax:
    return "transformer/decoder_layer_N/multi_head_attention/query/w";
  }
  return "";
}

std::string storedName(Spelling spelling, const TensorId &id) {
  const char *tail = suffix(spelling, id.kind);
  if (!tail)
    return "";
  if (id.kind == TensorKind::kTokenEmbedding || id.kind == TensorKind::kHead ||
      id.kind == TensorKind::kFinalNorm)
    return tail;
  size_t s = size_t(spelling);
  std::string layer = absl::StrCat(kLayerPrefix[s], id.layer, kAfterLayer[s]);
  if (isExpertKind(id.kind) && !isStacked(spelling, id.kind))
    return absl::StrCat(layer, kExpertPrefix[s], id.expert, ".", tail);
  return absl::StrCat(layer, tail);
}

std::optional<TensorId> storedId(Spelling spelling, std::string_view name) {
  size_t s = size_t(spelling);
  std::string_view rest = name;
  TensorId id;
  id.layer = takeNumber(rest, kLayerPrefix[s]);
  if (rest.starts_with(kAfterLayer[s]) && kExpertPrefix[s]) {
    rest.remove_prefix(std::string_view(kAfterLayer[s]).size());
    id.expert = takeNumber(rest, kExpertPrefix[s]);
  }
  for (const Row &row : kRows) {
    id.kind = row.kind;
    if (row.names[s] && name.ends_with(row.names[s]) &&
        storedName(spelling, id) == name)
      return id;
  }
  return std::nullopt;
}

bool isStacked(Spelling spelling, TensorKind kind) {
  return isExpertKind(kind) && !kExpertPrefix[size_t(spelling)];
}

std::optional<Spelling> spellingOf(std::string_view name) {
  if (isIgnoredTensor(name))
    return std::nullopt;
  if (name.starts_with("transformer."))
    return Spelling::kTransformer;
  if (name.starts_with("transformer/"))
    return Spelling::kJax;
  if (name.starts_with("blk."))
    return Spelling::kGguf;
  if (!name.starts_with("model."))
    return std::nullopt;
  if (contains(name, ".self_attn.") || contains(name, ".block_sparse_moe.") ||
      contains(name, "_norm.weight"))
    return Spelling::kSelfAttn;
  if (contains(name, ".attn.") || contains(name, ".moe_block.") ||
      contains(name, "_norm.scale"))
    return Spelling::kAttn;
  return std::nullopt;
}

bool isIgnoredTensor(std::string_view name) {
  return name.ends_with("rotary_emb.inv_freq");
}

std::optional<unsigned> splitDimension(std::string_view name) {
  if (!contains(name, ".block_sparse_moe.experts."))
    return std::nullopt;
  if (name.ends_with(".w1.weight") || name.ends_with(".w3.weight"))
    return 0;
  if (name.ends_with(".w2.weight"))
    return 1;
  return std::nullopt;
}

absl::Status
forEachTensor(const ModelConfig &model,
              const std::function<absl::Status(const TensorId &)> &visit) {
  const Kinds kinds(model);
  absl::Status status;
  auto all = [&](std::span<const TensorKind> of, uint32_t layer,
                 uint32_t expert) {
    for (TensorKind kind : of)
      if (status.ok())
        status = visit({kind, layer, expert});
  };
  all(kinds.ofModel, 0, 0);
  for (uint32_t layer = 0; layer < model.numLayers && status.ok(); ++layer) {
    all(kinds.ofLayer, layer, 0);
    for (uint32_t expert = 0; expert < model.numExperts && status.ok();
         ++expert)
      all(kinds.ofExpert, layer, expert);
    all(kinds.afterExperts, layer, 0);
  }
  return status;
}

uint64_t countTensors(const ModelConfig &model) {
  const Kinds kinds(model);
  return kinds.ofModel.size() +
         model.numLayers *
             (kinds.ofLayer.size() + model.numExperts * kinds.ofExpert.size() +
              kinds.afterExperts.size());
}

bool hasTensor(const ModelConfig &model, const TensorId &id) {
  const Kinds kinds(model);
  auto in = [&](std::span<const TensorKind> of) {
    return std::ranges::find(of, id.kind) != of.end();
  };
  return in(kinds.ofModel) ||
         (id.layer < model.numLayers &&
          (in(kinds.ofLayer) || in(kinds.afterExperts) ||
           (in(kinds.ofExpert) && id.expert < model.numExperts)));
}

} // namespace grok
