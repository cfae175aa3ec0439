// The operations of a model by their role. There is one way to put them
// together; this is where it is written down.
#pragma once

#include "ir/Model/GrokDialect.h"
#include "runtime/bundle/ModelConfig.h"

namespace grok::ir {

/// The double nearest to 1 / sqrt(2): the one scale of grok.scaled_add.
inline constexpr double kInverseRootTwo = 0.70710678118654757;

/// The parts of a verified model. `dense` and `denseSum` are null without a
/// residual MLP; one of `hashRoute` and `topkRoute` is null.
struct ModelParts {
  EmbedOp embed;
  LayersOp layers;
  RmsNormOp preAttn, postAttn, preMoe, postMoe, finalNorm;
  QkvOp qkv;
  RopeOp ropeQ, ropeK;
  AttentionOp attention;
  LinearOp attnOut;
  AddOp addAttention, addMoe;
  HashRouteOp hashRoute;
  TopkRouteOp topkRoute;
  ExpertsOp experts;
  DenseMlpOp dense;
  ScaledAddOp denseSum;
  LmHeadOp head;
};

/// Follows the data flow from the logits back to the ids. Fails with an error
/// at the operation that is out of place. The verifier of grok.model is this
/// function and checkAgreement.
mlir::FailureOr<ModelParts> matchModel(ModelOp model);

/// Checks the facts that a model states at more than one place.
mlir::LogicalResult checkAgreement(ModelOp model, const ModelParts &parts);

/// The configuration that the operations state.
ModelConfig configOf(ModelOp model, const ModelParts &parts);

} // namespace grok::ir
