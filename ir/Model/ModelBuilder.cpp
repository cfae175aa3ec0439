#include "ir/Model/ModelBuilder.h"

#include <initializer_list>

#include "mlir/IR/Builders.h"

#include "ir/Model/ModelStructure.h"

using namespace mlir;
using namespace grok;
using namespace grok::ir;

namespace {

class ModelBuilder {
public:
  ModelBuilder(MLIRContext &context, const ModelConfig &config,
               const SourceLines *source)
      : builder(&context), config(config), source(source),
        stream(rows(config.hiddenSize)) {
    context.loadDialect<GrokDialect>();
  }
  OwningOpRef<ModuleOp> build();

private:
  Value layer(Value h);
  Value attention(Value a);
  Value feedForward(Value b);
  Value routing(Value b);
  Value norm(Value input, NormSite site);

  /// The line of the first of these keys that the configuration has.
  Location at(std::initializer_list<const char *> pointers) const;
  RankedTensorType rows(uint32_t width) {
    return RankedTensorType::get({ShapedType::kDynamic, int64_t(width)},
                                 builder.getF32Type());
  }
  /// Zero: off.
  FloatAttr cap(double value) {
    return value == 0 ? FloatAttr() : builder.getF64FloatAttr(value);
  }
  /// -1: none.
  IntegerAttr tokenId(int64_t id) {
    return id == -1 ? IntegerAttr() : builder.getI64IntegerAttr(id);
  }
  GeluKind gelu() const {
    return config.gelu == Gelu::kErf ? GeluKind::Erf : GeluKind::Tanh;
  }

  OpBuilder builder;
  const ModelConfig &config;
  const SourceLines *source;
  RankedTensorType stream; // of the residual stream
};

} // namespace

Location ModelBuilder::at(std::initializer_list<const char *> pointers) const {
  MLIRContext *context = builder.getContext();
  if (!source)
    return UnknownLoc::get(context);
  for (const char *pointer : pointers)
    if (auto line = source->lines.find(pointer); line != source->lines.end())
      return FileLineColLoc::get(context, source->file, line->second, 1);
  return FileLineColLoc::get(context, source->file, 1, 1);
}

OwningOpRef<ModuleOp> ModelBuilder::build() {
  OwningOpRef<ModuleOp> module = ModuleOp::create(at({}));
  builder.setInsertionPointToEnd(module->getBody());
  StorageType dtype = config.checkpointDType == DType::kF16 ? StorageType::F16
                                                            : StorageType::BF16;
  auto model =
      ModelOp::create(builder, at({"/vocab_size"}), "main", config.vocabSize,
                      config.maxPositions, dtype, tokenId(config.bosId),
                      tokenId(config.eosId), tokenId(config.padId));
  builder.setInsertionPointToEnd(&model.getBody().emplaceBlock());

  auto embed =
      EmbedOp::create(builder, at({"/embedding_multiplier_scale"}), stream,
                      llvm::APFloat(config.embeddingMultiplier));
  Location layersAt = at({"/num_hidden_layers"});
  auto layers =
      LayersOp::create(builder, layersAt, stream, config.numLayers, embed);
  {
    OpBuilder::InsertionGuard guard(builder);
    Block &body = layers.getBody().emplaceBlock();
    body.addArgument(stream, layersAt);
    builder.setInsertionPointToEnd(&body);
    YieldOp::create(builder, layersAt, layer(layers.getStream()));
  }
  Value x = norm(layers.getResult(), NormSite::Final);
  Location headAt = at({"/output_multiplier_scale"});
  auto logits = LmHeadOp::create(
      builder, headAt, rows(config.vocabSize), x, config.tiedHead,
      llvm::APFloat(config.outputMultiplier), cap(config.finalCap));
  ReturnOp::create(builder, headAt, logits);
  return module;
}

Value ModelBuilder::layer(Value h) {
  Location loc = at({"/num_hidden_layers"});
  Value y = attention(norm(h, NormSite::PreAttn));
  Value afterAttention =
      AddOp::create(builder, loc, h, norm(y, NormSite::PostAttn));
  Value f = feedForward(norm(afterAttention, NormSite::PreMoe));
  return AddOp::create(builder, loc, afterAttention,
                       norm(f, NormSite::PostMoe));
}

Value ModelBuilder::norm(Value input, NormSite site) {
  return RmsNormOp::create(builder, at({"/rms_norm_eps"}), input, site,
                           llvm::APFloat(config.normEps));
}

Value ModelBuilder::attention(Value a) {
  uint32_t heads = config.numHeads, kvHeads = config.numKvHeads,
           headDim = config.headDim;
  Location headsAt = at({"/num_attention_heads"}), ropeAt = at({"/rope_theta"});
  Location attentionAt = at({"/attn_logit_softcapping", "/max_attn_value",
                             "/attn_output_multiplier"});
  RankedTensorType qType = rows(heads * headDim),
                   kType = rows(kvHeads * headDim);
  llvm::APFloat theta(config.ropeTheta);

  auto qkv = QkvOp::create(builder, headsAt, qType, kType, kType, a, heads,
                           kvHeads, headDim);
  Value q = RopeOp::create(builder, ropeAt, qkv.getQ(), theta, headDim);
  Value k = RopeOp::create(builder, ropeAt, qkv.getK(), theta, headDim);
  IntegerAttr temperature;
  if (config.attentionTemperatureLength != 0)
    temperature =
        builder.getI32IntegerAttr(int32_t(config.attentionTemperatureLength));
  auto o = AttentionOp::create(builder, attentionAt, qType, q, k, qkv.getV(),
                               heads, kvHeads, headDim,
                               llvm::APFloat(config.attentionScale),
                               cap(config.attentionCap), temperature);
  return LinearOp::create(builder, headsAt, stream, o, LinearSite::AttnOut);
}

Value ModelBuilder::feedForward(Value b) {
  Value moe = ExpertsOp::create(
      builder, at({"/num_local_experts", "/num_experts"}), stream, b,
      routing(b), config.numExperts, config.expertWidth, gelu(),
      DenseI32ArrayAttr(), DenseI32ArrayAttr());
  if (config.denseWidth == 0)
    return moe;
  Location loc = at({"/residual_moe"});
  Value dense = DenseMlpOp::create(builder, loc, b, config.denseWidth, gelu());
  return ScaledAddOp::create(builder, loc, dense, moe,
                             llvm::APFloat(kInverseRootTwo));
}

Value ModelBuilder::routing(Value b) {
  auto type = RoutingType::get(builder.getContext(), config.expertsPerToken,
                               config.numExperts);
  if (!config.hash)
    return TopkRouteOp::create(
        builder, at({"/num_experts_per_tok", "/num_selected_experts"}), type, b,
        config.numExperts, config.expertsPerToken, cap(config.routerCap));
  const HashRouting &h = *config.hash;
  return HashRouteOp::create(builder, at({"/expert_routing"}), type,
                             h.numGroups, h.expertsPerGroup, h.tokenMultiplier,
                             h.positionMultiplier, h.hashBits, h.indexShift,
                             h.indexMask, h.positionOffsetMask);
}

OwningOpRef<ModuleOp> grok::ir::buildModel(MLIRContext &context,
                                           const ModelConfig &config,
                                           const SourceLines *source) {
  return ModelBuilder(context, config, source).build();
}

FailureOr<ModelConfig> grok::ir::readModel(ModelOp model) {
  FailureOr<ModelParts> parts = matchModel(model);
  if (failed(parts))
    return failure();
  return configOf(model, *parts);
}
