#include "ir/Model/ModelStructure.h"
#include "ir/Model/DoubleText.h"

#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;
using namespace grok::ir;

namespace {

/// Walks backwards from the logits. Each step names the operation that must be
/// there and marks it as used.
class Matcher {
public:
  explicit Matcher(ModelOp model) : model(model) {}
  FailureOr<ModelParts> match();

private:
  /// The operation of type Op that defines `value`, an operand of `user`.
  template <typename Op>
  LogicalResult definedBy(Operation *user, StringRef operand, Value value,
                          Op &result);
  /// The norm of that site that defines `value`.
  LogicalResult normOf(Operation *user, StringRef operand, Value value,
                       NormSite site, RmsNormOp &result);
  LogicalResult isValue(Operation *user, StringRef operand, Value value,
                        Value expected, StringRef what);

  LogicalResult matchEnds();
  LogicalResult matchFeedForward(Value &afterAttention);
  LogicalResult matchRouter();
  LogicalResult matchAttention(Value afterAttention);
  LogicalResult matchNothingElse(Region &region);

  ModelOp model;
  ModelParts parts;
  llvm::SmallPtrSet<Operation *, 32> used;
};

} // namespace

static void describe(InFlightDiagnostic &diag, Value value) {
  if (Operation *op = value.getDefiningOp())
    diag << "'" << op->getName() << "'";
  else
    diag << "the argument of the layers";
}

template <typename Op>
LogicalResult Matcher::definedBy(Operation *user, StringRef operand,
                                 Value value, Op &result) {
  result = value.getDefiningOp<Op>();
  if (result) {
    used.insert(result);
    return success();
  }
  InFlightDiagnostic diag = user->emitOpError("operand '")
                            << operand << "' comes from ";
  describe(diag, value);
  return diag << "; expected '" << Op::getOperationName() << "'";
}

LogicalResult Matcher::normOf(Operation *user, StringRef operand, Value value,
                              NormSite site, RmsNormOp &result) {
  if (failed(definedBy(user, operand, value, result)))
    return failure();
  if (result.getSite() == site)
    return success();
  return result.emitOpError("has the weights '")
         << stringifyNormSite(result.getSite()) << "'; expected '"
         << stringifyNormSite(site) << "' here";
}

LogicalResult Matcher::isValue(Operation *user, StringRef operand, Value value,
                               Value expected, StringRef what) {
  if (value == expected)
    return success();
  InFlightDiagnostic diag = user->emitOpError("operand '")
                            << operand << "' comes from ";
  describe(diag, value);
  return diag << "; expected " << what;
}

LogicalResult Matcher::matchEnds() {
  // The only terminator that may stand there.
  auto end = cast<ReturnOp>(model.getBody().front().getTerminator());
  used.insert(end);
  if (failed(definedBy(end, "logits", end.getLogits(), parts.head)) ||
      failed(normOf(parts.head, "input", parts.head.getInput(), NormSite::Final,
                    parts.finalNorm)) ||
      failed(definedBy(parts.finalNorm, "input", parts.finalNorm.getInput(),
                       parts.layers)) ||
      failed(
          definedBy(parts.layers, "init", parts.layers.getInit(), parts.embed)))
    return failure();
  return matchNothingElse(model.getBody());
}

/// From the end of a layer back to the addition that ends its attention half.
LogicalResult Matcher::matchFeedForward(Value &afterAttention) {
  auto end = cast<YieldOp>(parts.layers.getBody().front().getTerminator());
  used.insert(end);
  if (failed(definedBy(end, "value", end.getValue(), parts.addMoe)) ||
      failed(normOf(parts.addMoe, "update", parts.addMoe.getUpdate(),
                    NormSite::PostMoe, parts.postMoe)))
    return failure();
  afterAttention = parts.addMoe.getStream();

  Operation *user = parts.postMoe;
  Value moe = parts.postMoe.getInput();
  if ((parts.denseSum = moe.getDefiningOp<ScaledAddOp>())) {
    used.insert(parts.denseSum);
    if (failed(definedBy(parts.denseSum, "dense", parts.denseSum.getDense(),
                         parts.dense)))
      return failure();
    user = parts.denseSum;
    moe = parts.denseSum.getExperts();
  }
  if (failed(definedBy(user, parts.denseSum ? "experts" : "input", moe,
                       parts.experts)) ||
      failed(normOf(parts.experts, "input", parts.experts.getInput(),
                    NormSite::PreMoe, parts.preMoe)) ||
      failed(isValue(parts.preMoe, "input", parts.preMoe.getInput(),
                     afterAttention,
                     "the stream after attention, which the layer's last "
                     "addition takes too")))
    return failure();
  if (parts.dense &&
      failed(isValue(parts.dense, "input", parts.dense.getInput(), parts.preMoe,
                     "the norm 'pre_moe' that the experts read")))
    return failure();
  return matchRouter();
}

LogicalResult Matcher::matchRouter() {
  Value routing = parts.experts.getRouting();
  if ((parts.hashRoute = routing.getDefiningOp<HashRouteOp>())) {
    used.insert(parts.hashRoute);
    return success();
  }
  if (failed(definedBy(parts.experts, "routing", routing, parts.topkRoute)))
    return failure();
  return isValue(parts.topkRoute, "input", parts.topkRoute.getInput(),
                 parts.preMoe, "the norm 'pre_moe' that the experts read");
}

/// From the addition that ends the attention half back to the layer's argument.
LogicalResult Matcher::matchAttention(Value afterAttention) {
  if (failed(definedBy(parts.addMoe, "stream", afterAttention,
                       parts.addAttention)) ||
      failed(isValue(parts.addAttention, "stream",
                     parts.addAttention.getStream(), parts.layers.getStream(),
                     "the argument of the layers")) ||
      failed(normOf(parts.addAttention, "update",
                    parts.addAttention.getUpdate(), NormSite::PostAttn,
                    parts.postAttn)) ||
      failed(definedBy(parts.postAttn, "input", parts.postAttn.getInput(),
                       parts.attnOut)) ||
      failed(definedBy(parts.attnOut, "input", parts.attnOut.getInput(),
                       parts.attention)) ||
      failed(definedBy(parts.attention, "q", parts.attention.getQ(),
                       parts.ropeQ)) ||
      failed(definedBy(parts.attention, "k", parts.attention.getK(),
                       parts.ropeK)) ||
      failed(
          definedBy(parts.attention, "v", parts.attention.getV(), parts.qkv)))
    return failure();
  QkvOp qkv = parts.qkv;
  if (failed(isValue(parts.attention, "v", parts.attention.getV(), qkv.getV(),
                     "result 'v' of 'grok.qkv'")) ||
      failed(isValue(parts.ropeQ, "input", parts.ropeQ.getInput(), qkv.getQ(),
                     "result 'q' of 'grok.qkv'")) ||
      failed(isValue(parts.ropeK, "input", parts.ropeK.getInput(), qkv.getK(),
                     "result 'k' of 'grok.qkv'")) ||
      failed(normOf(qkv, "input", qkv.getInput(), NormSite::PreAttn,
                    parts.preAttn)))
    return failure();
  return isValue(parts.preAttn, "input", parts.preAttn.getInput(),
                 parts.layers.getStream(), "the argument of the layers");
}

LogicalResult Matcher::matchNothingElse(Region &region) {
  for (Operation &op : region.front())
    if (!used.contains(&op))
      return op.emitOpError("has no part in the model's logits; expected it to "
                            "be used, or absent");
  return success();
}

FailureOr<ModelParts> Matcher::match() {
  Value afterAttention;
  if (failed(matchEnds()) || failed(matchFeedForward(afterAttention)) ||
      failed(matchAttention(afterAttention)) ||
      failed(matchNothingElse(parts.layers.getBody())))
    return failure();
  return parts;
}

FailureOr<ModelParts> grok::ir::matchModel(ModelOp model) {
  return Matcher(model).match();
}

//===----------------------------------------------------------------------===//
// Agreement
//===----------------------------------------------------------------------===//

/// Checks that `op` says the same of `what` as `other`, which was seen first.
template <typename T>
static LogicalResult agree(Operation *op, StringRef what, T found, T expected,
                           Operation *other) {
  if (found == expected)
    return success();
  InFlightDiagnostic diag = op->emitOpError("has ")
                            << what << " " << found << "; expected "
                            << expected;
  diag.attachNote(other->getLoc()) << "as '" << other->getName() << "' has it";
  return diag;
}

/// Equal exactly for equal constants.
static std::string textOf(const llvm::APFloat &value) {
  return doubleText(value.convertToDouble());
}

static LogicalResult checkNorms(ModelParts p) {
  for (RmsNormOp norm : {p.postAttn, p.preMoe, p.postMoe, p.finalNorm})
    if (failed(agree(norm, "eps", textOf(norm.getEps()),
                     textOf(p.preAttn.getEps()), p.preAttn)))
      return failure();
  return success();
}

static LogicalResult checkAttention(ModelParts p) {
  for (RopeOp rope : {p.ropeQ, p.ropeK})
    if (failed(agree(rope, "head_dim", rope.getHeadDim(), p.qkv.getHeadDim(),
                     p.qkv)))
      return failure();
  if (failed(agree(p.ropeK, "theta", textOf(p.ropeK.getTheta()),
                   textOf(p.ropeQ.getTheta()), p.ropeQ)) ||
      failed(agree(p.attention, "heads", p.attention.getHeads(),
                   p.qkv.getHeads(), p.qkv)) ||
      failed(agree(p.attention, "kv_heads", p.attention.getKvHeads(),
                   p.qkv.getKvHeads(), p.qkv)))
    return failure();
  return agree(p.attention, "head_dim", p.attention.getHeadDim(),
               p.qkv.getHeadDim(), p.qkv);
}

static LogicalResult checkDense(ModelParts p) {
  if (!p.dense)
    return success();
  if (p.denseSum.getScale().convertToDouble() != kInverseRootTwo)
    return p.denseSum.emitOpError("has scale ")
           << textOf(p.denseSum.getScale())
           << "; expected 1 / sqrt(2), which is "
           << doubleText(kInverseRootTwo);
  return agree(p.dense, "gelu", stringifyGeluKind(p.dense.getGelu()),
               stringifyGeluKind(p.experts.getGelu()), p.experts);
}

static LogicalResult checkVocabulary(ModelOp model, ModelParts p) {
  if (uint64_t(widthOf(p.head.getLogits())) != model.getVocab())
    return p.head.emitOpError("result is ")
           << widthOf(p.head.getLogits())
           << " wide; expected the model's vocab, " << model.getVocab();
  std::pair<StringRef, std::optional<uint64_t>> ids[] = {
      {"bos", model.getBos()},
      {"eos", model.getEos()},
      {"pad", model.getPad()}};
  for (auto [name, id] : ids)
    if (id && *id >= model.getVocab())
      return model.emitOpError()
             << name << " is " << *id << "; expected less than vocab "
             << model.getVocab();
  return success();
}

LogicalResult grok::ir::checkAgreement(ModelOp model, const ModelParts &parts) {
  ModelParts p = parts;
  return success(succeeded(checkVocabulary(model, p)) &&
                 succeeded(checkNorms(p)) && succeeded(checkAttention(p)) &&
                 succeeded(checkDense(p)));
}

//===----------------------------------------------------------------------===//
// The configuration
//===----------------------------------------------------------------------===//

static double orOff(std::optional<llvm::APFloat> value) {
  return value ? value->convertToDouble() : 0;
}

static int64_t orNone(std::optional<uint64_t> id) {
  return id ? int64_t(*id) : -1;
}

static grok::Gelu geluOf(GeluKind kind) {
  return kind == GeluKind::Erf ? grok::Gelu::kErf : grok::Gelu::kTanh;
}

static grok::HashRouting hashOf(HashRouteOp route) {
  grok::HashRouting hash;
  hash.numGroups = route.getGroups();
  hash.expertsPerGroup = route.getExpertsPerGroup();
  hash.tokenMultiplier = uint32_t(route.getTokenMultiplier());
  hash.positionMultiplier = uint32_t(route.getPositionMultiplier());
  hash.hashBits = route.getHashBits();
  hash.indexShift = route.getIndexShift();
  hash.indexMask = uint32_t(route.getIndexMask());
  hash.positionOffsetMask = uint32_t(route.getPositionOffsetMask());
  return hash;
}

static void setSizes(grok::ModelConfig &config, ModelOp model, ModelParts p) {
  config.vocabSize = model.getVocab();
  config.hiddenSize = uint32_t(widthOf(p.layers.getStream()));
  config.numLayers = p.layers.getCount();
  config.numHeads = p.qkv.getHeads();
  config.numKvHeads = p.qkv.getKvHeads();
  config.headDim = p.qkv.getHeadDim();
  config.numExperts = p.experts.getExperts();
  config.expertsPerToken = p.experts.getRouting().getType().getPerToken();
  config.expertWidth = p.experts.getWidth();
  config.denseWidth = p.dense ? p.dense.getWidth() : 0;
  config.maxPositions = model.getContext();
}

static void setConstants(grok::ModelConfig &config, ModelParts p) {
  config.embeddingMultiplier = p.embed.getMultiplier().convertToDouble();
  config.outputMultiplier = p.head.getMultiplier().convertToDouble();
  config.attentionScale = p.attention.getScale().convertToDouble();
  config.attentionCap = orOff(p.attention.getCap());
  config.routerCap = p.topkRoute ? orOff(p.topkRoute.getCap()) : 0;
  config.finalCap = orOff(p.head.getCap());
  config.ropeTheta = p.ropeQ.getTheta().convertToDouble();
  config.normEps = p.preAttn.getEps().convertToDouble();
  config.attentionTemperatureLength =
      p.attention.getTemperatureLength().value_or(0);
}

grok::ModelConfig grok::ir::configOf(ModelOp model, const ModelParts &parts) {
  ModelParts p = parts;
  ModelConfig config;
  setSizes(config, model, p);
  setConstants(config, p);
  config.gelu = geluOf(p.experts.getGelu());
  config.tiedHead = p.head.getTied();
  config.checkpointDType =
      model.getDtype() == StorageType::F16 ? DType::kF16 : DType::kBF16;
  if (p.hashRoute)
    config.hash = hashOf(p.hashRoute);
  config.bosId = orNone(model.getBos());
  config.eosId = orNone(model.getEos());
  config.padId = orNone(model.getPad());
  return config;
}

LogicalResult ModelOp::verifyRegions() {
  FailureOr<ModelParts> parts = matchModel(*this);
  if (failed(parts) || failed(checkAgreement(*this, *parts)))
    return failure();
  absl::Status valid = configOf(*this, *parts).validate();
  if (valid.ok())
    return success();
  return emitOpError("states an invalid configuration: ")
         << StringRef(valid.message().data(), valid.message().size());
}
