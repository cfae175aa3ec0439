// Faults put into plans, and into what slots do with them: the model checker
// finds each kind.
#include <algorithm>

#include "gtest/gtest.h"

#include "runtime/bundle/PlanCheck.h"
#include "runtime/handovers/Buffers.h"
#include "runtime/handovers/Check.h"
#include "runtime/handovers/DecodeProgram.h"
#include "runtime/handovers/Network.h"
#include "runtime/handovers/Order.h"
#include "runtime/handovers/Schedule.h"
#include "runtime/handovers/Simulator.h"
#include "test/unit/plan/TestPlans.h"

namespace grok {
namespace {

using namespace handovers;

class HandOverFault : public testing::Test {
protected:
  /// A model and its plan; experts of one group run on the group's slots, so
  /// that slots idle, or on all.
  void plan(const char *name, const char *slots) {
    model_ = readModel(name);
    PlanOptions options;
    options.slots = slots;
    options.maxBatch = 3;
    plan_ = tablesFor(model_, "h100-sxm", options);
  }

  /// The checker refuses the plan, with a message that has all of `parts`.
  void expectRefused(const std::vector<std::string> &parts) {
    absl::Status status =
        checkHandOvers(model_, plan_, "plan.bin", {.randomOrders = 20})
            .status();
    expectParts(status, parts);
  }

  /// What slots do in one of scenarios().
  std::vector<Process> processes(size_t scenario = 2) {
    scenarios_ = scenarios(model_, plan_, 1);
    return decodeProcesses(model_, plan_, scenarios_[scenario]);
  }
  /// The first of the processes that has an op of the kind.
  template <class Which>
  static Process &whoDoes(std::vector<Process> &all, Which which) {
    return *std::find_if(all.begin(), all.end(), [&](const Process &process) {
      return std::any_of(process.ops.begin(), process.ops.end(), which);
    });
  }

  static void expectParts(const absl::Status &status,
                          const std::vector<std::string> &parts) {
    EXPECT_FALSE(status.ok());
    for (const std::string &part : parts)
      EXPECT_NE(std::string(status.message()).find(part), std::string::npos)
          << status << "\n  lacks: " << part;
  }

  void expectUnlinked(std::vector<Process> all,
                      const std::vector<std::string> &parts) {
    expectParts(link(std::move(all), plan_, "plan.bin").status(), parts);
  }

  /// The processes link; the proof fails, and so does some of many orders.
  void expectDisorder(std::vector<Process> all,
                      const std::vector<std::string> &parts) {
    absl::StatusOr<Network> network = link(std::move(all), plan_, "plan.bin");
    ASSERT_TRUE(network.ok()) << network.status();
    expectParts(proveOrder(*network), parts);
    absl::Status played = playMany(*network);
    expectParts(played, parts);
    expectParts(played, {"(schedule: "});
  }

  /// Of the extreme orders and many random ones the first that fails.
  static absl::Status playMany(const Network &network) {
    std::vector<Schedule> schedules = extremeSchedules(network.slots(), 8);
    for (uint64_t seed = 0; seed != 100; ++seed)
      schedules.push_back(randomSchedule(network.slots(), seed));
    for (const Schedule &schedule : schedules)
      if (absl::Status status = simulate(network, schedule); !status.ok())
        return status;
    return absl::OkStatus();
  }

  const ArenaRegion &region(const char *name) {
    return *plan_.findRegion(name);
  }
  /// Whether an op is about words of a region.
  bool isOf(const Op &op, const char *name) {
    const ArenaRegion &r = region(name);
    return !op.words.empty() &&
           op.words.front().begin * kWordBytes >= r.offset &&
           op.words.front().begin * kWordBytes < r.offset + r.bytes;
  }
  template <class Which>
  static void remove(std::vector<Process> &all, Which which) {
    size_t removed = 0;
    for (Process &process : all)
      removed += std::erase_if(process.ops, which);
    EXPECT_GT(removed, 0u);
  }

  Buffers buffers() { return Buffers(plan_, decodeShape(model_, plan_)); }
  /// Removes ops about a word that stands for a block's barrier.
  void removeOfBlock(std::vector<Process> &all, OpKind kind,
                     WordRange (Buffers::*word)(uint32_t) const) {
    const Buffers of = buffers();
    size_t removed = 0;
    for (Process &process : all)
      removed += std::erase_if(process.ops, [&](const Op &op) {
        return op.kind == kind && !op.words.empty() &&
               op.words.front() == (of.*word)(process.slot);
      });
    EXPECT_GT(removed, 0u);
  }

  ModelConfig model_;
  PlanTables plan_;
  std::vector<Scenario> scenarios_;
};

TEST_F(HandOverFault, NoneWithoutAFault) {
  plan("hash-offset", "group");
  absl::StatusOr<Network> network = link(processes(), plan_, "plan.bin");
  ASSERT_TRUE(network.ok()) << network.status();
  EXPECT_TRUE(proveOrder(*network).ok());
  EXPECT_TRUE(playMany(*network).ok());
}

TEST_F(HandOverFault, TileThatNobodyComputes) {
  plan("tiny-hash", "all");
  for (PlanMatrix &matrix : plan_.matrices)
    if (matrix.kind == MatrixKind::kAttnOut)
      std::find_if(matrix.slots.begin(), matrix.slots.end(),
                   [](const SlotExtent &e) { return e.tileCount > 0; })
          ->tileCount = 0;
  expectRefused({"plan.bin: slot ",
                 ", phase gate_up, layer 0, step 0: waits "
                 "for word ",
                 " of 'y_attn', which nobody hands over"});
}

TEST_F(HandOverFault, TileThatTwoSlotsCompute) {
  plan("tiny-top2", "all");
  for (PlanMatrix &matrix : plan_.matrices)
    if (matrix.kind == MatrixKind::kQkv)
      matrix.slots[1].tileBegin = matrix.slots[0].tileBegin;
  expectRefused({"phase qkv", "hands over word ",
                 " of 'q', which has been "
                 "handed over in the same layer by slot "});
}

TEST_F(HandOverFault, RegionsThatOverlap) {
  plan("tiny-hash", "all");
  for (ArenaRegion &r : plan_.arena)
    if (r.name == "candidates")
      r.offset = region("q").offset;
  expectRefused({"overwrites words that may not have been read yet: slot "});
}

TEST_F(HandOverFault, RingThatIsTooSmall) {
  plan("tiny-top2", "all");
  plan_.ringStages = 1;
  expectRefused({"waits for its stream, which cannot go on", "(schedule: "});
}

TEST_F(HandOverFault, OneHalfOfTheBuffers) {
  plan("hash-offset", "all");
  std::vector<Process> all = processes();
  const uint64_t half = region("y_moe").bytes / kParities / kWordBytes,
                 middle = region("y_moe").offset / kWordBytes + half;
  for (Process &process : all)
    for (Op &op : process.ops)
      for (WordRange &range : op.words)
        if (isOf(op, "y_moe") && range.begin >= middle)
          range = {range.begin - half, range.end - half};
  expectDisorder(std::move(all),
                 {"phase down", "overwrites words that may not have been read "
                                "yet: slot "});
}

TEST_F(HandOverFault, SlotThatDoesNotSayThatItIsThere) {
  plan("tiny-hash", "group");
  std::vector<Process> all = processes(0);
  remove(all, [&](const Op &op) { return isOf(op, "presence"); });
  expectDisorder(std::move(all), {"overwrites words that may not have been "
                                  "read yet: slot "});
}

TEST_F(HandOverFault, WaitForAnOldEpoch) {
  plan("tiny-hash", "all");
  std::vector<Process> all = processes();
  Op *wait = nullptr;
  for (Op &op : all[4].ops)
    if (op.kind == OpKind::kAwait && isOf(op, "y_attn"))
      wait = &op; // the last one
  ASSERT_TRUE(wait);
  wait->epoch -= kParities; // in the same half
  expectDisorder(std::move(all),
                 {"phase attn_out", "overwrites words that may not have been "
                                    "read yet: slot 4, phase gate_up"});
}

TEST_F(HandOverFault, EpochsThatComeAgain) {
  plan("tiny-hash", "all");
  std::vector<Process> all = processes();
  for (Process &process : all)
    for (Op &op : process.ops)
      if (isOf(op, "y_moe"))
        op.epoch = op.layer + 1; // without the step
  expectUnlinked(std::move(all), {"which has been handed over in the same "
                                  "layer by slot "});
}

TEST_F(HandOverFault, WaitThatWaitsForItself) {
  plan("tiny-hash", "all");
  std::vector<Process> all = processes();
  auto publishes = [&](const Op &op) {
    return op.kind == OpKind::kPublish && isOf(op, "y_attn");
  };
  std::vector<Op> &ops = whoDoes(all, publishes).ops;
  auto first = std::find_if(ops.begin(), ops.end(), publishes);
  ASSERT_NE(first, ops.end());
  auto wait = std::find_if(first, ops.end(), [&](const Op &op) {
    return op.kind == OpKind::kAwait && isOf(op, "y_attn");
  });
  ASSERT_NE(wait, ops.end());
  std::rotate(first, first + 1, wait + 1);
  absl::StatusOr<Network> network = link(std::move(all), plan_, "plan.bin");
  ASSERT_TRUE(network.ok()) << network.status();
  expectParts(proveOrder(*network),
              {"plan.bin: slot ", "phase gate_up, layer 0, step 0: waits for "
                                  "words whose writer waits for it"});
  expectParts(playMany(*network),
              {"phase gate_up, layer 0, step 0: waits for words that nobody "
               "can hand over any more (schedule: in order)"});
}

TEST_F(HandOverFault, KvEntriesBeforeTheirFence) {
  plan("tiny-hash", "all");
  std::vector<Process> all = processes();
  remove(all, [&](const Op &op) {
    return op.kind == OpKind::kAwait && isOf(op, "candidates");
  });
  expectDisorder(std::move(all),
                 {"phase attention", "streams entries of the KV cache before "
                                     "the fence behind their stores: slot "});
}

TEST_F(HandOverFault, StoresWithoutAFence) {
  plan("tiny-hash", "all");
  std::vector<Process> all = processes();
  remove(all, [&](const Op &op) { return op.kind == OpKind::kFence; });
  expectUnlinked(std::move(all), {"phase qkv", "stores into the KV cache, but "
                                               "no fence follows in the step"});
}

TEST_F(HandOverFault, RoutingThatTheProducerHasNotRead) {
  plan("tiny-top2", "all");
  std::vector<Process> all = processes();
  removeOfBlock(all, OpKind::kAwait, &Buffers::taken);
  expectDisorder(std::move(all),
                 {"phase route", "overwrites words that may not have been "
                                 "read yet: slot "});
}

TEST_F(HandOverFault, OperandThatTheOtherBlockStillReads) {
  plan("tiny-top2", "all");
  ASSERT_EQ(plan_.cluster, 2u);
  std::vector<Process> all = processes();
  removeOfBlock(all, OpKind::kAwait, &Buffers::wanted);
  expectDisorder(std::move(all), {"overwrites words that may not have been "
                                  "read yet: slot "});
}

TEST_F(HandOverFault, OperandThatIsNotGiven) {
  plan("tiny-hash", "all");
  ASSERT_EQ(plan_.cluster, 2u);
  std::vector<Process> all = processes();
  const Buffers of = buffers();
  std::erase_if(all[6].ops, [&](const Op &op) {
    return op.kind == OpKind::kPublish && op.words.front() == of.given(7);
  });
  expectUnlinked(std::move(all), {"slot 7", "waits for an operand of the other "
                                            "block, which nobody hands over"});
}

TEST_F(HandOverFault, StreamInAnotherOrder) {
  plan("tiny-top2", "all");
  std::vector<Process> all = processes();
  auto pushesDown = [](const Op &op) {
    return op.kind == OpKind::kPush && op.phase == Phase::kDown;
  };
  std::vector<Op> &ops = whoDoes(all, pushesDown).ops;
  auto first = std::find_if(ops.begin(), ops.end(), pushesDown);
  ASSERT_NE(first, ops.end());
  auto second = std::find_if(first + 1, ops.end(), pushesDown);
  ASSERT_NE(second, ops.end());
  std::swap(*first, *second);
  expectUnlinked(std::move(all), {"phase down", "takes from the ring "
                                                "what is not next there"});
}

TEST_F(HandOverFault, StreamThatEndsEarly) {
  plan("tiny-hash", "all");
  std::vector<Process> all = processes();
  std::erase_if(all[plan_.slots + 7].ops, [](const Op &op) {
    return op.kind == OpKind::kPush && op.step > 0;
  });
  expectUnlinked(std::move(all), {"slot 7", "takes from the ring what is not "
                                            "streamed"});
}

} // namespace
} // namespace grok
