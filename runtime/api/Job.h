// A submitted request as the C API shows it: what its owner and the service's
// thread share.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "runtime/include/grokrt.h"
#include "runtime/service/Service.h"

namespace grok {

/// The part of a job that callbacks reach, which may outlive the job.
class JobState {
public:
  JobState(grok_job *job, const grok_job_options &options)
      : job_(job), onIds_(options.on_ids), onDone_(options.on_done),
        user_(options.user) {}

  // From the service's thread.
  void ids(std::span<const int32_t> ids);
  void answer(service::Answer answer);

  // From the owner.
  bool done() const;
  /// False if the time was over first.
  bool wait(std::optional<service::Clock::time_point> until) const;
  /// Null before the end.
  const service::Answer *outcome() const;
  /// Returns when no callback runs or will; in one of them, no other will.
  void abandon();

private:
  /// Calls the owner's code unless the job was abandoned.
  template <class F> void callBack(const F &call);

  grok_job *const job_;
  const grok_ids_fn onIds_;
  const grok_done_fn onDone_;
  void *const user_;

  mutable std::mutex mutex_; // for everything below
  mutable std::condition_variable changed_;
  std::optional<service::Answer> answer_; // does not change once it is there
  bool finished_ = false;                 // the last callback is over
  bool abandoned_ = false;
  std::thread::id calling_; // the thread that runs a callback
};

} // namespace grok

struct grok_job {
  grok::service::Service *service = nullptr; // gone once the job has ended
  uint64_t number = 0;
  std::shared_ptr<grok::JobState> state;
};
