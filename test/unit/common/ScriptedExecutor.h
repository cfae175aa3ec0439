// An executor for tests of those who use one: each next id follows from all ids
// before it, every row's cache is checked, and a run can be held back or fail.
#pragma once

#include <condition_variable>
#include <mutex>
#include <numeric>

#include "runtime/Executor.h"
#include "gtest/gtest.h"

namespace grok::test {

inline constexpr uint32_t kScriptedVocab = 97;

/// The id that follows `ids`.
inline int32_t scriptedNext(std::span<const int32_t> ids, uint64_t seed = 0) {
  uint64_t sum = seed;
  for (size_t i = 0; i != ids.size(); ++i)
    sum = sum * 31 + uint64_t(ids[i]) + i;
  return int32_t(sum % kScriptedVocab);
}

/// The `count` ids that continue a prompt.
inline std::vector<int32_t> scriptedIds(std::vector<int32_t> ids,
                                        uint32_t count, uint64_t seed = 0) {
  std::vector<int32_t> out;
  for (uint32_t i = 0; i != count; ++i) {
    out.push_back(scriptedNext(ids, seed));
    ids.push_back(out.back());
  }
  return out;
}

class ScriptedExecutor final : public Executor {
public:
  ScriptedExecutor(uint32_t maxBatch, uint32_t knownIdsPerStep = 1)
      : known_(knownIdsPerStep), cache_(maxBatch) {
    model.vocabSize = kScriptedVocab;
    model.maxPositions = kMaxSeq;
  }

  absl::StatusOr<BatchResult> run(const BatchRequest &request) override {
    {
      std::unique_lock lock(mutex_);
      ++begun_;
      changed_.notify_all();
      changed_.wait(lock, [&] { return allowed_ != 0; });
      --allowed_;
      runs.push_back(request);
      if (!failure_.ok())
        return failure_;
    }
    if (absl::Status status =
            validateRequest(request, model, maxBatch(), maxSeq());
        !status.ok())
      return status;
    BatchResult result;
    for (size_t i = 0; i != request.rows.size(); ++i)
      result.newIds.push_back(runRow(request.rows[i], cache_[i], request));
    return result;
  }

  /// Runs wait until they are allowed, one at a time.
  void hold() {
    std::lock_guard lock(mutex_);
    allowed_ = 0;
  }
  void allow(uint64_t count = ~0ull) {
    std::lock_guard lock(mutex_);
    allowed_ = count;
    changed_.notify_all();
  }
  /// Every run fails from now on.
  void fail(absl::Status status) {
    std::lock_guard lock(mutex_);
    failure_ = std::move(status);
  }
  /// Waits until so many runs have begun.
  void awaitRuns(uint64_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return begun_ >= count; });
  }

  uint32_t maxBatch() const override { return uint32_t(cache_.size()); }
  uint32_t maxSeq() const override { return kMaxSeq; }
  uint32_t knownIdsPerStep() const override { return known_; }
  std::string deviceName() const override { return "scripted"; }
  bool onCpu() const override { return true; }
  uint64_t memoryBytes() const override { return 0; }
  absl::StatusOr<BenchResult> bench(const BenchRequest &) override {
    return absl::UnimplementedError("bench");
  }
  absl::StatusOr<double> streamingCeiling() override {
    return absl::UnimplementedError("streamingCeiling");
  }
  absl::StatusOr<double> matrixRate() override {
    return absl::UnimplementedError("matrixRate");
  }
  absl::StatusOr<std::vector<TraceSpan>> trace(const BenchRequest &) override {
    return absl::UnimplementedError("trace");
  }
  absl::StatusOr<uint64_t> deviceBytesInUse() override {
    return absl::UnimplementedError("deviceBytesInUse");
  }
  absl::StatusOr<std::string> pciBusId() const override {
    return absl::UnimplementedError("pciBusId");
  }

  ModelConfig model;
  std::vector<BatchRequest> runs; // of the thread that runs; read when idle

private:
  static constexpr uint32_t kMaxSeq = 200;

  /// `cache`: the ids whose positions are computed.
  std::vector<int32_t> runRow(const RowRequest &row,
                              std::vector<int32_t> &cache,
                              const BatchRequest &request) {
    if (row.idle)
      return {};
    EXPECT_LE(row.start, cache.size());
    cache.resize(row.start);
    EXPECT_TRUE(std::equal(cache.begin(), cache.end(), row.ids.begin()));
    std::vector<int32_t> ids = row.ids, newIds;
    const uint64_t seed = request.temperature > 0 ? request.seed : 0;
    while (newIds.size() < row.maxNew &&
           (newIds.empty() || newIds.back() != request.eosId)) {
      newIds.push_back(scriptedNext(ids, seed));
      ids.push_back(newIds.back());
    }
    // The last generated id has no place in the cache.
    cache.assign(ids.begin(), ids.end() - !newIds.empty());
    return newIds;
  }

  const uint32_t known_;
  std::vector<std::vector<int32_t>> cache_; // [row]
  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t begun_ = 0, allowed_ = ~0ull;
  absl::Status failure_;
};

} // namespace grok::test
