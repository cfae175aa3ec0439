// What the other threads have for the server's: a prompt's ids, new ids and
// answers, and a descriptor that is readable while there are some.
#pragma once

#include <sys/eventfd.h>

#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/service/Request.h"
#include "tools/grokrun/serve/Descriptor.h"

namespace grok::serve {

/// Of one request: its next ids, its answer, or what its text became.
struct Event {
  uint64_t request = 0; // the server's number of it
  std::vector<int32_t> ids;
  std::optional<service::Answer> answer;
  std::optional<absl::StatusOr<std::vector<int32_t>>> prompt;
};

class Outbox {
public:
  Outbox() : wake_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}
  /// -1 if the system has no descriptor left.
  int descriptor() const { return wake_.get(); }

  void post(Event event) {
    std::lock_guard lock(mutex_);
    events_.push_back(std::move(event));
    ::eventfd_write(wake_.get(), 1);
  }
  std::vector<Event> take() {
    std::lock_guard lock(mutex_);
    eventfd_t count;
    ::eventfd_read(wake_.get(), &count);
    return std::exchange(events_, {});
  }

private:
  const Descriptor wake_;
  std::mutex mutex_;
  std::vector<Event> events_;
};

} // namespace grok::serve
