#include "compiler/Config/Config.h"

#include <cmath>
#include <filesystem>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/Config/HashRouting.h"
#include "compiler/Config/Reader.h"
#include "runtime/bundle/InputFile.h"
#include "runtime/bundle/JsonReader.h"

namespace grok {
namespace {

// Grok-1's values of what a config may leave out (its code had them as
// constants). Classes that load these configs elsewhere have other defaults,
// which are wrong for the released weights.
constexpr int64_t kDefaultPositions = 8192;
constexpr double kDefaultCap = 30, kDefaultTheta = 10000, kDefaultEps = 1e-5;

constexpr int64_t kWidth = 1 << 24, kCount = 65535, kInt32 = 0x7fffffff;

class ModelReader {
public:
  explicit ModelReader(const json::Document &document)
      : document_(document), in_(document, "") {}

  absl::StatusOr<ModelConfig> read(std::optional<Gelu> gelu) {
    readIdentity();
    readShape();
    readExperts();
    readConstants();
    readCaps();
    readRope();
    readHead();
    readActivation(gelu);
    readIds();
    readFixed();
    ignoreRest();
    checkProduct();
    if (absl::Status status = in_.finish(); !status.ok())
      return status;
    if (absl::Status status = m_.validate(); !status.ok())
      return absl::Status(status.code(),
                          absl::StrCat(document_.file, ": ", status.message()));
    return m_;
  }

private:
  /// A key whose string must be one of a few; nothing is read from it.
  void oneOf(const std::string &value,
             std::initializer_list<const char *> known) {
    for (const char *k : known)
      if (value == k)
        return;
    in_.fail(in_.foundKey(), json::shown(value),
             absl::StrCat("\"", absl::StrJoin(known, "\" or \""), "\""));
  }

  void readIdentity() {
    if (auto type = in_.string({"model_type"}))
      oneOf(*type, {"grok-1", "grok", "git", "grok-2"});
    const nlohmann::json *list = in_.find({"architectures"});
    if (!list)
      return;
    if (!list->is_array() || list->size() != 1 || !list->front().is_string())
      return in_.fail("architectures", json::shown(*list),
                      "a list of one class name");
    oneOf(list->front().get<std::string>(),
          {"Grok1ModelForCausalLM", "GrokForCausalLM", "Grok1ForCausalLM"});
  }

  void readShape() {
    m_.vocabSize =
        in_.requireInteger({"vocab_size"}, 1, kWidth, "the vocabulary's size");
    m_.hiddenSize =
        in_.requireInteger({"hidden_size"}, 1, kWidth, "the hidden width");
    m_.numLayers = in_.requireInteger({"num_hidden_layers"}, 1, kCount,
                                      "the number of layers");
    m_.numHeads = in_.requireInteger({"num_attention_heads"}, 1, kCount,
                                     "the number of query heads");
    m_.numKvHeads = in_.requireInteger({"num_key_value_heads"}, 1, kCount,
                                       "the number of kv heads");
    if (in_.ok() && m_.numHeads % m_.numKvHeads)
      in_.fail(
          "num_key_value_heads", absl::StrCat(m_.numKvHeads),
          absl::StrCat("a divisor of num_attention_heads (", m_.numHeads, ")"));
    readHeadDim();
    // SGLang prefers context_len, so a config that has both means it.
    auto positions = in_.integer({"max_position_embeddings"}, 1, kInt32);
    auto context = in_.integer({"context_len"}, 1, kInt32);
    m_.maxPositions =
        uint32_t(context ? *context : positions.value_or(kDefaultPositions));
  }

  void readHeadDim() {
    auto dim = in_.integer({"head_dim", "key_size"}, 2, kCount);
    std::string key = in_.foundKey();
    if (!in_.ok())
      return;
    if (!dim && m_.hiddenSize % m_.numHeads)
      return in_.fail("num_attention_heads", absl::StrCat(m_.numHeads),
                      absl::StrCat("a divisor of hidden_size (", m_.hiddenSize,
                                   "), or the key head_dim"));
    m_.headDim = uint32_t(dim.value_or(m_.hiddenSize / m_.numHeads));
    if (m_.headDim == 0 || m_.headDim % 2)
      in_.fail(dim ? key : "num_attention_heads",
               absl::StrCat(dim ? "" : "a head dimension of ", m_.headDim),
               "an even head dimension, since RoPE turns pairs");
  }

  void readExperts() {
    m_.numExperts = in_.requireInteger({"num_experts", "num_local_experts"}, 1,
                                       kCount, "the number of experts");
    m_.expertsPerToken =
        in_.requireInteger({"num_experts_per_tok", "num_selected_experts"}, 1,
                           kCount, "the number of experts of a token");
    std::string perToken = in_.foundKey();
    if (in_.ok() && m_.expertsPerToken > m_.numExperts)
      in_.fail(perToken, absl::StrCat(m_.expertsPerToken),
               absl::StrCat("at most the number of experts, ", m_.numExperts));
    readWidths();
    if (!in_.find({"expert_routing"}) || !in_.ok())
      return;
    absl::StatusOr<HashRouting> hash =
        readHashRouting(document_, m_.numExperts);
    if (!hash.ok())
      return in_.fail(hash.status());
    m_.hash = *hash;
    if (m_.expertsPerToken != 1)
      in_.fail(perToken, absl::StrCat(m_.expertsPerToken),
               "1, since hash routing names one expert");
  }

  void readWidths() {
    bool explicitResidual = in_.has("residual_moe");
    residual_ = in_.boolean({"residual_moe"}).value_or(false);
    auto moe = in_.integer({"moe_intermediate_size"}, 1, kWidth);
    auto width = in_.integer({"intermediate_size"}, 1, kWidth);
    if (!in_.ok())
      return;
    if (!width && (residual_ || !moe))
      return in_.fail("intermediate_size", "no such key",
                      residual_ ? "the dense MLP's width; add it"
                                : "the experts' width; add it");
    if (!residual_ && !explicitResidual && moe && width && *moe != *width)
      return in_.fail("intermediate_size", absl::StrCat(*width),
                      absl::StrCat("moe_intermediate_size (", *moe,
                                   "), since there is no residual_moe: a dense "
                                   "MLP of this width would be left out; add "
                                   "residual_moe, true or false"));
    m_.expertWidth = uint32_t(moe ? *moe : *width);
    m_.denseWidth = residual_ ? uint32_t(*width) : 0;
  }

  /// A number that the kernels hold in float32: finite there, and not zero.
  double factor(double value) {
    double size = std::fabs(value);
    if (in_.ok() &&
        !(size <= double(std::numeric_limits<float>::max()) && float(size) > 0))
      in_.fail(in_.foundKey(), absl::StrCat(value),
               "a number that is finite and not zero in float32");
    return value;
  }

  void readConstants() {
    m_.embeddingMultiplier = factor(in_.requireNumber(
        {"embedding_multiplier_scale"},
        "the factor of embeddings (78.38367176906169 for Grok-1)"));
    m_.outputMultiplier = factor(in_.requireNumber(
        {"output_multiplier_scale"},
        "the factor of logits (0.5773502691896257 for Grok-1)"));
    if (auto scale = in_.number({"attn_output_multiplier"}))
      m_.attentionScale = factor(*scale);
    else if (in_.ok())
      m_.attentionScale = 1 / std::sqrt(double(m_.headDim));
    m_.normEps = in_.number({"rms_norm_eps"}).value_or(kDefaultEps);
    if (in_.ok() &&
        !(m_.normEps > 0 && m_.normEps < 1 && float(m_.normEps) > 0))
      in_.fail("rms_norm_eps", absl::StrCat(m_.normEps),
               "a number between 0 and 1");
    if (auto dtype = in_.string({"torch_dtype", "dtype"}))
      readDType(*dtype);
  }

  void readDType(const std::string &word) {
    if (word == "bfloat16" || word == "torch.bfloat16")
      m_.checkpointDType = DType::kBF16;
    else if (word == "float16" || word == "torch.float16")
      m_.checkpointDType = DType::kF16;
    else
      in_.fail(in_.foundKey(), json::shown(word),
               "\"bfloat16\" or \"float16\": weights are kept in 16 bits, say "
               "in which kind");
  }

  /// A soft-cap: null, zero and negative numbers turn it off.
  double cap(ConfigReader::Names names, double absent) {
    for (const char *name : names)
      if (document_.root.is_object() && document_.root.contains(name) &&
          document_.root[name].is_null())
        absent = 0;
    double value = in_.number(names).value_or(absent);
    return value > 0 ? factor(value) : 0;
  }

  void readCaps() {
    m_.attentionCap =
        cap({"attn_logit_softcapping", "max_attn_value"}, kDefaultCap);
    m_.routerCap = cap({"router_logit_softcapping"}, 0);
    if (in_.ok() && m_.hash && m_.routerCap > 0)
      in_.fail("router_logit_softcapping", absl::StrCat(m_.routerCap),
               "0 or no such key, since hash routing has no router logits");
    m_.finalCap = cap({"final_logit_softcapping"}, 0);
    if (auto method = in_.string({"attn_logit_softcapping_method"}))
      oneOf(*method, {"tanh"});
    auto length = in_.integer({"attn_temperature_len"},
                              std::numeric_limits<int32_t>::min(), kInt32);
    if (length == 1)
      in_.fail("attn_temperature_len", "1",
               "0 or less (off), or at least 2, since the temperature divides "
               "by its logarithm");
    m_.attentionTemperatureLength =
        uint32_t(std::max<int64_t>(length.value_or(0), 0));
  }

  void readRope() {
    m_.ropeTheta = in_.number({"rope_theta"}).value_or(kDefaultTheta);
    if (in_.ok() &&
        !(m_.ropeTheta > 1 &&
          m_.ropeTheta <= double(std::numeric_limits<float>::max())))
      in_.fail("rope_theta", absl::StrCat(m_.ropeTheta),
               "a number above 1, finite in float32");
    std::string type = in_.string({"rope_type"}).value_or("default");
    oneOf(type, {"original", "default"});
    readRopeScaling();
    if (auto half = in_.boolean({"rope_rotate_half_dims"}); half == true)
      in_.fail("rope_rotate_half_dims", "true",
               "false or no such key: all dimensions of a head are rotated");

    // "original" says that rope_theta already contains the extension: plain
    // RoPE, and these keys only tell of it.
    auto factor = in_.number({"scaling_factor"});
    if (type != "original" && factor && *factor != 1)
      in_.fail("scaling_factor", absl::StrCat(*factor),
               "1 or no such key with this rope_type; with \"original\" "
               "rope_theta already contains it");
    in_.integer({"original_max_position_embeddings"}, 1, kInt32);
    for (const char *key :
         {"extrapolation_factor", "attn_factor", "beta_fast", "beta_slow"})
      in_.number({key});
  }

  void readRopeScaling() {
    if (!in_.find({"rope_scaling"}) || !in_.ok())
      return;
    ConfigReader scaling(document_, "/rope_scaling");
    if (auto type = scaling.string({"rope_type", "type"});
        type && *type != "default" && *type != "original")
      scaling.fail(scaling.foundKey(), json::shown(*type),
                   "\"default\" or \"original\" (plain RoPE)");
    in_.fail(scaling.finish());
  }

  void readHead() {
    m_.tiedHead = in_.boolean({"tie_word_embeddings"}).value_or(!residual_);
  }

  void readActivation(std::optional<Gelu> gelu) {
    m_.gelu = residual_ ? Gelu::kErf : Gelu::kTanh;
    if (auto word = in_.string({"hidden_act"})) {
      if (*word == "gelu" || *word == "gelu_python")
        m_.gelu = Gelu::kErf;
      else if (*word == "gelu_new" || *word == "gelu_fast" ||
               *word == "gelu_tanh" || *word == "gelu_pytorch_tanh")
        m_.gelu = Gelu::kTanh;
      else
        in_.fail(
            "hidden_act", json::shown(*word),
            "\"gelu\" (erf), or \"gelu_pytorch_tanh\" or \"gelu_new\" (tanh)");
    }
    m_.gelu = gelu.value_or(m_.gelu);
  }

  void readIds() {
    const std::pair<const char *, int64_t *> ids[] = {
        {"bos_token_id", &m_.bosId},
        {"eos_token_id", &m_.eosId},
        {"pad_token_id", &m_.padId}};
    for (auto [key, id] : ids)
      *id = in_.integer({key}, -1,
                        std::max<int64_t>(int64_t(m_.vocabSize) - 1, -1))
                .value_or(-1);
  }

  /// Keys that other programs act on and that have one value here.
  void readFixed() {
    if (auto window = in_.integer({"sliding_window_size"},
                                  std::numeric_limits<int32_t>::min(), kInt32);
        window && *window != -1)
      in_.fail("sliding_window_size", absl::StrCat(*window),
               "-1: every layer attends to all earlier positions");
    if (in_.find({"sliding_window"}))
      in_.fail("sliding_window",
               json::describe(document_.root["sliding_window"]),
               "null or no such key: there is no window");
    if (auto every = in_.integer({"global_attn_every_n"}, 0, kInt32);
        every && *every != 1)
      in_.fail("global_attn_every_n", absl::StrCat(*every),
               "1: every layer attends to all earlier positions");
    for (const char *key : {"output_router_logits", "attention_bias",
                            "mlp_bias", "norm_topk_prob", "use_sliding_window"})
      if (auto flag = in_.boolean({key}); flag == true)
        in_.fail(key, "true", "false or no such key: it is not compiled");
  }

  /// What matters to training, to generation policy or to other loaders, but
  /// not to the function that is compiled.
  void ignoreRest() {
    in_.ignore({"_name_or_path",
                "_attn_implementation",
                "auto_map",
                "transformers_version",
                "use_cache",
                "initializer_range",
                "attention_dropout",
                "hidden_dropout",
                "router_aux_loss_coef",
                "router_jitter_noise",
                "pretraining_tp",
                "output_attentions",
                "output_hidden_states",
                "return_dict",
                "use_return_dict",
                "torchscript",
                "gradient_checkpointing",
                "merge_gate_up",
                "load_presharded_mlp",
                "load_presharded_moe",
                "load_presharded_attn",
                "load_presharded_embedding",
                "replicate_lm_head",
                "replicate_embedding",
                "keys_to_ignore_at_inference",
                "is_decoder",
                "is_encoder_decoder"});
  }

  /// The model's weights must be countable in 64 bits, with room for bytes and
  /// alignment.
  void checkProduct() {
    if (!in_.ok())
      return;
    unsigned __int128 weights = (unsigned __int128)m_.numLayers *
                                m_.numExperts * m_.expertWidth * m_.hiddenSize;
    if (weights >= (unsigned __int128)1 << 54)
      in_.fail(
          "num_hidden_layers", absl::StrCat(m_.numLayers),
          "layers * experts * expert width * hidden width to stay below 2^54");
  }

  const json::Document &document_;
  ConfigReader in_;
  ModelConfig m_;
  bool residual_ = false;
};

} // namespace

absl::StatusOr<ParsedConfig> parseConfig(std::string_view text,
                                         std::string_view file,
                                         std::optional<Gelu> gelu) {
  absl::StatusOr<json::Document> document = json::parse(text, file);
  if (!document.ok())
    return document.status();
  document->lines.emplace("", 1); // where a key is missing from
  absl::StatusOr<ModelConfig> model = ModelReader(*document).read(gelu);
  if (!model.ok())
    return model.status();
  return ParsedConfig{*model, *std::move(document)};
}

absl::StatusOr<ParsedConfig> readConfig(const std::string &path,
                                        std::optional<Gelu> gelu) {
  std::error_code error;
  std::string file = path;
  if (std::filesystem::is_directory(path, error))
    file = (std::filesystem::path(path) / "config.json").string();
  absl::StatusOr<std::string> text = readInputFile(file, kMaxTextBytes);
  if (!text.ok())
    return text.status();
  return parseConfig(*text, file, gelu);
}

} // namespace grok
