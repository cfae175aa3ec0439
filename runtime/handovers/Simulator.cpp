#include "runtime/handovers/Simulator.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "runtime/handovers/RingMoves.h"

namespace grok::handovers {
namespace {

class Simulator {
public:
  Simulator(const Network &network, const Schedule &schedule)
      : n_(network), schedule_(schedule), ready_(schedule),
        states_(network.processes.size()), rings_(network.slots()),
        waiting_(network.processes.size()) {}

  absl::Status run() {
    uint32_t left = n_.slots();
    for (uint32_t p = 0; p != states_.size(); ++p)
      if (!n_.processes[p].ops.empty())
        ready_.insert(p);
    while (left > 0) {
      if (ready_.empty())
        return stuck();
      const uint32_t p = ready_.pick();
      bool runs = true;
      for (uint32_t i = 0; i != schedule_.turn && runs; ++i)
        runs = advance(p);
      if (!violation_.ok())
        return violation_;
      if (!runs) {
        ready_.erase(p);
        left -= p < n_.slots() && done(p) ? 1 : 0;
      }
    }
    return absl::OkStatus();
  }

private:
  struct State {
    uint32_t op = 0;    // the next one
    uint32_t part = 0;  // of it: moves or chunks that are done
    bool asked = false; // it is known to whom it waits for
    uint32_t lacks = 0; // ops that it waits for
  };
  struct Waiter {
    uint32_t op, process; // what it waits for, and who it is
  };
  struct Ring {
    uint32_t pushed = 0, released = 0; // chunks
  };

  bool done(uint32_t p) const {
    return states_[p].op == n_.processes[p].ops.size();
  }
  bool happened(OpRef ref) const { return states_[ref.process].op > ref.op; }

  absl::Status error(const std::string &text) const {
    return absl::FailedPreconditionError(
        absl::StrCat(text, " (schedule: ", schedule_.name, ")"));
  }

  /// One op, or one part of it. False: the process cannot go on.
  bool advance(uint32_t p) {
    if (done(p))
      return false;
    State &state = states_[p];
    const Op &op = n_.processes[p].ops[state.op];
    const LinkedOp &linked = n_.linked[p][state.op];
    switch (op.kind) {
    case OpKind::kAwait:
      return awaits(p, linked);
    case OpKind::kPublish:
    case OpKind::kFence:
      return finish(p, linked);
    case OpKind::kAhead:
      return rings_[p].pushed >= linked.chunk + op.moves->front().await &&
             finish(p, linked);
    case OpKind::kTake:
      return takes(p, op, linked);
    case OpKind::kPush:
      return pushes(p, op, linked);
    }
    return false;
  }

  bool awaits(uint32_t p, const LinkedOp &linked) {
    State &state = states_[p];
    if (!state.asked) {
      state.asked = true;
      for (OpRef ref : linked.after)
        if (!happened(ref)) {
          ++state.lacks;
          waiting_[ref.process].push_back({ref.op, p});
        }
    }
    return state.lacks == 0 && finish(p, linked);
  }

  bool takes(uint32_t p, const Op &op, const LinkedOp &linked) {
    State &state = states_[p];
    Ring &ring = rings_[p];
    const RingMove &move = (*op.moves)[state.part];
    if (ring.pushed < linked.chunk + move.await)
      return false;
    if (linked.chunk + move.release > ring.released) {
      ring.released = linked.chunk + move.release;
      ready_.insert(n_.producerOf(p));
    }
    return ++state.part < op.moves->size() || finish(p, linked);
  }

  bool pushes(uint32_t p, const Op &op, const LinkedOp &linked) {
    State &state = states_[p];
    const uint32_t slot = p - n_.slots();
    Ring &ring = rings_[slot];
    if (ring.pushed - ring.released == n_.ringStages)
      return false;
    if (state.part == 0 && !demandsHold(p, linked))
      return false;
    ++ring.pushed;
    ready_.insert(slot);
    return ++state.part < chunksOf(op.items.front().bytes, n_.chunkBytes) ||
           finish(p, linked);
  }

  bool demandsHold(uint32_t p, const LinkedOp &linked) {
    for (OpRef ref : linked.demands)
      if (!happened(ref)) {
        violation_ = error(demandText(n_, {p, states_[p].op}, ref));
        return false;
      }
    return true;
  }

  bool finish(uint32_t p, const LinkedOp &linked) {
    State &state = states_[p];
    const bool publishes =
        n_.processes[p].ops[state.op].kind == OpKind::kPublish;
    if (publishes && !demandsHold(p, linked))
      return false;
    state = {state.op + 1};
    if (publishes)
      std::erase_if(waiting_[p], [&](Waiter waiter) {
        if (waiter.op >= state.op)
          return false;
        if (--states_[waiter.process].lacks == 0)
          ready_.insert(waiter.process);
        return true;
      });
    return !done(p);
  }

  /// Names the consumer that is the farthest behind.
  absl::Status stuck() const {
    uint32_t behind = 0;
    auto key = [&](uint32_t p) {
      const Op &op = n_.processes[p].ops[std::min<size_t>(
          states_[p].op, n_.processes[p].ops.size() - 1)];
      return std::pair(op.step, op.layer);
    };
    for (uint32_t p = 0; p != n_.slots(); ++p)
      if (!done(p) && (done(behind) || key(p) < key(behind)))
        behind = p;
    const OpRef at{behind, states_[behind].op};
    const bool ring = n_.op(at).kind != OpKind::kAwait;
    return error(absl::StrCat(n_.file, ": ", n_.place(at),
                              ring
                                  ? ": waits for its stream, which cannot go on"
                                  : ": waits for words that nobody can hand "
                                    "over any more"));
  }

  const Network &n_;
  const Schedule &schedule_;
  ReadySet ready_;
  std::vector<State> states_;
  std::vector<Ring> rings_;
  std::vector<std::vector<Waiter>> waiting_; // by whom they wait for
  absl::Status violation_;
};

} // namespace

absl::Status simulate(const Network &network, const Schedule &schedule) {
  return Simulator(network, schedule).run();
}

} // namespace grok::handovers
