// The C API over the executors.
#include <algorithm>
#include <cmath>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "runtime/api/Device.h"
#include "runtime/api/Job.h"
#include "runtime/include/grokrt.h"

struct grok_model {
  std::shared_ptr<grok::Bundle> bundle;
  std::unique_ptr<grok::Executor> executor;
  std::unique_ptr<grok::service::Service> service; // after what it uses
  std::string device;
};

namespace {

using grok::BatchRequest;
using grok::BatchResult;
using grok::service::after;
using grok::service::Clock;

thread_local std::string lastMessage;

grok_status fail(grok_status status, std::string message) {
  lastMessage = std::move(message);
  return status;
}

grok_status fail(const absl::Status &status) {
  std::string message(status.message());
  switch (status.code()) {
  case absl::StatusCode::kInvalidArgument:
  case absl::StatusCode::kOutOfRange:
    return fail(GROK_INVALID_ARGUMENT, std::move(message));
  case absl::StatusCode::kNotFound:
    return fail(GROK_NOT_FOUND, std::move(message));
  case absl::StatusCode::kFailedPrecondition:
  case absl::StatusCode::kPermissionDenied:
  case absl::StatusCode::kDataLoss:
    return fail(GROK_FAILED_PRECONDITION, std::move(message));
  case absl::StatusCode::kResourceExhausted:
    return fail(GROK_RESOURCE_EXHAUSTED, std::move(message));
  case absl::StatusCode::kUnavailable:
    return fail(GROK_UNAVAILABLE, std::move(message));
  case absl::StatusCode::kUnimplemented:
    return fail(GROK_UNIMPLEMENTED, std::move(message));
  case absl::StatusCode::kCancelled:
    return fail(GROK_CANCELLED, std::move(message));
  case absl::StatusCode::kDeadlineExceeded:
    return fail(GROK_DEADLINE_EXCEEDED, std::move(message));
  default:
    return fail(GROK_INTERNAL, std::move(message));
  }
}

grok_status missing(const char *what) {
  return fail(GROK_INVALID_ARGUMENT,
              std::string("found a null ") + what + ", expected a pointer");
}

/// Nothing may be thrown across the C boundary.
template <typename F> grok_status guarded(const F &body) {
  try {
    lastMessage.clear();
    return body();
  } catch (const std::bad_alloc &) {
    return fail(GROK_RESOURCE_EXHAUSTED, "out of memory");
  } catch (const std::system_error &e) { // no thread, no lock
    return fail(GROK_RESOURCE_EXHAUSTED, e.what());
  } catch (const std::exception &e) {
    return fail(GROK_INTERNAL, e.what());
  }
}

grok_status load(const char *path, const grok_load_options &options,
                 grok_model **out) {
  absl::StatusOr<std::shared_ptr<grok::Bundle>> bundle =
      grok::Bundle::open(path);
  if (!bundle.ok())
    return fail(bundle.status());
  absl::StatusOr<std::unique_ptr<grok::Executor>> executor =
      grok::openExecutor(**bundle, options.device ? options.device : "auto",
                         {options.max_seq, options.kv_bytes});
  if (!executor.ok())
    return fail(executor.status());
  if (options.resident)
    if (absl::Status s = (*executor)->stayResident(); !s.ok())
      return fail(
          absl::Status(s.code(), absl::StrCat("resident: ", s.message())));
  constexpr uint32_t kDefaultQueue = 64;
  auto service = std::make_unique<grok::service::Service>(
      **executor, (*bundle)->model(),
      options.queue ? options.queue : kDefaultQueue);
  std::string device = (*executor)->deviceName();
  *out = new grok_model{std::move(*bundle), std::move(*executor),
                        std::move(service), std::move(device)};
  return GROK_OK;
}

grok_status checkRows(const grok_request &request) {
  if (!request.rows && request.row_count)
    return missing("rows");
  for (uint32_t i = 0; i != request.row_count; ++i) {
    if (!request.rows[i].ids && request.rows[i].id_count)
      return missing("ids");
    if (!request.rows[i].new_ids && request.rows[i].max_new)
      return missing("new_ids");
  }
  return GROK_OK;
}

int64_t endId(const grok_model &model, int64_t asked) {
  return asked == GROK_EOS_MODEL ? model.bundle->model().eosId : asked;
}

BatchRequest toBatch(const grok_model &model, const grok_request &request) {
  BatchRequest batch;
  for (uint32_t i = 0; i != request.row_count; ++i) {
    const grok_row &row = request.rows[i];
    batch.rows.push_back(
        {{row.ids, row.ids + row.id_count}, row.start, row.max_new});
  }
  batch.eosId = endId(model, request.eos_id);
  batch.temperature = request.temperature;
  batch.seed = request.seed;
  if (request.on_logits)
    batch.onLogits = [&](uint32_t row, uint32_t position,
                         std::span<const float> logits) {
      return request.on_logits(request.user, row, position, logits.data(),
                               uint32_t(logits.size()))
                 ? absl::CancelledError("the logits callback asked to stop")
                 : absl::OkStatus();
    };
  return batch;
}

grok_status generate(grok_model &model, grok_request &request) {
  if (grok_status status = checkRows(request); status != GROK_OK)
    return status;
  absl::StatusOr<BatchResult> result;
  absl::Status ran = model.service->runAlone([&] {
    result = model.executor->run(toBatch(model, request));
    return result.status();
  });
  if (!ran.ok())
    return fail(ran);
  for (uint32_t i = 0; i != request.row_count; ++i) {
    const std::vector<int32_t> &ids = result->newIds[i];
    std::copy(ids.begin(), ids.end(), request.rows[i].new_ids);
    request.rows[i].new_count = uint32_t(ids.size());
  }
  request.seconds = result->seconds;
  return GROK_OK;
}

grok_status submit(grok_model &model, const grok_job_options &options,
                   grok_job **out) {
  if (!options.ids && options.id_count)
    return missing("ids");
  const int64_t end = endId(model, options.eos_id);
  if (end < -1 || end >= int64_t(model.bundle->model().vocabSize))
    return fail(GROK_INVALID_ARGUMENT,
                absl::StrCat("eos_id: found ", end,
                             ", expected an id, GROK_EOS_NONE or "
                             "GROK_EOS_MODEL"));
  const double deadline = options.deadline_seconds;
  if (!(deadline >= 0))
    return fail(GROK_INVALID_ARGUMENT,
                absl::StrCat("deadline_seconds: found ", deadline,
                             ", expected 0 or more"));
  auto job = std::make_unique<grok_job>();
  job->service = model.service.get();
  job->state = std::make_shared<grok::JobState>(job.get(), options);
  grok::service::Request request;
  request.ids.assign(options.ids, options.ids + options.id_count);
  request.maxNew = options.max_new;
  if (end >= 0)
    request.stopIds = {int32_t(end)};
  request.temperature = options.temperature;
  request.seed = options.seed;
  if (deadline > 0)
    request.deadline = after(Clock::now(), deadline);
  if (options.on_ids)
    request.onIds = [state = job->state](std::span<const int32_t> ids) {
      state->ids(ids);
    };
  request.onAnswer = [state = job->state](grok::service::Answer answer) {
    state->answer(std::move(answer));
  };
  // A callback may free the job before submit returns.
  *out = job.get();
  absl::Status status = model.service->submit(std::move(request), job->number);
  if (status.ok()) {
    (void)job.release();
    return GROK_OK;
  }
  *out = nullptr;
  return fail(status);
}

grok_status wait(const grok_job &job, double seconds, int *done) {
  if (std::isnan(seconds))
    return fail(GROK_INVALID_ARGUMENT, "seconds: found NaN, expected a number");
  if (!job.state->done() && job.service->onServiceThread())
    return fail(GROK_FAILED_PRECONDITION,
                "found a callback that waits for a job, expected the wait in "
                "another thread");
  std::optional<Clock::time_point> until;
  if (seconds >= 0)
    until = after(Clock::now(), seconds);
  const bool ended = job.state->wait(until);
  if (done)
    *done = ended;
  return GROK_OK;
}

grok_status outcome(const grok_job &job, grok_job_result &result) {
  const grok::service::Answer *answer = job.state->outcome();
  if (!answer)
    return fail(GROK_FAILED_PRECONDITION,
                "found a job in flight, expected one that has ended; wait for "
                "it");
  result = {answer->ids.data(), uint32_t(answer->ids.size()),
            answer->times.started, answer->times.firstId,
            answer->times.answered};
  return answer->status.ok() ? GROK_OK : fail(answer->status);
}

void cancelJob(const grok_job &job) {
  if (!job.state->done())
    job.service->cancel(job.number);
}

} // namespace

const char *grok_status_name(grok_status status) {
  switch (status) {
  case GROK_OK:
    return "ok";
  case GROK_INVALID_ARGUMENT:
    return "invalid argument";
  case GROK_NOT_FOUND:
    return "not found";
  case GROK_FAILED_PRECONDITION:
    return "failed precondition";
  case GROK_RESOURCE_EXHAUSTED:
    return "resource exhausted";
  case GROK_UNAVAILABLE:
    return "unavailable";
  case GROK_UNIMPLEMENTED:
    return "unimplemented";
  case GROK_CANCELLED:
    return "cancelled";
  case GROK_DEADLINE_EXCEEDED:
    return "deadline exceeded";
  case GROK_INTERNAL:
    return "internal";
  }
  return "unknown status";
}

const char *grok_status_message(void) { return lastMessage.c_str(); }

grok_status grok_model_load(const char *bundle,
                            const grok_load_options *options,
                            grok_model **model) {
  return guarded([&] {
    if (!model)
      return missing("model");
    *model = nullptr;
    if (!bundle)
      return missing("bundle");
    return load(bundle, options ? *options : grok_load_options{}, model);
  });
}

void grok_model_free(grok_model *model) { delete model; }

grok_status grok_model_query(const grok_model *model, grok_model_info *info) {
  return guarded([&] {
    if (!model || !info)
      return missing(model ? "info" : "model");
    const grok::ModelConfig &m = model->bundle->model();
    *info = {m.vocabSize,
             m.hiddenSize,
             m.numLayers,
             m.numExperts,
             m.expertsPerToken,
             model->executor->maxBatch(),
             model->executor->maxSeq(),
             m.bosId,
             m.eosId,
             m.padId,
             model->executor->memoryBytes(),
             model->device.c_str()};
    return GROK_OK;
  });
}

grok_status grok_generate(grok_model *model, grok_request *request) {
  return guarded([&] {
    if (!model || !request)
      return missing(model ? "request" : "model");
    return generate(*model, *request);
  });
}

grok_status grok_submit(grok_model *model, const grok_job_options *options,
                        grok_job **job) {
  return guarded([&] {
    if (!job)
      return missing("job");
    *job = nullptr;
    if (!model || !options)
      return missing(model ? "options" : "model");
    return submit(*model, *options, job);
  });
}

int grok_job_done(const grok_job *job) { return job && job->state->done(); }

grok_status grok_job_wait(grok_job *job, double seconds, int *done) {
  return guarded([&] {
    if (done)
      *done = 0;
    return job ? wait(*job, seconds, done) : missing("job");
  });
}

grok_status grok_job_cancel(grok_job *job) {
  return guarded([&] {
    if (!job)
      return missing("job");
    cancelJob(*job);
    return GROK_OK;
  });
}

grok_status grok_job_outcome(const grok_job *job, grok_job_result *result) {
  return guarded([&] {
    if (!job || !result)
      return missing(job ? "result" : "job");
    *result = {};
    return outcome(*job, *result);
  });
}

void grok_job_free(grok_job *job) {
  if (!job)
    return;
  cancelJob(*job);
  job->state->abandon();
  delete job;
}
