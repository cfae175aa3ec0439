#include <cmath>

#include "absl/strings/str_cat.h"
#include "runtime/bundle/Bundle.h"
#include "runtime/bundle/Synthetic.h"

namespace grok {
namespace {

bool isNorm(TensorKind kind) {
  return kind == TensorKind::kFinalNorm || kind == TensorKind::kPreAttnNorm ||
         kind == TensorKind::kPostAttnNorm || kind == TensorKind::kPreMoeNorm ||
         kind == TensorKind::kPostMoeNorm;
}

/// The values that the filling kernel computes on the device.
class SyntheticSource : public TensorSource {
public:
  SyntheticSource(const ModelConfig &model, uint64_t seed)
      : model_(model), seed_(seed) {}

  std::string identity() const override {
    return absl::StrCat("synthetic ", seed_);
  }

  absl::Status readRow(const TensorId &id, uint32_t row,
                       std::span<float> out) override {
    TensorShape shape = tensorShape(model_, id.kind);
    if (row >= shape.rows || out.size() != shape.columns)
      return absl::InternalError(
          absl::StrCat("tensor '", tensorName(id), "': row ", row, " of ",
                       out.size(), " columns asked of a [", shape.rows, ", ",
                       shape.columns, "] tensor"));
    TensorKind kind = id.kind;
    if (model_.tiedHead && kind == TensorKind::kHead)
      kind = TensorKind::kTokenEmbedding;
    uint64_t key =
        synthetic::tensorKey(seed_, uint32_t(kind), id.layer, id.expert);
    if (isNorm(kind)) {
      for (size_t i = 0; i < out.size(); ++i)
        out[i] = synthetic::normElement(key, i);
      return absl::OkStatus();
    }
    uint64_t first = uint64_t(row) * shape.columns;
    float scale = std::sqrt(3.0f / float(shape.columns));
    for (size_t i = 0; i < out.size(); ++i)
      out[i] = synthetic::matrixElement(key, first + i, scale);
    return absl::OkStatus();
  }

private:
  ModelConfig model_;
  uint64_t seed_;
};

} // namespace

std::unique_ptr<TensorSource> syntheticSource(const ModelConfig &model,
                                              uint64_t seed) {
  return std::make_unique<SyntheticSource>(model, seed);
}

} // namespace grok
