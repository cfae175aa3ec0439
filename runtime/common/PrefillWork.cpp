#include "runtime/common/PrefillWork.h"

#include <algorithm>

namespace grok {
namespace {

using Expert = PlanTables::Expert;

/// Tokens whose hash leads to an expert that was kept, an expert each.
std::vector<uint32_t> hashUses(const ModelConfig &model, const PlanTables &plan,
                               std::span<const std::vector<int32_t>> rows) {
  std::vector<uint32_t> uses(model.numExperts);
  for (const std::vector<int32_t> &ids : rows)
    for (uint32_t position = 0; position != ids.size(); ++position) {
      uint32_t hash = model.hash->hash(uint32_t(ids[position]), position),
               expert = model.hash->expertOf(hash, position);
      uses[expert] += plan.experts[expert] == Expert::kKept;
    }
  return uses;
}

double elements(const ModelConfig &model, MatrixKind kind) {
  MatrixShape shape = matrixShape(model, kind);
  return double(shape.rows) * shape.k;
}

} // namespace

PrefillWork prefillWork(const ModelConfig &m, const PlanTables &plan,
                        std::span<const std::vector<int32_t>> rows,
                        uint32_t kvElementBytes) {
  double tokens = 0, pairs = 0; // of a query's and an earlier or its position
  uint32_t longest = 0;
  for (const std::vector<int32_t> &ids : rows) {
    tokens += ids.size();
    pairs += double(ids.size()) * (ids.size() + 1) / 2;
    longest = std::max(longest, uint32_t(ids.size()));
  }
  const double layers = m.numLayers;
  double used = tokens * m.expertsPerToken,
         distinct = double(std::count(plan.experts.begin(), plan.experts.end(),
                                      Expert::kKept));
  if (m.hash) {
    used = distinct = 0;
    for (uint32_t count : hashUses(m, plan, rows)) {
      used += count;
      distinct += count > 0;
    }
  }
  PrefillWork work;
  work.experts = layers * distinct;
  auto flops = [&](MatrixKind kind) { return 2 * layers * elements(m, kind); };
  PrefillFlops &f = work.flops;
  f.projections =
      tokens * (flops(MatrixKind::kQkv) + flops(MatrixKind::kAttnOut));
  f.attention = 4 * layers * pairs * m.numHeads * m.headDim;
  f.experts = used * (flops(MatrixKind::kGateUp) + flops(MatrixKind::kDown));
  f.denseMlp = tokens * (flops(MatrixKind::kDenseGateUp) +
                         flops(MatrixKind::kDenseDown));
  f.router = m.hash ? 0 : 2 * layers * tokens * m.numExperts * m.hiddenSize;
  f.head = 2 * double(rows.size()) * elements(m, MatrixKind::kHead);
  work.bytes = stepBytes(m, uint32_t(rows.size()), longest, work.experts,
                         plan.quantization, kvElementBytes);
  work.bytes.embedding = 2 * tokens * m.hiddenSize;
  const double entry = 2.0 * m.numKvHeads * m.headDim * kvElementBytes;
  work.bytes.kv = layers * tokens * entry; // each written; read from caches
  return work;
}

} // namespace grok
