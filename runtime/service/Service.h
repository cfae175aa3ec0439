// Requests from any thread, answered by one thread that alone uses the
// executor.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <set>
#include <thread>

#include "absl/status/statusor.h"
#include "runtime/service/Batch.h"

namespace grok::service {

class Service {
public:
  /// `queue`: requests that may wait for a row of the batch. Executor and model
  /// must outlive the service.
  Service(Executor &executor, const ModelConfig &model, uint32_t queue);
  /// Every request that has no answer yet gets one, Cancelled; at most a turn
  /// of the batch is waited for. Not from a callback.
  ~Service();
  Service(const Service &) = delete;

  /// Takes a request into the queue and gives it a number, which is set before
  /// a callback can come. Callbacks come from the service's thread, perhaps
  /// before this returns, and hold up everybody's requests while they run.
  /// InvalidArgument if the executor would refuse it, ResourceExhausted if the
  /// queue is full; then no callback comes.
  absl::Status submit(Request request, uint64_t &number);
  /// ResourceExhausted if the queue has no place for so many more and one.
  absl::Status checkRoom(size_t more);
  /// The request ends as Cancelled after at most a turn, unless it has ended.
  void cancel(uint64_t number);
  /// Calls `body`, which may use the executor. FailedPrecondition if a request
  /// has no answer yet, or during another such call. Requests that come
  /// meanwhile wait.
  absl::Status runAlone(const std::function<absl::Status()> &body);
  bool onServiceThread() const {
    return std::this_thread::get_id() == thread_.get_id();
  }

private:
  void work();
  bool hasWork() const;
  absl::Status room(size_t more) const;
  void endWaiting(std::vector<Ended> &ended);
  absl::Status reasonToEnd(const Accepted &accepted, size_t newIds) const;
  absl::Status validate(const Request &request) const;

  Executor &executor_;
  const ModelConfig &model_;
  const size_t queue_;
  Batch batch_; // of the service's thread alone

  std::mutex mutex_; // for everything below
  std::condition_variable changed_;
  std::deque<Accepted> waiting_;
  std::set<uint64_t> cancelled_; // not yet noticed
  uint64_t last_ = 0;            // number given
  size_t unanswered_ = 0;        // requests that wait or have a row
  bool alone_ = false, ending_ = false;

  std::thread thread_; // last: it uses the others
};

} // namespace grok::service
