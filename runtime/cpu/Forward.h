// One forward step on the CPU: the phases of the plan, each cut into shares of
// the tiles that the threads take, with a barrier where values cross threads.
// Between barriers a thread keeps the residual stream of all columns for
// itself, as a slot of the decode kernel does, so norms and routing need no
// hand-over.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/Executor.h"
#include "runtime/cpu/HostArena.h"
#include "runtime/cpu/HostPlan.h"
#include "runtime/cpu/Kernels.h"
#include "runtime/cpu/WorkerPool.h"

namespace grok::cpu {

/// Columns of one step at most: rows of a batch, or several prompt positions of
/// a row.
inline constexpr uint32_t kMaxColumns = 16;
/// Positions of an attention task. Part of the numerics: partial outputs are
/// merged chunk by chunk.
inline constexpr uint32_t kChunkPositions = 256;

/// One position of one row. Columns of a row are consecutive and ascending in
/// position, and everything before the first is in the KV cache.
struct Column {
  uint32_t row, position;
  int32_t id;
  bool head; // logits are wanted
};

/// How a step picks the next token.
struct Picking {
  float inverseTemperature = 0; // 0: greedy
  uint64_t seed = 0;
};

class Forward {
public:
  /// `blob` must outlive it. ResourceExhausted if the memory is not there.
  static absl::StatusOr<std::unique_ptr<Forward>>
  create(const ModelConfig &model, const PlanTables &plan,
         std::span<const uint8_t> blob, const LoadLimits &limits,
         unsigned threads, const Kernels &kernels);

  /// Computes the columns (1 .. kMaxColumns) and updates the KV cache.
  void step(std::span<const Column> columns, const Picking &picking);

  /// Of the last step, by index of the column. Only for columns with `head`.
  std::span<const float> logits(uint32_t column) const;
  int32_t picked(uint32_t column) const;
  /// Experts chosen by a column in a layer, ascending.
  std::span<const uint32_t> routing(uint32_t layer, uint32_t column) const;
  /// Distinct experts that the last step computed, summed over the layers.
  uint32_t expertUses() const;

  /// Fills the KV entries of the first `positions` of rows 0 .. rows - 1 with
  /// zeros, in pages of their own.
  void clearKv(uint32_t rows, uint32_t positions);
  /// Bytes a second that the threads read together: from the blob, or if caches
  /// might hold that, from memory taken for it.
  absl::StatusOr<double> streamRate();

  uint64_t arenaBytes() const { return arena_.bytes(); }
  unsigned threads() const { return pool_.threads(); }
  const Kernels &kernels() const { return k_; }

private:
  struct Expert {
    bool kept = false;
    HostMatrix gateUp, down;
  };
  struct Choice {
    uint32_t expert;
    float weight;
  };
  struct Candidate {
    float value = 0;
    int32_t id = -1; // -1: none yet

    /// Of equal ones the lowest id.
    bool betterThan(const Candidate &other) const {
      return id >= 0 && (other.id < 0 || value > other.value ||
                         (value == other.value && id < other.id));
    }
  };
  /// What a thread has for itself; the offsets of `own` in the arena.
  struct Worker {
    float *residual; // [columns][hiddenStride]
    float *normed;   // [columns][hiddenStride], natural order
    float *operand;  // [columns][hiddenStride], permuted
    float *attention, *attentionOperand; // [columns][attentionStride]
    float *rows;           // [columns][shareRows]: sums of a share's rows
    float *gated;          // [shareRows / 2]
    float *scores;         // [heads per kv head][kChunkPositions]
    float *router;         // [experts]
    Choice *choices;       // [columns][expertsPerToken]
    Candidate *candidates; // [columns]
    uint32_t *active;      // [experts]: 1 where some column chose it
  };
  struct Gather;

  Forward(const ModelConfig &model, const PlanTables &plan,
          std::span<const uint8_t> blob, const LoadLimits &limits,
          unsigned threads, const Kernels &kernels);
  void planMatrices(const PlanTables &plan);
  absl::Status planArena();
  /// Addresses rather than pointers: the first call, with base 0, only
  /// measures.
  void placeWorkers(uintptr_t base);

  void runThread(unsigned thread);
  /// Calls `work` with the shares that the thread gets of a phase.
  template <typename Work> void forShares(unsigned thread, const Work &work) {
    while (std::optional<unsigned> share = pool_.takeShare(thread, sharesEach_))
      work(*share);
  }
  unsigned shares() const { return pool_.threads() * sharesEach_; }
  void embed(Worker &w);
  void embedColumn(const Column &column, float *out) const;
  void embedTied(uint32_t id, float *out) const;
  void normalize(Worker &w, const float *gain);
  void qkv(Worker &w, unsigned share, uint32_t layer);
  void rotateAndStore(const Column &column, uint32_t index, uint32_t layer,
                      uint32_t row, uint32_t count, const float *sums);
  void attention(Worker &w, unsigned share, uint32_t layer);
  void attentionTask(Worker &w, uint32_t layer, uint32_t column,
                     uint32_t kvHead, uint32_t chunk);
  float *partial(uint32_t column, uint32_t head, uint32_t chunk) const;
  void mergeHeads(Worker &w);
  void attentionOutput(Worker &w, unsigned share, uint32_t layer);
  void route(Worker &w, unsigned thread, uint32_t layer);
  void chooseLearned(Worker &w, uint32_t layer, uint32_t column);
  void gateUp(Worker &w, unsigned share, uint32_t layer);
  void gatedMlp(Worker &w, unsigned share, uint32_t layer,
                const HostMatrix &matrix, uint32_t width, Gather &gather,
                float *const *act);
  void down(Worker &w, unsigned share, uint32_t layer);
  void head(Worker &w, unsigned share);
  Candidate best(const float *logits, uint32_t begin, uint32_t end,
                 uint32_t position) const;
  /// The columns that chose an expert; `act` gets their activations of it.
  void gatherExpert(const Worker &w, uint32_t expert, Gather &gather,
                    float **act) const;

  void multiply(const HostMatrix &matrix, unsigned share, uint32_t layer,
                const Gather &gather) const;
  const float *vector(uint32_t layer, uint64_t floatOffset) const;
  float *kvHead(uint32_t row, uint32_t block, uint32_t layer, bool values,
                uint32_t head) const;
  uint32_t chunksOf(uint32_t position) const {
    return position / kChunkPositions + 1;
  }

  const ModelConfig m_;
  const std::span<const uint8_t> blob_;
  const Kernels &k_;
  const Quantization quantization_;
  const Storage rowStorage_, storage_; // of an untied embedding, of matrices
  const uint32_t blockSteps_, maxBatch_, maxSeq_;
  const uint64_t vectorsOffset_, vectorsLayerBytes_, kvReserve_;
  WorkerPool pool_;
  const unsigned sharesEach_; // of a phase, for each thread

  HostMatrix qkv_, attnOut_, denseGateUp_, denseDown_, head_;
  std::vector<Expert> experts_;
  RowLocator tiedRows_;
  std::vector<EmbeddingExtent> embedding_;

  uint32_t hiddenStride_, attentionStride_, headStride_, actStride_,
      denseStride_, shareRows_ = 0, chunks_, rowBlocks_;
  uint64_t partialStride_;
  HostArena arena_;
  std::vector<Worker> workers_;
  uint64_t workerBegin_ = 0, workerBytes_ = 0;
  float *rope_, *q_, *partials_, *attnSums_, *act_, *denseAct_, *moeSums_,
      *logits_, *kv_;
  uint32_t *routing_; // [layers][columns][expertsPerToken]

  std::span<const Column> columns_; // of the step in progress
  Picking picking_;
  int32_t picked_[kMaxColumns] = {};
};

} // namespace grok::cpu
