// The C API's asynchronous calls, on the CPU.
#include <atomic>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "runtime/include/grokrt.h"
#include "gtest/gtest.h"

namespace {

using Ids = std::vector<int32_t>;

struct FreeModel {
  void operator()(grok_model *model) const { grok_model_free(model); }
};
struct FreeJob {
  void operator()(grok_job *job) const { grok_job_free(job); }
};
using Model = std::unique_ptr<grok_model, FreeModel>;
using Job = std::unique_ptr<grok_job, FreeJob>;

class JobTest : public testing::Test {
protected:
  void SetUp() override { load(64); }
  void load(uint32_t queue) {
    const char *bundle = std::getenv("GROK_TEST_BUNDLE");
    ASSERT_TRUE(bundle);
    grok_load_options options = onTheCpu();
    options.queue = queue;
    grok_model *loaded = nullptr;
    ASSERT_EQ(grok_model_load(bundle, &options, &loaded), GROK_OK)
        << grok_status_message();
    model.reset(loaded);
  }

  static grok_load_options onTheCpu() {
    grok_load_options options{};
    options.device = "cpu";
    return options;
  }

  /// What grok_generate gives.
  Ids expected(const Ids &prompt, uint32_t count) {
    Ids out(count);
    grok_row row{};
    row.ids = prompt.data();
    row.id_count = uint32_t(prompt.size());
    row.max_new = count;
    row.new_ids = out.data();
    grok_request request{};
    request.rows = &row;
    request.row_count = 1;
    request.eos_id = GROK_EOS_NONE;
    EXPECT_EQ(grok_generate(model.get(), &request), GROK_OK)
        << grok_status_message();
    out.resize(row.new_count);
    return out;
  }
  static grok_job_options options(const Ids &prompt, uint32_t count) {
    grok_job_options o{};
    o.ids = prompt.data();
    o.id_count = uint32_t(prompt.size());
    o.max_new = count;
    o.eos_id = GROK_EOS_NONE;
    return o;
  }
  Job submit(const grok_job_options &o) {
    grok_job *job = nullptr;
    EXPECT_EQ(grok_submit(model.get(), &o, &job), GROK_OK)
        << grok_status_message();
    return Job(job);
  }
  static grok_status outcome(const Job &job, Ids *ids = nullptr) {
    EXPECT_EQ(grok_job_wait(job.get(), -1, nullptr), GROK_OK);
    grok_job_result result;
    grok_status status = grok_job_outcome(job.get(), &result);
    if (ids)
      ids->assign(result.ids, result.ids + result.count);
    return status;
  }

  Model model;
  const Ids prompt{5, 17, 300, 0, 33, 8};
};
/// More than any test waits for.
constexpr uint32_t kLong = 1000;

TEST_F(JobTest, NoKernelStaysOnTheCpu) {
  grok_load_options options = onTheCpu();
  options.resident = 1;
  grok_model *loaded = nullptr;
  EXPECT_EQ(grok_model_load(std::getenv("GROK_TEST_BUNDLE"), &options, &loaded),
            GROK_UNIMPLEMENTED);
  EXPECT_EQ(loaded, nullptr);
  EXPECT_NE(std::string(grok_status_message())
                .find("resident: found the CPU, expected a GPU"),
            std::string::npos);
}

TEST_F(JobTest, GivesTheIdsOfGenerate) {
  std::vector<Ids> prompts, wanted;
  for (int32_t i = 0; i != 12; ++i) {
    prompts.push_back(Ids(size_t(1 + i * 5), i * 40 + 1));
    wanted.push_back(expected(prompts.back(), uint32_t(3 + i * 3)));
  }
  std::vector<Job> jobs;
  for (uint32_t i = 0; i != 12; ++i)
    jobs.push_back(submit(options(prompts[i], 3 + i * 3)));
  for (size_t i = 0; i != 12; ++i) {
    Ids ids;
    EXPECT_EQ(outcome(jobs[i], &ids), GROK_OK);
    EXPECT_EQ(ids, wanted[i]) << i;
  }
}

TEST_F(JobTest, SaysWhenThingsHappened) {
  Job job = submit(options(prompt, 4));
  ASSERT_EQ(outcome(job), GROK_OK);
  EXPECT_TRUE(grok_job_done(job.get()));
  grok_job_result result;
  ASSERT_EQ(grok_job_outcome(job.get(), &result), GROK_OK);
  EXPECT_GT(result.started_seconds, 0);
  EXPECT_GE(result.first_id_seconds, result.started_seconds);
  EXPECT_GE(result.total_seconds, result.first_id_seconds);
}

TEST_F(JobTest, StopsAfterTheEndId) {
  Ids whole = expected(prompt, 20);
  grok_job_options o = options(prompt, 20);
  o.eos_id = whole[7];
  Ids ids;
  EXPECT_EQ(outcome(submit(o), &ids), GROK_OK);
  auto end = std::find(whole.begin(), whole.end(), whole[7]);
  EXPECT_EQ(ids, Ids(whole.begin(), end + 1));
}

struct Seen {
  Ids ids;
  std::atomic<int> done{0};
  std::atomic<grok_job *> job{nullptr};
};

TEST_F(JobTest, CallsBackWithEveryIdThenOnceAtTheEnd) {
  Ids wanted = expected(prompt, 9);
  Seen seen;
  grok_job_options o = options(prompt, 9);
  o.user = &seen;
  o.on_ids = [](void *user, const int32_t *ids, uint32_t count) {
    auto *s = static_cast<Seen *>(user);
    EXPECT_EQ(s->done, 0);
    s->ids.insert(s->ids.end(), ids, ids + count);
  };
  o.on_done = [](void *user, grok_job *job) {
    auto *s = static_cast<Seen *>(user);
    grok_job_result result;
    EXPECT_EQ(grok_job_outcome(job, &result), GROK_OK);
    EXPECT_EQ(result.count, s->ids.size());
    EXPECT_EQ(grok_job_wait(job, -1, nullptr), GROK_OK); // has ended: no wait
    s->job = job;
    ++s->done;
  };
  Job job = submit(o);
  while (!seen.done)
    std::this_thread::yield();
  EXPECT_EQ(seen.job, job.get());
  job.reset();
  EXPECT_EQ(seen.done, 1);
  EXPECT_EQ(seen.ids, wanted);
}

TEST_F(JobTest, AJobMayBeFreedInItsLastCallback) {
  Seen seen;
  grok_job_options o = options(prompt, 3);
  o.user = &seen;
  o.on_done = [](void *user, grok_job *job) {
    grok_job_free(job);
    ++static_cast<Seen *>(user)->done;
  };
  grok_job *job = nullptr;
  ASSERT_EQ(grok_submit(model.get(), &o, &job), GROK_OK);
  while (!seen.done)
    std::this_thread::yield();
}

TEST_F(JobTest, WaitingInACallbackIsRefused) {
  Job other = submit(options(prompt, kLong));
  struct Both {
    grok_job *other;
    std::atomic<int> status{-1};
  } both{other.get()};
  grok_job_options o = options(prompt, 1);
  o.user = &both;
  o.on_done = [](void *user, grok_job *) {
    auto *b = static_cast<Both *>(user);
    b->status = grok_job_wait(b->other, -1, nullptr);
  };
  Job job = submit(o);
  while (both.status < 0)
    std::this_thread::yield();
  EXPECT_EQ(both.status, GROK_FAILED_PRECONDITION);
}

TEST_F(JobTest, CancelEndsItWithTheIdsThatThereAre) {
  Job job = submit(options(prompt, kLong));
  int done = 1;
  EXPECT_EQ(grok_job_wait(job.get(), 0, &done), GROK_OK);
  EXPECT_EQ(done, 0);
  grok_job_result result;
  EXPECT_EQ(grok_job_outcome(job.get(), &result), GROK_FAILED_PRECONDITION);
  EXPECT_STREQ(grok_status_message(), "found a job in flight, expected one "
                                      "that has ended; wait for it");
  EXPECT_EQ(grok_job_cancel(job.get()), GROK_OK);
  Ids ids;
  EXPECT_EQ(outcome(job, &ids), GROK_CANCELLED);
  EXPECT_STREQ(grok_status_message(), "the request was cancelled");
  EXPECT_LT(ids.size(), kLong);
  EXPECT_EQ(grok_job_cancel(job.get()), GROK_OK); // again: nothing happens
}

TEST_F(JobTest, ADeadlineEndsIt) {
  grok_job_options o = options(prompt, kLong);
  o.deadline_seconds = 0.01;
  Job job = submit(o);
  EXPECT_EQ(outcome(job), GROK_DEADLINE_EXCEEDED);
  EXPECT_NE(std::string(grok_status_message()).find("of 1000 ids at the"),
            std::string::npos);
}

TEST_F(JobTest, FreeingAJobInFlightEndsIt) {
  Seen seen;
  grok_job_options o = options(prompt, kLong);
  o.user = &seen;
  o.on_done = [](void *user, grok_job *) { ++static_cast<Seen *>(user)->done; };
  submit(o).reset();
  const int done = seen.done; // its end may have come first
  EXPECT_EQ(expected(prompt, 2).size(), 2u);
  EXPECT_EQ(seen.done, done);
}

TEST_F(JobTest, FreeingTheModelEndsWhatIsInFlight) {
  Seen seen;
  std::vector<Job> jobs;
  for (int i = 0; i != 20; ++i) {
    grok_job_options o = options(prompt, kLong);
    o.user = &seen;
    o.on_done = [](void *user, grok_job *) {
      ++static_cast<Seen *>(user)->done;
    };
    jobs.push_back(submit(o));
  }
  model.reset();
  EXPECT_EQ(seen.done, 20);
  for (const Job &job : jobs)
    EXPECT_EQ(outcome(job), GROK_CANCELLED);
}

TEST_F(JobTest, AFullQueueRefuses) {
  load(1);
  grok_model_info info;
  ASSERT_EQ(grok_model_query(model.get(), &info), GROK_OK);
  std::vector<Job> jobs;
  for (uint32_t i = 0; i != info.max_batch + 1; ++i)
    jobs.push_back(submit(options(prompt, kLong)));
  grok_job_options o = options(prompt, 1);
  grok_job *job = jobs[0].get();
  EXPECT_EQ(grok_submit(model.get(), &o, &job), GROK_RESOURCE_EXHAUSTED);
  EXPECT_EQ(job, nullptr);
}

TEST_F(JobTest, GenerateIsRefusedMeanwhile) {
  Job job = submit(options(prompt, kLong));
  int32_t id = 0;
  grok_row row{};
  row.ids = prompt.data();
  row.id_count = 1;
  row.max_new = 1;
  row.new_ids = &id;
  grok_request request{};
  request.rows = &row;
  request.row_count = 1;
  request.eos_id = GROK_EOS_NONE;
  EXPECT_EQ(grok_generate(model.get(), &request), GROK_FAILED_PRECONDITION);
  EXPECT_NE(std::string(grok_status_message())
                .find("1 submitted requests without an answer"),
            std::string::npos);
}

TEST_F(JobTest, RefusesWhatIsWrong) {
  auto refused = [&](const grok_job_options &o, const char *message) {
    grok_job *job = nullptr;
    EXPECT_EQ(grok_submit(model.get(), &o, &job), GROK_INVALID_ARGUMENT);
    EXPECT_EQ(job, nullptr);
    EXPECT_NE(std::string(grok_status_message()).find(message),
              std::string::npos)
        << grok_status_message();
  };
  grok_job_options o = options(prompt, 1);
  o.id_count = 0;
  refused(o, "found no ids, expected at least one");
  o = options(prompt, 1);
  o.ids = nullptr;
  refused(o, "found a null ids, expected a pointer");
  o = options(prompt, 100000);
  refused(o, "expected at most 1024, the length in use");
  o = options(prompt, 1);
  o.eos_id = 1 << 20;
  refused(o, "eos_id: found 1048576, expected an id, GROK_EOS_NONE or");
  o = options(prompt, 1);
  o.deadline_seconds = -1;
  refused(o, "deadline_seconds: found -1, expected 0 or more");
  o = options(prompt, 1);
  o.temperature = -1;
  refused(o, "found temperature -1");
  o.temperature = 1e-40f;
  refused(o, "expected 0 (greedy) or a number from 1e-06 to 1e+06");
  grok_job *job = nullptr;
  EXPECT_EQ(grok_submit(nullptr, &o, &job), GROK_INVALID_ARGUMENT);
  EXPECT_EQ(grok_submit(model.get(), nullptr, &job), GROK_INVALID_ARGUMENT);
  EXPECT_EQ(grok_submit(model.get(), &o, nullptr), GROK_INVALID_ARGUMENT);
  EXPECT_EQ(grok_job_wait(nullptr, 0, nullptr), GROK_INVALID_ARGUMENT);
  EXPECT_EQ(grok_job_cancel(nullptr), GROK_INVALID_ARGUMENT);
  EXPECT_EQ(grok_job_outcome(nullptr, nullptr), GROK_INVALID_ARGUMENT);
  EXPECT_EQ(grok_job_done(nullptr), 0);
  grok_job_free(nullptr);
}

} // namespace
