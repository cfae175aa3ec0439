#include "runtime/handovers/Network.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/handovers/Buffers.h"
#include "runtime/handovers/RingMoves.h"
#include "runtime/handovers/Words.h"

namespace grok::handovers {
namespace {

bool earlier(OpRef a, OpRef b) {
  return a.process != b.process ? a.process < b.process : a.op < b.op;
}

/// Of each process the last op of a set.
class LastOps {
public:
  explicit LastOps(size_t processes) : last_(processes, Op::kNone) {}
  void add(OpRef ref) {
    uint32_t &last = last_[ref.process];
    if (last == Op::kNone)
      touched_.push_back(ref.process);
    last = last == Op::kNone ? ref.op : std::max(last, ref.op);
  }
  std::vector<OpRef> take() {
    std::vector<OpRef> ops;
    for (uint32_t p : touched_)
      ops.push_back({p, std::exchange(last_[p], Op::kNone)});
    touched_.clear();
    return ops;
  }

private:
  std::vector<uint32_t> last_, touched_;
};

/// Leaves out of a process's lists what an earlier op of it has already.
void keepNew(std::vector<LinkedOp> &process, std::vector<OpRef> LinkedOp::*list,
             size_t processes) {
  std::vector<uint32_t> seen(processes); // ops, counted
  for (LinkedOp &op : process) {
    std::erase_if(op.*list,
                  [&](OpRef ref) { return ref.op + 1 <= seen[ref.process]; });
    for (OpRef ref : op.*list)
      seen[ref.process] = ref.op + 1;
  }
}

class Linker {
public:
  Linker(Network &network, const PlanTables &plan)
      : n_(network), plan_(plan), last_(network.processes.size()) {
    for (const Process &process : n_.processes) {
      n_.linked.emplace_back(process.ops.size());
      readBy_.emplace_back(process.ops.size());
    }
  }

  absl::Status run() {
    using Part = absl::Status (Linker::*)();
    for (Part part :
         {&Linker::collectWords, &Linker::resolveWaits, &Linker::demandReaders,
          &Linker::demandFences, &Linker::matchStreams})
      if (absl::Status status = (this->*part)(); !status.ok())
        return status;
    for (std::vector<LinkedOp> &process : n_.linked)
      for (auto list : {&LinkedOp::after, &LinkedOp::demands})
        keepNew(process, list, n_.processes.size());
    return absl::OkStatus();
  }

private:
  template <class Use> void forEachOp(Use use) {
    for (uint32_t p = 0; p != n_.processes.size(); ++p)
      for (uint32_t i = 0; i != n_.processes[p].ops.size(); ++i)
        use(OpRef{p, i}, n_.processes[p].ops[i]);
  }

  absl::Status error(OpRef at, const std::string &text) const {
    return absl::InvalidArgumentError(
        absl::StrCat(n_.file, ": ", n_.place(at), ": ", text));
  }

  /// "word 17 of 'act'", or what the word stands for.
  std::string wordName(uint64_t word) const {
    uint64_t byte = word * kWordBytes;
    for (const ArenaRegion &region : plan_.arena)
      if (byte >= region.offset && byte < region.offset + region.bytes)
        return absl::StrCat("word ", word - region.offset / kWordBytes, " of '",
                            region.name, "'");
    return word < plan_.arenaBytes / kWordBytes
               ? absl::StrCat("word ", word, " of the arena")
               : Buffers::blockWordName(word - plan_.arenaBytes / kWordBytes);
  }

  absl::Status collectWords() {
    forEachOp([&](OpRef at, const Op &op) {
      if (op.kind == OpKind::kPublish)
        for (WordRange range : op.words)
          epochs_[op.epoch].add(range, at);
    });
    for (auto &[epoch, words] : epochs_)
      if (const Written *twice = words.sort())
        return error(twice->by,
                     absl::StrCat("hands over ", wordName(twice->begin),
                                  ", which has been handed over in the same "
                                  "layer by ",
                                  n_.place((twice - 1)->by)));
    return absl::OkStatus();
  }

  /// Waits for the same words; most have one of every slot.
  struct Wait {
    std::vector<OpRef> writers; // of each process the last
    std::vector<OpRef> readers;
  };

  absl::Status resolveWaits() {
    absl::Status status;
    forEachOp([&](OpRef at, const Op &op) {
      if (op.kind != OpKind::kAwait || !status.ok())
        return;
      auto [known, isNew] =
          waitOf_.try_emplace({op.epoch, op.words}, uint32_t(waits_.size()));
      if (isNew)
        status = findWriters(at, op);
      Wait &wait = waits_[known->second];
      n_.linked[at.process][at.op].after = wait.writers;
      if (!wait.readers.empty() && wait.readers.back().process == at.process)
        wait.readers.back() = at;
      else
        wait.readers.push_back(at);
    });
    return status;
  }

  absl::Status findWriters(OpRef at, const Op &op) {
    const uint32_t number = uint32_t(waits_.size());
    waits_.emplace_back();
    for (WordRange range : op.words) {
      uint64_t found = epochs_[op.epoch].find(range, [&](const Written &w) {
        last_.add(w.by);
        std::vector<uint32_t> &readBy = readBy_[w.by.process][w.by.op];
        if (readBy.empty() || readBy.back() != number)
          readBy.push_back(number);
      });
      if (found != range.end)
        return error(at, absl::StrCat("waits for ", wordName(found),
                                      ", which nobody hands over"));
    }
    waits_.back().writers = last_.take();
    return absl::OkStatus();
  }

  /// Before words are overwritten, their writer has written and their readers
  /// have read them.
  absl::Status demandReaders() {
    WordMemory memory;
    for (auto &[epoch, words] : epochs_) {
      std::vector<Written> byOp = words.all();
      std::sort(byOp.begin(), byOp.end(),
                [](const Written &a, const Written &b) {
                  return earlier(a.by, b.by);
                });
      OpRef last{Op::kNone, Op::kNone}; // of those that are overwritten
      for (size_t i = 0; i != byOp.size(); ++i) {
        const OpRef at = byOp[i].by;
        memory.write(byOp[i], [&](OpRef before) {
          if (std::exchange(last, before) == before)
            return; // another row's words of the same op
          if (before.process != at.process)
            last_.add(before);
          for (uint32_t wait : readBy_[before.process][before.op])
            for (OpRef reader : waits_[wait].readers)
              if (reader.process != at.process || reader.op > at.op)
                last_.add(reader);
        });
        if (i + 1 == byOp.size() || earlier(at, byOp[i + 1].by)) {
          n_.linked[at.process][at.op].demands = last_.take();
          last = {Op::kNone, Op::kNone};
        }
      }
    }
    return absl::OkStatus();
  }

  /// Entries of the KV cache that a slot streams have been stored, and ordered
  /// by their writers' fences of that step.
  absl::Status demandFences() {
    std::map<uint32_t, std::vector<OpRef>> fences; // by step, behind stores
    for (uint32_t p = 0; p != n_.slots(); ++p) {
      std::map<uint32_t, uint32_t> stores; // step: op
      const std::vector<Op> &ops = n_.processes[p].ops;
      for (uint32_t i = 0; i != ops.size(); ++i) {
        if (ops[i].storesKv)
          stores[ops[i].step] = i;
        if (ops[i].kind == OpKind::kFence && stores.erase(ops[i].step))
          fences[ops[i].step].push_back({p, i});
      }
      if (!stores.empty())
        return error({p, stores.begin()->second},
                     "stores into the KV cache, but no fence follows in the "
                     "step");
    }
    forEachOp([&](OpRef at, const Op &op) {
      if (op.kind != OpKind::kPush || op.seesStep == Op::kNone)
        return;
      for (OpRef fence : fences[op.seesStep])
        last_.add(fence);
      n_.linked[at.process][at.op].demands = last_.take();
    });
    return absl::OkStatus();
  }

  /// A slot's consumers take from the ring what its producer puts there.
  absl::Status matchStreams() {
    for (uint32_t slot = 0; slot != n_.slots(); ++slot) {
      struct Place {
        OpRef at;
        const StreamItem *item;
        uint32_t chunk;
      };
      auto itemsOf = [&](uint32_t process) {
        std::vector<Place> places;
        uint32_t chunk = 0;
        for (uint32_t i = 0; i != n_.processes[process].ops.size(); ++i) {
          const Op &op = n_.processes[process].ops[i];
          n_.linked[process][i].chunk = chunk;
          for (const StreamItem &item : op.items) {
            places.push_back({{process, i}, &item, chunk});
            chunk += chunksOf(item.bytes, n_.chunkBytes);
          }
        }
        return places;
      };
      std::vector<Place> taken = itemsOf(slot),
                         pushed = itemsOf(n_.producerOf(slot));
      for (size_t i = 0; i != taken.size(); ++i) {
        if (i == pushed.size())
          return error(taken[i].at, "takes from the ring what is not streamed");
        if (!(*taken[i].item == *pushed[i].item))
          return error(taken[i].at,
                       absl::StrCat("takes from the ring what is not next "
                                    "there: the stream has a part of ",
                                    n_.place(pushed[i].at)));
      }
      placeGroups(slot);
    }
    return absl::OkStatus();
  }

  /// Later groups of tiles count from their product's first chunk; it is where
  /// the last item began.
  void placeGroups(uint32_t slot) {
    uint32_t first = 0;
    for (uint32_t i = 0; i != n_.linked[slot].size(); ++i) {
      const Op &op = n_.processes[slot].ops[i];
      if (op.kind != OpKind::kTake)
        continue;
      if (op.items.empty())
        n_.linked[slot][i].chunk = first;
      first = n_.linked[slot][i].chunk;
    }
  }

  Network &n_;
  const PlanTables &plan_;
  LastOps last_;
  std::map<uint32_t, EpochWords> epochs_;
  std::map<std::pair<uint32_t, std::vector<WordRange>>, uint32_t> waitOf_;
  std::vector<Wait> waits_;
  /// Of kPublish, [process][op]: the waits that its words are a part of.
  std::vector<std::vector<std::vector<uint32_t>>> readBy_;
};

} // namespace

std::string Network::place(OpRef at) const {
  const Op &o = op(at);
  return absl::StrCat("slot ", processes[at.process].slot, ", phase ",
                      kPhaseNames[uint32_t(o.phase)], ", layer ", o.layer,
                      ", step ", o.step);
}

std::string demandText(const Network &network, OpRef op, OpRef demanded) {
  const bool push = network.op(op).kind == OpKind::kPush;
  return absl::StrCat(network.file, ": ", network.place(op), ": ",
                      push ? "streams entries of the KV cache before the fence "
                             "behind their stores: "
                           : "overwrites words that may not have been read "
                             "yet: ",
                      network.place(demanded));
}

absl::StatusOr<Network> link(std::vector<Process> processes,
                             const PlanTables &plan, std::string_view file) {
  Network network{std::move(processes),
                  {},
                  plan.ringStages,
                  plan.chunkBytes,
                  std::string(file)};
  if (absl::Status status = Linker(network, plan).run(); !status.ok())
    return status;
  return network;
}

} // namespace grok::handovers
