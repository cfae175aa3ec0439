// Requests that share the executor's batch. Each has a row from its start to
// its end. They advance in turns, a few positions of every row each: between
// two of them rows are given back and taken, so a deadline is kept to within a
// turn, and nobody waits for the end of another's request. What a row computes
// depends on neither the turns nor the other rows.
#pragma once

#include <optional>
#include <vector>

#include "runtime/Executor.h"
#include "runtime/service/Request.h"

namespace grok::service {

/// A request that ended.
struct Ended {
  Accepted accepted;
  Answer answer;
};

class Batch {
public:
  explicit Batch(Executor &executor)
      : executor_(executor), rows_(executor.maxBatch()) {}

  bool empty() const { return used_ == 0; }
  bool full() const { return used_ == rows_.size(); }
  /// Not when full. The executor has validated the request.
  void add(Accepted accepted);
  /// Takes out the requests that `reason` has an error for; they end with it.
  void end(const std::function<absl::Status(const Accepted &, size_t newIds)>
               &reason,
           std::vector<Ended> &ended);
  /// Every row computes its next positions. An error of the executor ends every
  /// request.
  void turn(std::vector<Ended> &ended);

private:
  struct Row {
    Accepted accepted;
    std::vector<int32_t> ids; // prompt and new ones
    uint32_t computed = 0;    // positions in the KV cache
    Answer answer;            // so far
  };
  /// Positions of a row in a turn.
  struct Share {
    uint32_t known, generated;
  };

  Share share() const;
  std::vector<size_t> nextGroup(const std::vector<bool> &done) const;
  absl::Status run(const std::vector<size_t> &group, const Share &share,
                   std::vector<Ended> &ended);
  RowRequest rowRequest(const Row &row, const Share &share) const;
  bool append(Row &row, std::span<const int32_t> newIds);
  Ended finish(size_t index, absl::Status status);

  Executor &executor_;
  std::vector<std::optional<Row>> rows_; // by the row of the KV cache
  size_t used_ = 0;
};

} // namespace grok::service
