#include "runtime/handovers/Order.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace grok::handovers {
namespace {

/// Of each process, how many of its ops are known to have happened.
using Clock = std::vector<uint32_t>;

class Prover {
public:
  explicit Prover(const Network &network)
      : n_(network), next_(network.processes.size()),
        clocks_(next_.size(), Clock(next_.size())), after_(next_.size()) {
    for (size_t p = 0; p != next_.size(); ++p)
      after_[p].resize(n_.processes[p].ops.size());
  }

  /// Goes through the ops in an order that the waits for words allow.
  absl::Status run() {
    bool any = true;
    while (any) {
      any = false;
      for (uint32_t p = 0; p != next_.size(); ++p)
        while (next_[p] != n_.processes[p].ops.size() && canHappen(p)) {
          any = true;
          if (absl::Status status = happen(p); !status.ok())
            return status;
        }
    }
    for (uint32_t p = 0; p != n_.slots(); ++p)
      if (next_[p] != n_.processes[p].ops.size())
        return absl::FailedPreconditionError(
            absl::StrCat(n_.file, ": ", n_.place({p, next_[p]}),
                         ": waits for words whose writer waits for it"));
    return absl::OkStatus();
  }

private:
  bool canHappen(uint32_t p) const {
    const std::vector<OpRef> &after = n_.linked[p][next_[p]].after;
    return std::all_of(after.begin(), after.end(),
                       [&](OpRef ref) { return next_[ref.process] > ref.op; });
  }

  absl::Status happen(uint32_t p) {
    const OpRef at{p, next_[p]++};
    const LinkedOp &linked = n_.linked[p][at.op];
    Clock &clock = clocks_[p];
    for (OpRef ref : linked.after)
      if (clock[ref.process] <= ref.op)
        join(clock, after_[ref.process][ref.op]);
    for (OpRef ref : linked.demands)
      if (clock[ref.process] <= ref.op)
        return absl::FailedPreconditionError(demandText(n_, at, ref));
    clock[p] = at.op + 1;
    if (n_.op(at).kind == OpKind::kPublish)
      after_[p][at.op] = clock;
    return absl::OkStatus();
  }

  static void join(Clock &clock, const Clock &other) {
    for (size_t i = 0; i != clock.size(); ++i)
      clock[i] = std::max(clock[i], other[i]);
  }

  const Network &n_;
  std::vector<uint32_t> next_;
  std::vector<Clock> clocks_;
  std::vector<std::vector<Clock>> after_; // [process][op] of kPublish
};

} // namespace

absl::Status proveOrder(const Network &network) {
  return Prover(network).run();
}

} // namespace grok::handovers
