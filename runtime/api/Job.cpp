#include "runtime/api/Job.h"

namespace grok {

template <class F> void JobState::callBack(const F &call) {
  {
    std::lock_guard lock(mutex_);
    if (abandoned_)
      return;
    calling_ = std::this_thread::get_id();
  }
  call();
  std::lock_guard lock(mutex_);
  calling_ = {};
}

void JobState::ids(std::span<const int32_t> ids) {
  callBack([&] { onIds_(user_, ids.data(), uint32_t(ids.size())); });
}

void JobState::answer(service::Answer answer) {
  {
    std::lock_guard lock(mutex_);
    answer_ = std::move(answer);
    changed_.notify_all();
  }
  if (onDone_)
    callBack([&] { onDone_(user_, job_); });
  std::lock_guard lock(mutex_);
  finished_ = true;
  changed_.notify_all();
}

bool JobState::done() const {
  std::lock_guard lock(mutex_);
  return answer_.has_value();
}

bool JobState::wait(std::optional<service::Clock::time_point> until) const {
  std::unique_lock lock(mutex_);
  auto ended = [&] { return answer_.has_value(); };
  if (until)
    return changed_.wait_until(lock, *until, ended);
  changed_.wait(lock, ended);
  return true;
}

const service::Answer *JobState::outcome() const {
  std::lock_guard lock(mutex_);
  return answer_ ? &*answer_ : nullptr;
}

void JobState::abandon() {
  std::unique_lock lock(mutex_);
  abandoned_ = true;
  changed_.wait(lock, [&] {
    return finished_ || calling_ == std::this_thread::get_id();
  });
}

} // namespace grok
