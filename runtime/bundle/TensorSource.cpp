#include "runtime/bundle/TensorSource.h"

#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/bundle/Half.h"
#include "runtime/bundle/Names.h"

namespace grok {

TensorShape tensorShape(const ModelConfig &m, TensorKind kind) {
  switch (kind) {
  case TensorKind::kTokenEmbedding:
  case TensorKind::kHead:
    return {m.vocabSize, m.hiddenSize};
  case TensorKind::kFinalNorm:
  case TensorKind::kPreAttnNorm:
  case TensorKind::kPostAttnNorm:
  case TensorKind::kPreMoeNorm:
  case TensorKind::kPostMoeNorm:
    return {1, m.hiddenSize};
  case TensorKind::kQuery:
    return {m.numHeads * m.headDim, m.hiddenSize};
  case TensorKind::kKey:
  case TensorKind::kValue:
    return {m.numKvHeads * m.headDim, m.hiddenSize};
  case TensorKind::kAttnOut:
    return {m.hiddenSize, m.numHeads * m.headDim};
  case TensorKind::kRouter:
    return {m.numExperts, m.hiddenSize};
  case TensorKind::kExpertGate:
  case TensorKind::kExpertUp:
    return {m.expertWidth, m.hiddenSize};
  case TensorKind::kExpertDown:
    return {m.hiddenSize, m.expertWidth};
  case TensorKind::kDenseGate:
  case TensorKind::kDenseUp:
    return {m.denseWidth, m.hiddenSize};
  case TensorKind::kDenseDown:
    return {m.hiddenSize, m.denseWidth};
  }
  return {0, 0};
}

std::string tensorName(const TensorId &id) {
  std::string layer = absl::StrCat("layers.", id.layer, ".");
  std::string expert = absl::StrCat(layer, "experts.", id.expert, ".");
  switch (id.kind) {
  case TensorKind::kTokenEmbedding:
    return "embedding";
  case TensorKind::kHead:
    return "head";
  case TensorKind::kFinalNorm:
    return "final_norm";
  case TensorKind::kPreAttnNorm:
    return layer + "pre_attn_norm";
  case TensorKind::kPostAttnNorm:
    return layer + "post_attn_norm";
  case TensorKind::kPreMoeNorm:
    return layer + "pre_moe_norm";
  case TensorKind::kPostMoeNorm:
    return layer + "post_moe_norm";
  case TensorKind::kQuery:
    return layer + "query";
  case TensorKind::kKey:
    return layer + "key";
  case TensorKind::kValue:
    return layer + "value";
  case TensorKind::kAttnOut:
    return layer + "attn_out";
  case TensorKind::kRouter:
    return layer + "router";
  case TensorKind::kExpertGate:
    return expert + "gate";
  case TensorKind::kExpertUp:
    return expert + "up";
  case TensorKind::kExpertDown:
    return expert + "down";
  case TensorKind::kDenseGate:
    return layer + "dense.gate";
  case TensorKind::kDenseUp:
    return layer + "dense.up";
  case TensorKind::kDenseDown:
    return layer + "dense.down";
  }
  return "unknown";
}

absl::Status TensorSource::readRow16(const TensorId &id, uint32_t row,
                                     DType dtype, std::span<uint16_t> out) {
  std::vector<float> wide(out.size());
  if (absl::Status status = readRow(id, row, wide); !status.ok())
    return status;
  return roundRow(id, row, dtype, wide, out);
}

absl::Status TensorSource::readCodes(const TensorId &id, uint32_t row,
                                     Quantization q, std::span<uint8_t> codes,
                                     RowScales &scales,
                                     QuantizationError &error) {
  values_.resize(codes.size());
  stored_.resize(codes.size());
  if (absl::Status status = readRow(id, row, values_); !status.ok())
    return status;
  if (std::optional<size_t> column = quantizeRow(q, values_, codes, scales))
    return absl::InvalidArgumentError(
        absl::StrCat("tensor '", tensorName(id), "' [", row, ", ", *column,
                     "]: found ", values_[*column],
                     ", expected a finite value, as ", std::string(wordFor(q)),
                     " has no other; download or export the weights again"));
  dequantizeRow(q, codes, scales, stored_);
  error.add(values_, stored_);
  return absl::OkStatus();
}

absl::Status roundRow(const TensorId &id, uint32_t row, DType dtype,
                      std::span<const float> in, std::span<uint16_t> out) {
  if (std::optional<size_t> column = floatToHalf(dtype, in, out.data()))
    return absl::InvalidArgumentError(absl::StrCat(
        "tensor '", tensorName(id), "' [", row, ", ", *column, "]: found ",
        in[*column], ", expected a value that ", std::string(wordFor(dtype)),
        " can hold",
        dtype == DType::kF16 ? "; compile with --dtype bf16"
                             : "; download or export the weights again"));
  return absl::OkStatus();
}

} // namespace grok
