#include "runtime/service/Service.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "runtime/bundle/SignalsBlocked.h"

namespace grok::service {

absl::Status deadlineExceeded(size_t newIds, uint32_t wanted) {
  return absl::DeadlineExceededError(absl::StrFormat(
      "found %d of %d ids at the request's deadline, expected all", newIds,
      wanted));
}

Service::Service(Executor &executor, const ModelConfig &model, uint32_t queue)
    : executor_(executor), model_(model), queue_(queue), batch_(executor) {
  SignalsBlocked blocked;
  thread_ = std::thread([this] { work(); });
}

Service::~Service() {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

absl::Status Service::validate(const Request &request) const {
  BatchRequest batch;
  batch.rows = {{request.ids, 0, request.maxNew}};
  batch.temperature = request.temperature;
  if (!request.stopIds.empty())
    batch.eosId = std::ranges::max(request.stopIds);
  return validateRequest(batch, model_, executor_.maxBatch(),
                         executor_.maxSeq());
}

absl::Status Service::submit(Request request, uint64_t &number) {
  if (absl::Status status = validate(request); !status.ok())
    return status;
  const Clock::time_point at = request.received.value_or(Clock::now());
  Accepted accepted{0, at, std::move(request)};
  std::lock_guard lock(mutex_);
  if (absl::Status status = room(0); !status.ok())
    return status;
  accepted.number = number = ++last_;
  waiting_.push_back(std::move(accepted));
  ++unanswered_;
  changed_.notify_all();
  return absl::OkStatus();
}

/// Rows that are free but not taken yet count as places of the queue.
absl::Status Service::room(size_t more) const {
  if (unanswered_ + more < queue_ + executor_.maxBatch())
    return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrFormat(
      "found %d requests in the batch and %d in the queue, expected a free "
      "place; ask again later",
      executor_.maxBatch(), queue_));
}

absl::Status Service::checkRoom(size_t more) {
  std::lock_guard lock(mutex_);
  return room(more);
}

void Service::cancel(uint64_t number) {
  std::lock_guard lock(mutex_);
  if (unanswered_)
    cancelled_.insert(number);
  changed_.notify_all();
}

absl::Status Service::runAlone(const std::function<absl::Status()> &body) {
  {
    std::lock_guard lock(mutex_);
    if (alone_ || unanswered_)
      return absl::FailedPreconditionError(absl::StrFormat(
          "found %s, expected none while the model is used directly",
          alone_ ? "another call in progress"
                 : absl::StrFormat("%d submitted requests without an answer",
                                   unanswered_)));
    alone_ = true;
  }
  absl::Status status = body();
  std::lock_guard lock(mutex_);
  alone_ = false;
  changed_.notify_all();
  return status;
}

bool Service::hasWork() const {
  return ending_ || (!alone_ && (!waiting_.empty() || !batch_.empty()));
}

/// Why a request ends now; Ok: it goes on.
absl::Status Service::reasonToEnd(const Accepted &accepted,
                                  size_t newIds) const {
  const Request &request = accepted.request;
  if (ending_)
    return absl::CancelledError("the model is being freed");
  if (cancelled_.contains(accepted.number))
    return absl::CancelledError("the request was cancelled");
  if (request.deadline && *request.deadline <= Clock::now())
    return deadlineExceeded(newIds, request.maxNew);
  return absl::OkStatus();
}

void Service::endWaiting(std::vector<Ended> &ended) {
  std::deque<Accepted> rest;
  for (Accepted &accepted : waiting_) {
    absl::Status status = reasonToEnd(accepted, 0);
    if (status.ok()) {
      rest.push_back(std::move(accepted));
      continue;
    }
    Answer answer;
    answer.status = std::move(status);
    answer.times.answered = secondsSince(accepted.at);
    ended.push_back({std::move(accepted), std::move(answer)});
  }
  waiting_ = std::move(rest);
}

void Service::work() {
  std::vector<Ended> ended;
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return !ended.empty() || hasWork(); });
    batch_.end([&](const Accepted &accepted,
                   size_t newIds) { return reasonToEnd(accepted, newIds); },
               ended);
    endWaiting(ended);
    // Whatever had the number has been found, or has ended before.
    cancelled_.clear();
    for (; !batch_.full() && !waiting_.empty(); waiting_.pop_front())
      batch_.add(std::move(waiting_.front()));
    unanswered_ -= ended.size();
    if (ending_ && ended.empty())
      return;
    lock.unlock();
    for (Ended &e : ended)
      e.accepted.request.onAnswer(std::move(e.answer));
    ended.clear();
    if (!batch_.empty())
      batch_.turn(ended);
    lock.lock();
  }
}

} // namespace grok::service
