#include "runtime/cpu/Forward.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "runtime/bundle/Quantize.h"
#include "runtime/bundle/Sampling.h"

namespace grok::cpu {

/// Operands, results and scales of a subset of the columns, for
/// Kernels::matvec.
struct Forward::Gather {
  uint32_t count = 0;
  uint32_t column[kMaxColumns];
  const float *x[kMaxColumns];
  float *y[kMaxColumns]; // where the sum of matrix row 0 would go
  float scale[kMaxColumns];
  bool scaled = false; // y += scale * sum instead of y = sum

  void add(uint32_t index, const float *operand, float *result,
           float weight = 1) {
    column[count] = index;
    x[count] = operand;
    y[count] = result;
    scale[count++] = weight;
  }
};

std::span<const float> Forward::logits(uint32_t column) const {
  return {logits_ + uint64_t(column) * alignUp(m_.vocabSize, kTileRows),
          m_.vocabSize};
}
int32_t Forward::picked(uint32_t column) const { return picked_[column]; }
std::span<const uint32_t> Forward::routing(uint32_t layer,
                                           uint32_t column) const {
  return {routing_ +
              (uint64_t(layer) * kMaxColumns + column) * m_.expertsPerToken,
          m_.expertsPerToken};
}

uint32_t Forward::expertUses() const {
  uint32_t uses = 0;
  std::vector<bool> used(m_.numExperts);
  for (uint32_t layer = 0; layer != m_.numLayers; ++layer) {
    used.assign(m_.numExperts, false);
    for (uint32_t c = 0; c != columns_.size(); ++c)
      for (uint32_t e : routing(layer, c))
        used[e] = experts_[e].kept;
    uses += uint32_t(std::count(used.begin(), used.end(), true));
  }
  return uses;
}

void Forward::clearKv(uint32_t rows, uint32_t positions) {
  uint64_t block =
      uint64_t(m_.numLayers) * 2 * m_.numKvHeads * kKvBlock * headStride_;
  for (uint32_t row = 0; row != rows; ++row)
    std::fill_n(kvHead(row, 0, 0, false, 0),
                ceilDiv(positions, kKvBlock) * block, 0.0f);
}

const float *Forward::vector(uint32_t layer, uint64_t floatOffset) const {
  return reinterpret_cast<const float *>(blob_.data() + vectorsOffset_ +
                                         layer * vectorsLayerBytes_) +
         floatOffset;
}

/// The keys or values of one kv head in one block of positions: keys
/// [headStride][64], values [64][headStride].
float *Forward::kvHead(uint32_t row, uint32_t block, uint32_t layer,
                       bool values, uint32_t head) const {
  uint64_t index =
      ((uint64_t(row) * rowBlocks_ + block) * m_.numLayers + layer) * 2 +
      values;
  return kv_ + (index * m_.numKvHeads + head) * kKvBlock * headStride_;
}

float *Forward::partial(uint32_t column, uint32_t head, uint32_t chunk) const {
  return partials_ +
         ((uint64_t(column) * m_.numHeads + head) * chunks_ + chunk) *
             partialStride_;
}

void Forward::step(std::span<const Column> columns, const Picking &picking) {
  columns_ = columns;
  picking_ = picking;
  pool_.run(
      [](void *self, unsigned thread) {
        static_cast<Forward *>(self)->runThread(thread);
      },
      this);
  for (uint32_t c = 0; c != columns.size(); ++c) {
    if (!columns[c].head)
      continue;
    Candidate chosen;
    for (const Worker &w : workers_)
      if (w.candidates[c].betterThan(chosen))
        chosen = w.candidates[c];
    picked_[c] = chosen.id;
  }
}

void Forward::runThread(unsigned thread) {
  Worker &w = workers_[thread];
  embed(w);
  const uint64_t hidden = m_.hiddenSize;
  for (uint32_t layer = 0; layer != m_.numLayers; ++layer) {
    normalize(w, vector(layer, 0));
    forShares(thread, [&](unsigned share) { qkv(w, share, layer); });
    pool_.barrier();
    forShares(thread, [&](unsigned share) { attention(w, share, layer); });
    pool_.barrier();
    mergeHeads(w);
    forShares(thread,
              [&](unsigned share) { attentionOutput(w, share, layer); });
    pool_.barrier();
    for (uint32_t c = 0; c != columns_.size(); ++c)
      k_.addRmsNorm(w.residual + c * hiddenStride_,
                    attnSums_ + c * hiddenStride_, 1, vector(layer, hidden),
                    m_.hiddenSize, float(m_.normEps));
    normalize(w, vector(layer, 2 * hidden));
    route(w, thread, layer);
    forShares(thread, [&](unsigned share) { gateUp(w, share, layer); });
    pool_.barrier();
    forShares(thread, [&](unsigned share) { down(w, share, layer); });
    pool_.barrier();
    float scale = m_.denseWidth ? float(0.70710678118654752440) : 1;
    for (uint32_t c = 0; c != columns_.size(); ++c)
      k_.addRmsNorm(
          w.residual + c * hiddenStride_, moeSums_ + c * hiddenStride_, scale,
          vector(layer, 3 * hidden), m_.hiddenSize, float(m_.normEps));
  }
  if (std::any_of(columns_.begin(), columns_.end(),
                  [](const Column &c) { return c.head; })) {
    normalize(w, vector(m_.numLayers, 0));
    std::fill_n(w.candidates, columns_.size(), Candidate());
    forShares(thread, [&](unsigned share) { head(w, share); });
  }
}

void Forward::embed(Worker &w) {
  for (uint32_t c = 0; c != columns_.size(); ++c)
    embedColumn(columns_[c], w.residual + c * hiddenStride_);
}

void Forward::embedColumn(const Column &column, float *out) const {
  float multiplier = float(m_.embeddingMultiplier);
  uint32_t id = uint32_t(column.id);
  if (m_.tiedHead)
    return embedTied(id, out);
  auto holds = [&](const EmbeddingExtent &e) {
    return id - e.rowBegin < e.rowCount;
  };
  const EmbeddingExtent &extent =
      *std::find_if(embedding_.begin(), embedding_.end(), holds);
  k_.expandRow(rowStorage_,
               blob_.data() + extent.offset +
                   uint64_t(id - extent.rowBegin) * m_.hiddenSize * 2,
               m_.hiddenSize, multiplier, out);
}

/// The row of the head that is the token's embedding.
void Forward::embedTied(uint32_t id, float *out) const {
  float multiplier = float(m_.embeddingMultiplier);
  const uint32_t steps = tiedRows_.steps();
  if (quantization_ == Quantization::kNone) {
    for (uint32_t step = 0; step < steps; step += blockSteps_)
      k_.expandFragments(storage_, blob_.data() + tiedRows_.at(id, step),
                         std::min(blockSteps_, steps - step), multiplier,
                         out + step * kTileK);
    return;
  }
  RowScales scales;
  std::memcpy(scales.data(), blob_.data() + tiedRows_.scales(id),
              sizeof(scales));
  for (uint32_t step = 0; step < steps; ++step)
    k_.expandFragments(
        storage_, blob_.data() + tiedRows_.at(id, step), 1,
        scaleToFloat(scales[step % kScaleBlocks]) * multiplier,
        out + streamedInput(quantization_, m_.hiddenSize, step * kTileK));
}

/// The residual's norm of every column, as the operand of the next matrix.
void Forward::normalize(Worker &w, const float *gain) {
  for (uint64_t c = 0; c != columns_.size(); ++c) {
    float *normed = w.normed + c * hiddenStride_;
    k_.rmsNorm(w.residual + c * hiddenStride_, gain, m_.hiddenSize,
               float(m_.normEps), normed);
    k_.permute(storage_, normed, m_.hiddenSize, w.operand + c * hiddenStride_);
  }
}

/// A share of a matrix times the gathered columns.
void Forward::multiply(const HostMatrix &matrix, unsigned share, uint32_t layer,
                       const Gather &gather) const {
  float *y[kMaxColumns];
  for (const Segment &segment : matrix.share(share)) {
    for (uint32_t i = 0; i != gather.count; ++i)
      y[i] = gather.y[i] + segment.row;
    k_.matvec(
        {storage_, blob_.data() + segment.offset + layer * segment.layerStride,
         segment.extentTiles, segment.firstTile, segment.tiles, matrix.steps,
         blockSteps_, groupOffset(quantization_, 1, matrix.steps), gather.count,
         gather.x, y, gather.scaled ? gather.scale : nullptr});
  }
}

void Forward::qkv(Worker &w, unsigned share, uint32_t layer) {
  RowRange rows = rowsOf(ceilDiv(m_.qkvRows(), kTileRows), share, shares());
  uint32_t end = std::min(rows.end, m_.qkvRows());
  Gather gather;
  for (uint32_t c = 0; c != columns_.size(); ++c)
    gather.add(c, w.operand + c * hiddenStride_,
               w.rows + uint64_t(c) * shareRows_ - rows.begin);
  multiply(qkv_, share, layer, gather);
  for (uint32_t c = 0; c != columns_.size(); ++c)
    if (rows.begin < end)
      rotateAndStore(columns_[c], c, layer, rows.begin, end - rows.begin,
                     w.rows + uint64_t(c) * shareRows_);
}

/// Rows of the qkv matrix: rotates the pairs of queries and keys, and puts each
/// where attention reads it.
void Forward::rotateAndStore(const Column &column, uint32_t index,
                             uint32_t layer, uint32_t row, uint32_t count,
                             const float *sums) {
  const uint32_t dim = m_.headDim, half = dim / 2,
                 block = column.position / kKvBlock,
                 at = column.position % kKvBlock;
  const float *rope = rope_ + uint64_t(column.position) * dim;
  for (uint32_t i = 0; i != count; i += 2) {
    uint32_t head = (row + i) / dim, r = (row + i) % dim;
    float a = sums[i], b = sums[i + 1];
    if (head >= m_.numHeads + m_.numKvHeads) {
      float *value = kvHead(column.row, block, layer, true,
                            head - m_.numHeads - m_.numKvHeads) +
                     at * headStride_ + r;
      value[0] = a;
      value[1] = b;
      continue;
    }
    uint32_t j = r / 2;
    float cosine = rope[2 * j], sine = rope[2 * j + 1];
    float first = a * cosine - b * sine, second = b * cosine + a * sine;
    if (head < m_.numHeads) {
      float *q = q_ + (uint64_t(index) * m_.numHeads + head) * headStride_;
      q[j] = first;
      q[j + half] = second;
    } else {
      float *key =
          kvHead(column.row, block, layer, false, head - m_.numHeads) + at;
      key[j * kKvBlock] = first;
      key[(j + half) * kKvBlock] = second;
    }
  }
}

void Forward::attention(Worker &w, unsigned share, uint32_t layer) {
  uint32_t task = 0;
  for (uint32_t c = 0; c != columns_.size(); ++c)
    for (uint32_t chunk = 0; chunk != chunksOf(columns_[c].position); ++chunk)
      for (uint32_t head = 0; head != m_.numKvHeads; ++head)
        if (task++ % shares() == share)
          attentionTask(w, layer, c, head, chunk);
}

void Forward::attentionTask(Worker &w, uint32_t layer, uint32_t column,
                            uint32_t kvHeadIndex, uint32_t chunk) {
  const Column &c = columns_[column];
  const uint32_t heads = m_.numHeads / m_.numKvHeads,
                 firstBlock = chunk * (kChunkPositions / kKvBlock);
  float temperature = 1;
  if (m_.attentionTemperatureLength &&
      c.position > m_.attentionTemperatureLength)
    temperature = float(std::log2(double(c.position)) /
                        std::log2(double(m_.attentionTemperatureLength)));
  k_.attention({.q = q_ + (uint64_t(column) * m_.numHeads +
                           uint64_t(kvHeadIndex) * heads) *
                              headStride_,
                .heads = heads,
                .headStride = headStride_,
                .keys = kvHead(c.row, firstBlock, layer, false, kvHeadIndex),
                .values = kvHead(c.row, firstBlock, layer, true, kvHeadIndex),
                .blockStride = uint64_t(m_.numLayers) * 2 * m_.numKvHeads *
                               kKvBlock * headStride_,
                .positions = std::min(c.position + 1 - chunk * kChunkPositions,
                                      kChunkPositions),
                .scale = float(m_.attentionScale),
                .cap = float(m_.attentionCap),
                .temperature = temperature,
                .scores = w.scores,
                .out = partial(column, kvHeadIndex * heads, chunk),
                .outStride = chunks_ * partialStride_});
}

/// The attention's outputs of all columns, as operands of the next matrix.
void Forward::mergeHeads(Worker &w) {
  for (uint32_t c = 0; c != columns_.size(); ++c) {
    float *natural = w.attention + uint64_t(c) * attentionStride_;
    for (uint32_t head = 0; head != m_.numHeads; ++head)
      k_.mergePartials(partial(c, head, 0), partialStride_,
                       chunksOf(columns_[c].position), headStride_, m_.headDim,
                       natural + head * m_.headDim);
    k_.permute(storage_, natural, m_.numHeads * m_.headDim,
               w.attentionOperand + uint64_t(c) * attentionStride_);
  }
}

void Forward::attentionOutput(Worker &w, unsigned share, uint32_t layer) {
  Gather gather;
  for (uint32_t c = 0; c != columns_.size(); ++c)
    gather.add(c, w.attentionOperand + uint64_t(c) * attentionStride_,
               attnSums_ + uint64_t(c) * hiddenStride_);
  multiply(attnOut_, share, layer, gather);
}

/// Every thread chooses for every column: cheaper than handing the choice over.
void Forward::route(Worker &w, unsigned thread, uint32_t layer) {
  std::fill_n(w.active, m_.numExperts, 0);
  for (uint32_t c = 0; c != columns_.size(); ++c) {
    Choice *chosen = w.choices + uint64_t(c) * m_.expertsPerToken;
    if (m_.hash)
      *chosen = {m_.hash->expertOf(m_.hash->hash(uint32_t(columns_[c].id),
                                                 columns_[c].position),
                                   columns_[c].position),
                 1};
    else
      chooseLearned(w, layer, c);
    for (uint32_t i = 0; i != m_.expertsPerToken; ++i) {
      w.active[chosen[i].expert] = 1;
      if (thread == 0)
        routing_[(uint64_t(layer) * kMaxColumns + c) * m_.expertsPerToken + i] =
            chosen[i].expert;
    }
  }
}

/// The k largest probabilities of a softmax over all experts, ties to the lower
/// index, not divided by their sum.
void Forward::chooseLearned(Worker &w, uint32_t layer, uint32_t column) {
  k_.dotRows(vector(layer, uint64_t(4) * m_.hiddenSize), m_.numExperts,
             m_.hiddenSize, w.normed + uint64_t(column) * hiddenStride_,
             w.router);
  k_.scaleAndCap(w.router, m_.numExperts, 1, float(m_.routerCap));
  k_.softmax(w.router, m_.numExperts);
  Choice *chosen = w.choices + uint64_t(column) * m_.expertsPerToken;
  for (uint32_t i = 0; i != m_.expertsPerToken; ++i) {
    uint32_t top = uint32_t(
        std::max_element(w.router, w.router + m_.numExperts) - w.router);
    chosen[i] = {top, w.router[top]};
    w.router[top] = -1;
  }
  std::sort(
      chosen, chosen + m_.expertsPerToken,
      [](const Choice &a, const Choice &b) { return a.expert < b.expert; });
}

void Forward::gatherExpert(const Worker &w, uint32_t expert, Gather &gather,
                           float **act) const {
  gather.count = 0;
  for (uint32_t c = 0; c != columns_.size(); ++c)
    for (uint32_t i = 0; i != m_.expertsPerToken; ++i) {
      const Choice &choice = w.choices[uint64_t(c) * m_.expertsPerToken + i];
      if (choice.expert != expert)
        continue;
      act[gather.count] =
          act_ + (uint64_t(c) * m_.expertsPerToken + i) * actStride_;
      gather.add(c, nullptr, nullptr, choice.weight);
    }
}

void Forward::gateUp(Worker &w, unsigned share, uint32_t layer) {
  Gather gather;
  float *act[kMaxColumns];
  for (uint32_t e = 0; e != m_.numExperts; ++e) {
    if (!w.active[e] || !experts_[e].kept)
      continue;
    gatherExpert(w, e, gather, act);
    gatedMlp(w, share, layer, experts_[e].gateUp, m_.expertWidth, gather, act);
  }
  if (!m_.denseWidth)
    return;
  gather.count = 0;
  for (uint32_t c = 0; c != columns_.size(); ++c) {
    act[c] = denseAct_ + uint64_t(c) * denseStride_;
    gather.add(c, nullptr, nullptr);
  }
  gatedMlp(w, share, layer, denseGateUp_, m_.denseWidth, gather, act);
}

/// A share of gelu(gate) * up, in the order in which the down matrix
/// reads it.
void Forward::gatedMlp(Worker &w, unsigned share, uint32_t layer,
                       const HostMatrix &matrix, uint32_t width, Gather &gather,
                       float *const *act) {
  RowRange rows = rowsOf(ceilDiv(2 * width, kTileRows), share, shares());
  uint32_t end = std::min(rows.end, 2 * width);
  if (rows.begin >= end)
    return;
  for (uint32_t i = 0; i != gather.count; ++i) {
    gather.x[i] = w.operand + uint64_t(gather.column[i]) * hiddenStride_;
    gather.y[i] = w.rows + uint64_t(i) * shareRows_ - rows.begin;
  }
  multiply(matrix, share, layer, gather);
  uint32_t first = rows.begin / 2, count = (end - rows.begin) / 2;
  for (uint32_t i = 0; i != gather.count; ++i) {
    k_.gatedGelu(m_.gelu == Gelu::kErf ? Gate::kErfGelu : Gate::kTanhGelu,
                 w.rows + uint64_t(i) * shareRows_, count, w.gated);
    for (uint32_t f = 0; f != count; ++f)
      act[i][permutedIndex(storage_, width, first + f)] = w.gated[f];
  }
}

/// Sums of the experts in ascending order, the dense MLP last; dropped experts
/// add nothing.
void Forward::down(Worker &w, unsigned share, uint32_t layer) {
  RowRange rows = rowsOf(ceilDiv(m_.hiddenSize, kTileRows), share, shares());
  for (uint32_t c = 0; c != columns_.size(); ++c)
    std::fill(moeSums_ + uint64_t(c) * hiddenStride_ + rows.begin,
              moeSums_ + uint64_t(c) * hiddenStride_ + rows.end, 0);
  Gather gather;
  gather.scaled = true;
  float *act[kMaxColumns];
  auto point = [&](uint32_t i) {
    gather.x[i] = act[i];
    gather.y[i] = moeSums_ + uint64_t(gather.column[i]) * hiddenStride_;
  };
  for (uint32_t e = 0; e != m_.numExperts; ++e) {
    if (!w.active[e] || !experts_[e].kept)
      continue;
    gatherExpert(w, e, gather, act);
    for (uint32_t i = 0; i != gather.count; ++i)
      point(i);
    multiply(experts_[e].down, share, layer, gather);
  }
  if (!m_.denseWidth)
    return;
  gather.count = 0;
  for (uint32_t c = 0; c != columns_.size(); ++c)
    gather.add(c, denseAct_ + uint64_t(c) * denseStride_,
               moeSums_ + uint64_t(c) * hiddenStride_);
  multiply(denseDown_, share, layer, gather);
}

void Forward::head(Worker &w, unsigned share) {
  uint64_t stride = alignUp(m_.vocabSize, kTileRows);
  Gather gather;
  for (uint32_t c = 0; c != columns_.size(); ++c)
    if (columns_[c].head)
      gather.add(c, w.operand + uint64_t(c) * hiddenStride_,
                 logits_ + c * stride);
  multiply(head_, share, 0, gather);
  RowRange rows = rowsOf(uint32_t(stride) / kTileRows, share, shares());
  uint32_t end = std::min(rows.end, m_.vocabSize);
  if (rows.begin >= end)
    return;
  for (uint32_t i = 0; i != gather.count; ++i) {
    uint32_t c = gather.column[i];
    k_.scaleAndCap(gather.y[i] + rows.begin, end - rows.begin,
                   float(m_.outputMultiplier), float(m_.finalCap));
    if (Candidate found =
            best(gather.y[i], rows.begin, end, columns_[c].position + 1);
        found.betterThan(w.candidates[c]))
      w.candidates[c] = found;
  }
}

/// The largest logit, or the largest with noise, of ids begin .. end - 1; the
/// lowest id of equal ones.
Forward::Candidate Forward::best(const float *logits, uint32_t begin,
                                 uint32_t end, uint32_t position) const {
  uint64_t key = sampling::noiseKey(picking_.seed, position);
  auto value = [&](uint32_t id) {
    if (picking_.inverseTemperature == 0)
      return logits[id];
    double noise = -std::log(-std::log(double(sampling::uniform(key, id))));
    return logits[id] * picking_.inverseTemperature + float(noise);
  };
  Candidate found{value(begin), int32_t(begin)};
  for (uint32_t id = begin + 1; id < end; ++id)
    if (float v = value(id); v > found.value)
      found = {v, int32_t(id)};
  return found;
}

} // namespace grok::cpu
