// What becomes of requests that share an executor.
#include <future>
#include <thread>

#include "runtime/service/Service.h"
#include "test/unit/common/ScriptedExecutor.h"
#include "gtest/gtest.h"

namespace grok::test {
namespace {

using absl::StatusCode;
using service::Answer;
using service::Clock;
using service::Request;
using service::Service;
using Ids = std::vector<int32_t>;

/// A request, and what the service says of it.
struct Asked {
  std::shared_ptr<std::promise<Answer>> promise =
      std::make_shared<std::promise<Answer>>();
  uint64_t number = 0;

  Answer answer() { return promise->get_future().get(); }
  Request request(Ids ids, uint32_t maxNew) {
    Request r;
    r.ids = std::move(ids);
    r.maxNew = maxNew;
    r.onAnswer = [p = promise](Answer a) { p->set_value(std::move(a)); };
    return r;
  }
};

class ServiceTest : public testing::Test {
protected:
  void start(uint32_t queue = 8) {
    service = std::make_unique<Service>(executor, executor.model, queue);
  }
  Asked ask(Ids ids, uint32_t maxNew) {
    Asked asked;
    EXPECT_TRUE(
        service->submit(asked.request(std::move(ids), maxNew), asked.number)
            .ok());
    return asked;
  }
  absl::Status submit(Asked &asked, Request request) {
    return service->submit(std::move(request), asked.number);
  }

  ScriptedExecutor executor{3, 4};
  std::unique_ptr<Service> service;
};

Ids promptOf(uint32_t length) {
  Ids ids(length);
  std::iota(ids.begin(), ids.end(), 1);
  return ids;
}

TEST_F(ServiceTest, EveryAnswerIsThatOfTheRequestAlone) {
  start(40);
  std::vector<std::pair<Asked, Ids>> all;
  for (uint32_t i = 0; i != 40; ++i) {
    Ids prompt = promptOf(1 + i * 7 % 45);
    uint32_t count = 1 + i * 5 % 50;
    all.emplace_back(ask(prompt, count), scriptedIds(prompt, count));
  }
  for (auto &[asked, expected] : all) {
    Answer answer = asked.answer();
    EXPECT_TRUE(answer.status.ok()) << answer.status;
    EXPECT_EQ(answer.ids, expected);
    EXPECT_FALSE(answer.stopped);
    EXPECT_LE(answer.times.started, answer.times.firstId);
    EXPECT_LE(answer.times.firstId, answer.times.answered);
  }
}

TEST_F(ServiceTest, RequestsThatWaitShareTheBatch) {
  executor.hold();
  start();
  Asked a = ask({1}, 2);
  executor.awaitRuns(1);
  Asked b = ask({2}, 2), c = ask({3}, 2);
  executor.allow();
  a.answer(), b.answer(), c.answer();
  service.reset();
  ASSERT_EQ(executor.runs.size(), 2u);
  EXPECT_EQ(executor.runs[0].rows.size(), 1u);
  EXPECT_EQ(executor.runs[1].rows.size(), 2u);
}

TEST_F(ServiceTest, ARowIsTakenWhileOthersGoOn) {
  executor.hold();
  start();
  Asked longest = ask({1}, 100);
  executor.awaitRuns(1);
  Asked brief = ask({2}, 1);
  executor.allow(2); // a turn, and one that both share
  EXPECT_EQ(brief.answer().ids, scriptedIds({2}, 1));
  executor.allow();
  EXPECT_EQ(longest.answer().ids, scriptedIds({1}, 100));
}

TEST_F(ServiceTest, PromptsAdvanceWithTheOthers) {
  start();
  Asked asked = ask(promptOf(50), 1);
  EXPECT_EQ(asked.answer().ids, scriptedIds(promptOf(50), 1));
  service.reset();
  // 16 positions a turn, and the last ones with the new id.
  ASSERT_EQ(executor.runs.size(), 4u);
  EXPECT_EQ(executor.runs[1].rows[0].start, 16u);
  EXPECT_EQ(executor.runs[1].rows[0].ids.size(), 32u);
  EXPECT_EQ(executor.runs[1].rows[0].maxNew, 0u);
  EXPECT_EQ(executor.runs[3].rows[0].maxNew, 1u);
  EXPECT_EQ(executor.runs[3].rows[0].decodeFrom, 50u);
}

TEST_F(ServiceTest, IdsComeOneByOneToThoseWhoWatch) {
  start();
  Asked asked;
  std::vector<Ids> seen;
  Request request = asked.request(promptOf(9), 5);
  request.onIds = [&](std::span<const int32_t> ids) {
    seen.emplace_back(ids.begin(), ids.end());
  };
  ASSERT_TRUE(submit(asked, std::move(request)).ok());
  Answer answer = asked.answer();
  EXPECT_EQ(answer.ids, scriptedIds(promptOf(9), 5));
  ASSERT_EQ(seen.size(), 5u);
  for (size_t i = 0; i != 5; ++i)
    EXPECT_EQ(seen[i], Ids{answer.ids[i]});
}

TEST_F(ServiceTest, AnyStopIdEndsAnAnswer) {
  start();
  Ids whole = scriptedIds({4}, 30);
  int32_t unused = 0;
  while (std::ranges::find(whole, unused) != whole.end())
    ++unused;
  for (size_t stop : {0u, 5u, 20u})
    for (Ids stopIds : {Ids{whole[stop]}, Ids{unused, whole[stop]}}) {
      auto first = std::ranges::find(whole, whole[stop]);
      Asked asked;
      Request request = asked.request({4}, 30);
      request.stopIds = stopIds;
      ASSERT_TRUE(submit(asked, std::move(request)).ok());
      Answer answer = asked.answer();
      EXPECT_EQ(answer.ids, Ids(whole.begin(), first + 1));
      EXPECT_TRUE(answer.stopped);
    }
}

TEST_F(ServiceTest, RowsThatSampleDifferentlyRunApart) {
  executor.hold();
  start();
  Asked asked[3];
  for (uint64_t seed : {0u, 1u, 2u}) {
    Request request = asked[seed].request({7, 8}, 20);
    request.temperature = 1;
    request.seed = seed;
    ASSERT_TRUE(submit(asked[seed], std::move(request)).ok());
  }
  executor.allow();
  for (uint64_t seed : {0u, 1u, 2u})
    EXPECT_EQ(asked[seed].answer().ids, scriptedIds({7, 8}, 20, seed));
}

TEST_F(ServiceTest, NothingToGenerateIsAnAnswerToo) {
  start();
  Answer answer = ask(promptOf(40), 0).answer();
  EXPECT_TRUE(answer.status.ok());
  EXPECT_TRUE(answer.ids.empty());
  EXPECT_EQ(answer.times.firstId, 0);
}

TEST_F(ServiceTest, AFullQueueRefusesAtOnce) {
  executor.hold();
  start(2);
  std::vector<Asked> accepted;
  for (int32_t i = 0; i != 5; ++i) // 3 rows and 2 places
    accepted.push_back(ask({i}, 1));
  Asked refused;
  absl::Status status = submit(refused, refused.request({9}, 1));
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(),
            "found 3 requests in the batch and 2 in the queue, expected a free "
            "place; ask again later");
  executor.allow();
  for (Asked &asked : accepted)
    EXPECT_TRUE(asked.answer().status.ok());
  EXPECT_TRUE(ask({9}, 1).answer().status.ok());
}

TEST_F(ServiceTest, WhatTheExecutorWouldRefuseIsRefusedAtOnce) {
  start();
  Asked asked;
  absl::Status status =
      submit(asked, asked.request({1, int32_t(kScriptedVocab)}, 1));
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "row 0: found id 97 at position 1, expected 0 to 96");
  EXPECT_EQ(submit(asked, asked.request({1}, 200)).code(),
            StatusCode::kInvalidArgument);
  Request request = asked.request({1}, 1);
  request.stopIds = {3, int32_t(kScriptedVocab)};
  EXPECT_EQ(submit(asked, std::move(request)).message(),
            "found end id 97, expected -1 (none) to 96");
}

TEST_F(ServiceTest, ADeadlineEndsARequestThatRuns) {
  executor.hold();
  start();
  Asked asked;
  Request request = asked.request({5}, 100);
  const Clock::time_point deadline = Clock::now() + std::chrono::seconds(1);
  request.deadline = deadline;
  ASSERT_TRUE(submit(asked, std::move(request)).ok());
  executor.allow(1);
  executor.awaitRuns(2);
  std::this_thread::sleep_until(deadline);
  executor.allow();
  Answer answer = asked.answer();
  EXPECT_EQ(answer.status.code(), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(answer.status.message(),
            "found 32 of 100 ids at the request's deadline, expected all");
  EXPECT_EQ(answer.ids, scriptedIds({5}, 32));
}

TEST_F(ServiceTest, ADeadlineEndsARequestThatWaits) {
  executor.hold();
  start();
  std::vector<Asked> running;
  for (int32_t i = 0; i != 3; ++i)
    running.push_back(ask({i}, 40));
  executor.awaitRuns(1);
  Asked asked;
  Request request = asked.request({5}, 100);
  request.deadline = Clock::now();
  ASSERT_TRUE(submit(asked, std::move(request)).ok());
  executor.allow();
  Answer answer = asked.answer();
  EXPECT_EQ(answer.status.code(), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(answer.times.started, 0);
  EXPECT_TRUE(answer.ids.empty());
  for (Asked &other : running)
    EXPECT_TRUE(other.answer().status.ok());
}

TEST_F(ServiceTest, CancelsWhatRunsAndWhatWaits) {
  executor.hold();
  start();
  std::vector<Asked> all;
  for (int32_t i = 0; i != 4; ++i)
    all.push_back(ask({i}, 40));
  executor.awaitRuns(1);
  service->cancel(all[1].number);
  service->cancel(all[3].number);
  executor.allow();
  for (size_t i = 0; i != 4; ++i)
    EXPECT_EQ(all[i].answer().status.code(),
              i % 2 ? StatusCode::kCancelled : StatusCode::kOk);
  service->cancel(all[0].number); // has ended
  EXPECT_TRUE(ask({1}, 1).answer().status.ok());
}

TEST_F(ServiceTest, DestructionAnswersEverything) {
  executor.hold();
  start();
  std::vector<Asked> all;
  for (int32_t i = 0; i != 6; ++i)
    all.push_back(ask({i}, 40));
  executor.awaitRuns(1);
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    executor.allow();
  });
  service.reset();
  for (Asked &asked : all)
    EXPECT_EQ(asked.answer().status.code(), StatusCode::kCancelled);
  later.join();
}

TEST_F(ServiceTest, AFailureEndsTheBatchAndNothingElse) {
  executor.hold();
  start();
  executor.fail(absl::InternalError("the device fell off"));
  Asked a = ask({1}, 1);
  executor.awaitRuns(1);
  executor.allow(1);
  EXPECT_EQ(a.answer().status.message(), "the device fell off");
  executor.fail(absl::OkStatus());
  executor.allow();
  EXPECT_EQ(ask({2}, 20).answer().ids, scriptedIds({2}, 20));
}

TEST_F(ServiceTest, RunsAloneWhenNothingIsInFlight) {
  executor.hold();
  start();
  Asked asked = ask({1}, 1);
  auto nothing = [] { return absl::OkStatus(); };
  EXPECT_EQ(service->runAlone(nothing).message(),
            "found 1 submitted requests without an answer, expected none while "
            "the model is used directly");
  executor.allow();
  asked.answer();
  Asked meanwhile;
  absl::Status status = service->runAlone([&] {
    meanwhile = ask({2}, 1);
    EXPECT_EQ(service->runAlone(nothing).code(),
              StatusCode::kFailedPrecondition);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(executor.runs.size(), 1u);
    return absl::AbortedError("its own");
  });
  EXPECT_EQ(status.message(), "its own");
  EXPECT_EQ(meanwhile.answer().ids, scriptedIds({2}, 1));
}

TEST_F(ServiceTest, ManyThreadsMaySubmit) {
  start(400);
  std::vector<std::thread> threads;
  for (int32_t t = 0; t != 4; ++t)
    threads.emplace_back([&, t] {
      for (uint32_t i = 0; i != 100; ++i) {
        Ids prompt{t, int32_t(i % 90)};
        Asked asked = ask(prompt, 1 + i % 20);
        if (i % 7 == 0)
          service->cancel(asked.number);
        Answer answer = asked.answer();
        Ids expected = scriptedIds(prompt, 1 + i % 20);
        expected.resize(answer.ids.size());
        EXPECT_EQ(answer.ids, expected);
      }
    });
  for (std::thread &thread : threads)
    thread.join();
}

} // namespace
} // namespace grok::test
