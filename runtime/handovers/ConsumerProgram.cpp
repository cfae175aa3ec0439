// The consumer warps: consume() and computeStep() in codegen/Device/decode.h.
#include <algorithm>

#include "runtime/handovers/SlotProgram.h"

namespace grok::handovers {
namespace {

class Consumer {
public:
  Consumer(Plans &plans, uint32_t slot)
      : plans_(plans), l_(plans.launch), b_(plans.buffers), slot_(slot) {}

  Process write() {
    for (step_ = 0; step_ != l_.steps.size(); ++step_)
      writeStep();
    return {slot_, std::move(ops_)};
  }

private:
  const Step &step() const { return l_.steps[step_]; }
  uint32_t parity() const { return l_.parity(step_, layer_); }
  bool active(uint32_t b) const { return step().active[b]; }

  Op &add(OpKind kind, Phase phase) {
    ops_.push_back(
        {.kind = kind, .phase = phase, .step = step_, .layer = layer_});
    return ops_.back();
  }
  void words(OpKind kind, Phase phase, std::vector<WordRange> words) {
    if (words.empty())
      return;
    Op &op = add(kind, phase);
    op.epoch = l_.epoch(step_, layer_);
    op.words = std::move(words);
  }
  void await(Phase phase, std::vector<WordRange> list) {
    words(OpKind::kAwait, phase, std::move(list));
  }
  void publish(Phase phase, std::vector<WordRange> list) {
    words(OpKind::kPublish, phase, std::move(list));
  }
  /// Of a word that stands for something in shared memory.
  void ofBlock(OpKind kind, Phase phase, uint32_t epoch,
               std::vector<WordRange> list) {
    words(kind, phase, std::move(list));
    ops_.back().epoch = epoch;
  }

  /// Staging: an operand is made of the words range(b) of the rows there(b). In
  /// a pair, and if the whole vector is `oneBlock`, each block makes the rows
  /// that it keeps and gives them to the other. Each also waits until the
  /// other one reads no older operand; the kernel's stageWords leaves that out
  /// where the block has no row, see docs/hard-to-break.md.
  template <class There, class Range>
  void stage(Phase phase, bool oneBlock, There there, Range range) {
    const bool shares = oneBlock && l_.pairShares();
    const uint32_t peer = slot_ ^ 1;
    std::vector<WordRange> awaited, gives = {b_.given(peer)},
                                    gets = {b_.given(slot_)};
    lent_.clear();
    for (uint32_t b = 0; b != l_.rows(); ++b) {
      if (!there(b))
        continue;
      if (shares && !l_.keeps(slot_, b)) {
        lent_.push_back(b_.operand(slot_, b));
        continue;
      }
      gives.push_back(b_.operand(peer, b));
      range(b, awaited);
    }
    shares_ += shares ? 1 : 0;
    if (shares)
      ofBlock(OpKind::kPublish, phase, shares_, {b_.wanted(peer)});
    await(phase, std::move(awaited));
    if (!shares)
      return;
    ofBlock(OpKind::kAwait, phase, shares_, {b_.wanted(slot_)});
    ofBlock(OpKind::kPublish, phase, shares_, std::move(gives));
    gets.insert(gets.end(), lent_.begin(), lent_.end());
    ofBlock(OpKind::kAwait, phase, shares_, std::move(gets));
  }

  const SlotExtent &extent(uint32_t matrix) const {
    return l_.plan.matrices[matrix].slots[slot_];
  }
  uint32_t width(uint32_t matrix) const {
    return matrixShape(l_.model, l_.plan.matrices[matrix].kind).k;
  }
  void take(Phase phase, const Moves &moves, std::vector<StreamItem> items) {
    Op &op = add(OpKind::kTake, phase);
    op.moves = moves;
    op.items = std::move(items);
  }

  /// FirstTiles::take: tiles that are waited for before the operand is there.
  void takeAhead(uint32_t matrix, Phase phase) {
    const ProductMoves &moves =
        plans_.movesOf(width(matrix), extent(matrix).tileCount);
    if (moves.ahead && l_.shape.maxBatch == 1) // a batch needs the registers
      add(OpKind::kAhead, phase).moves = moves.ahead;
  }

  /// matvec: stage() makes the operand, unless it is `staged`; after(begin,
  /// end) hands tiles over.
  template <class Stage, class After>
  void product(uint32_t matrix, Phase phase, bool &staged, Stage stage,
               After after) {
    const SlotExtent &mine = extent(matrix);
    const ProductMoves &moves = plans_.movesOf(width(matrix), mine.tileCount);
    const bool one = oneBlock(matrix);
    // Without a tile too the other block waits for the rows that this one has.
    if (one && !staged && (l_.shape.cluster == 2 || mine.tileCount > 0)) {
      stage();
      staged = true;
    }
    for (uint32_t g = 0; g != moves.groups.size(); ++g) {
      if (!one)
        stage();
      take(phase, moves.groups[g],
           g ? std::vector<StreamItem>()
             : std::vector{matrixItem(l_, matrix, slot_, step_, layer_)});
      if (!lent_.empty()) // is read until here
        ofBlock(OpKind::kAwait, phase, shares_, lent_);
      uint32_t begin = mine.tileBegin + g * kGroupTiles;
      after(begin,
            std::min(begin + kGroupTiles, mine.tileBegin + mine.tileCount));
    }
  }
  /// The same with the norm of the residual stream, which needs no words: it
  /// has been staged, or is, K block after K block, by the slot alone.
  template <class After>
  void normedProduct(uint32_t matrix, Phase phase, After after) {
    bool staged = true;
    product(matrix, phase, staged, [] {}, after);
  }
  /// Whether a vector is one K block, staged once for all groups of tiles.
  bool oneBlock(uint32_t matrix) const {
    return ceilDiv(width(matrix), kTileK) <= l_.shape.blockSteps;
  }

  void writeStep() {
    layer_ = 0;
    if (l_.model.hash)
      announceExperts();
    else
      announce(); // the positions
    for (layer_ = 0; layer_ != l_.layers(); ++layer_) {
      takeAhead(plans_.qkv, Phase::kQkv);
      if (layer_ > 0)
        finishLayer(layer_ - 1);
      else
        stage(
            Phase::kQkv, oneBlock(plans_.qkv),
            [&](uint32_t b) { return active(b); },
            [](uint32_t, std::vector<WordRange> &) {});
      writeLayer();
    }
    finishLayer(l_.layers() - 1);
    layer_ = l_.layers();
    add(OpKind::kFence, Phase::kHead);
    if (step().headNeeded)
      normedProduct(plans_.head, Phase::kHead, [](uint32_t, uint32_t) {});
    chooseTokens();
  }

  void writeLayer() {
    qkv();
    attention();
    merge();
    attnOut();
    expertInput();
    gateUp();
    down();
  }

  // The word of `taken` with epoch n says that announcement n has been read.
  void awaitTaken(uint32_t n) {
    if (n == 0)
      return;
    Op &op = add(OpKind::kAwait, Phase::kRoute);
    op.epoch = n;
    op.words = {b_.taken(slot_)};
  }
  void announce() {
    Op &op = add(OpKind::kPublish, Phase::kRoute);
    op.epoch = ++announced_;
    op.words = {b_.announced(slot_)};
  }
  void announceExperts() {
    awaitTaken(announced_);
    announce();
  }

  void qkv() {
    normedProduct(plans_.qkv, Phase::kQkv, [&](uint32_t begin, uint32_t end) {
      std::vector<WordRange> list;
      for (uint32_t b = 0; b != l_.rows(); ++b)
        if (active(b))
          b_.qkvOutputs(parity(), b, begin, end, list);
      publish(Phase::kQkv, std::move(list));
      ops_.back().storesKv =
          end * kTileRows > l_.shape.heads * l_.shape.headDim;
    });
  }

  void attention() {
    const bool tensor = attentionOnTensorCores(l_.shape);
    for (const AttentionTask &task : attentionTasks(l_, slot_, step())) {
      const uint32_t row = task.row;
      const uint64_t bytes = taskBytes(l_, task);
      const Moves moves = attentionMoves(l_.shape, bytes);
      if (tensor) // waits for its keys and values first
        add(OpKind::kAhead, Phase::kAttention).moves = moves;
      std::vector<WordRange> list = {b_.queries(parity(), row, task.kvHead)};
      if (task.block == step().position[row] / kKvPositions)
        for (uint32_t value : {0, 1})
          list.push_back(b_.newKv(parity(), row, value, task.kvHead));
      await(Phase::kAttention, std::move(list));
      if (bytes)
        take(Phase::kAttention, moves,
             {cacheItem(l_, task, 0, step_, layer_),
              cacheItem(l_, task, 1, step_, layer_)});
      list.clear();
      for (uint32_t i = 0; i != l_.shape.headsPerKv(); ++i)
        list.push_back(b_.partials(parity(), row,
                                   task.kvHead * l_.shape.headsPerKv() + i,
                                   task.block));
      publish(Phase::kAttention, std::move(list));
    }
  }

  void merge() {
    const uint32_t heads = l_.model.numHeads;
    uint32_t next = slot_, base = 0;
    for (uint32_t b = 0; b != l_.rows(); ++b) {
      if (!active(b))
        continue;
      for (; next < base + heads; next += l_.plan.slots) {
        std::vector<WordRange> list;
        for (uint32_t k = 0; k <= step().position[b] / kKvPositions; ++k)
          list.push_back(b_.partials(parity(), b, next - base, k));
        await(Phase::kMerge, std::move(list));
        publish(Phase::kMerge, {b_.attention(parity(), b, next - base)});
      }
      base += heads;
    }
  }

  void attnOut() {
    takeAhead(plans_.attnOut, Phase::kAttnOut);
    bool staged = false;
    product(
        plans_.attnOut, Phase::kAttnOut, staged,
        [&] {
          stage(
              Phase::kAttnOut, oneBlock(plans_.attnOut),
              [&](uint32_t b) { return active(b); },
              [&](uint32_t b, std::vector<WordRange> &list) {
                list.push_back(b_.attention(parity(), b));
              });
        },
        [&](uint32_t begin, uint32_t end) {
          std::vector<WordRange> list;
          for (uint32_t b = 0; b != l_.rows(); ++b)
            if (active(b))
              list.push_back(b_.attnOut(parity(), b, begin, end));
          publish(Phase::kAttnOut, std::move(list));
        });
  }

  void takeFirstExpert(const std::vector<uint32_t> &matrices, Phase phase) {
    std::vector<uint32_t> experts = l_.activeExperts(step_, layer_);
    if (!experts.empty())
      takeAhead(matrices[experts.front()], phase);
  }

  void expertInput() {
    if (l_.model.hash)
      takeFirstExpert(plans_.gateUp, Phase::kGateUp);
    stage(
        Phase::kGateUp, oneBlock(plans_.qkv),
        [&](uint32_t b) { return active(b); },
        [&](uint32_t b, std::vector<WordRange> &list) {
          list.push_back(b_.attnOut(parity(), b, 0, b_.hiddenTiles()));
        });
    if (!l_.model.hash)
      route();
  }

  void route() {
    const uint32_t experts = l_.model.numExperts;
    // A pair computes those of its two slots, each block for its rows.
    const uint32_t together = l_.pairShares() ? 2 : 1;
    for (uint32_t first = slot_ / together * together; first < experts;
         first += l_.plan.slots)
      for (uint32_t e = first; e != std::min(first + together, experts); ++e) {
        std::vector<WordRange> list;
        for (uint32_t b = 0; b != l_.rows(); ++b)
          if (active(b) && l_.keeps(slot_, b))
            list.push_back(b_.router(parity(), b, e, 1));
        publish(Phase::kRoute, std::move(list));
      }
    std::vector<WordRange> all;
    for (uint32_t b = 0; b != l_.rows(); ++b)
      if (active(b))
        all.push_back(b_.router(parity(), b, 0, experts));
    await(Phase::kRoute, std::move(all));
    announceExperts();
  }

  void gateUp() {
    auto emit = [&](uint32_t matrix, auto place) {
      normedProduct(matrix, Phase::kGateUp, [&](uint32_t begin, uint32_t end) {
        std::vector<WordRange> list;
        for (uint32_t b = 0; b != l_.rows(); ++b)
          if (int at = place(b); at >= 0)
            list.push_back(
                b_.activations(parity(), b, uint32_t(at), begin, end));
        publish(Phase::kGateUp, std::move(list));
      });
    };
    const uint32_t perToken = l_.model.expertsPerToken;
    for (uint32_t e : l_.activeExperts(step_, layer_))
      emit(plans_.gateUp[e], [&](uint32_t b) {
        uint32_t place = l_.place(step_, layer_, b, e);
        return place < perToken ? int(place) : -1;
      });
    if (l_.model.denseWidth)
      emit(plans_.denseGateUp,
           [&](uint32_t b) { return active(b) ? int(perToken) : -1; });
  }

  void down() {
    const uint32_t perToken = l_.model.expertsPerToken;
    const bool dense = l_.model.denseWidth > 0;
    takeFirstExpert(plans_.down, Phase::kDown);
    bool staged = false;
    for (uint32_t e : l_.activeExperts(step_, layer_)) {
      const uint32_t matrix = plans_.down[e];
      // One expert a token: its activations serve every expert's matrix.
      const bool once = perToken == 1 && oneBlock(matrix);
      staged &= once;
      auto placeOf = [&](uint32_t b) {
        const bool any =
            active(b) && l_.lastKept(step_, layer_, b) != l_.model.numExperts;
        return once ? (any ? 0 : perToken) : l_.place(step_, layer_, b, e);
      };
      product(
          matrix, Phase::kDown, staged,
          [&] {
            stage(
                Phase::kDown, oneBlock(matrix),
                [&](uint32_t b) { return placeOf(b) < perToken; },
                [&](uint32_t b, std::vector<WordRange> &list) {
                  list.push_back(b_.activations(parity(), b, placeOf(b)));
                });
          },
          [&](uint32_t begin, uint32_t end) {
            std::vector<WordRange> list;
            for (uint32_t b = 0; b != l_.rows() && !dense; ++b)
              if (l_.place(step_, layer_, b, e) < perToken &&
                  l_.lastKept(step_, layer_, b) == e)
                list.push_back(b_.moeOut(parity(), b, begin, end));
            publish(Phase::kDown, std::move(list));
          });
    }
    if (dense)
      denseDown();
  }

  void denseDown() {
    bool staged = false;
    product(
        plans_.denseDown, Phase::kDown, staged,
        [&] {
          stage(
              Phase::kDown, oneBlock(plans_.denseDown),
              [&](uint32_t b) { return active(b); },
              [&](uint32_t b, std::vector<WordRange> &list) {
                list.push_back(
                    b_.activations(parity(), b, l_.model.expertsPerToken));
              });
        },
        [&](uint32_t begin, uint32_t end) {
          std::vector<WordRange> list;
          for (uint32_t b = 0; b != l_.rows(); ++b)
            if (active(b))
              list.push_back(b_.moeOut(parity(), b, begin, end));
          publish(Phase::kDown, std::move(list));
        });
  }

  /// The end of layer `layer`, seen after the first tiles of the next one have
  /// been asked for.
  void finishLayer(uint32_t layer) {
    const uint32_t next = layer_;
    layer_ = layer;
    if (plans_.presence) {
      publish(Phase::kDown, {b_.presence(parity(), slot_, 1)});
      await(Phase::kDown, {b_.presence(parity(), 0, l_.plan.slots)});
    }
    stage(
        layer + 1 < l_.layers() ? Phase::kQkv : Phase::kHead,
        oneBlock(plans_.qkv), [&](uint32_t b) { return active(b); },
        [&](uint32_t b, std::vector<WordRange> &list) {
          if (l_.hasOutput(step_, layer, b))
            list.push_back(b_.moeOut(parity(), b, 0, b_.hiddenTiles()));
        });
    layer_ = next;
  }

  void chooseTokens() {
    const uint32_t stepParity = step_ % kParities;
    std::vector<WordRange> mine, all;
    for (uint32_t b = 0; b != l_.rows(); ++b) {
      mine.push_back(b_.candidates(stepParity, slot_, b));
      for (uint32_t s = 0; s != l_.plan.slots; ++s)
        all.push_back(b_.candidates(stepParity, s, b));
    }
    publish(Phase::kHead, std::move(mine));
    await(Phase::kHead, std::move(all));
    awaitTaken(announced_);
  }

  Plans &plans_;
  const Launch &l_;
  const Buffers &b_;
  const uint32_t slot_;
  uint32_t step_ = 0, layer_ = 0, announced_ = 0;
  uint32_t shares_ = 0;         // operands that the pair has shared
  std::vector<WordRange> lent_; // rows of the operand from the other block
  std::vector<Op> ops_;
};

} // namespace

Process consumerProcess(Plans &plans, uint32_t slot) {
  return Consumer(plans, slot).write();
}

} // namespace grok::handovers
