// The C API over the executors.
#include <algorithm>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <system_error>

#include "runtime/api/Device.h"
#include "runtime/include/grokrt.h"

struct grok_model {
  std::shared_ptr<grok::Bundle> bundle;
  std::unique_ptr<grok::Executor> executor;
  std::string device;
};

namespace {

using grok::BatchRequest;
using grok::BatchResult;

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
  std::string device = (*executor)->deviceName();
  *out = new grok_model{std::move(*bundle), std::move(*executor),
                        std::move(device)};
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

BatchRequest toBatch(const grok_model &model, const grok_request &request) {
  BatchRequest batch;
  for (uint32_t i = 0; i != request.row_count; ++i) {
    const grok_row &row = request.rows[i];
    batch.rows.push_back(
        {{row.ids, row.ids + row.id_count}, row.start, row.max_new});
  }
  batch.eosId = request.eos_id == GROK_EOS_MODEL ? model.bundle->model().eosId
                                                 : request.eos_id;
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
  absl::StatusOr<BatchResult> result =
      model.executor->run(toBatch(model, request));
  if (!result.ok())
    return fail(result.status());
  for (uint32_t i = 0; i != request.row_count; ++i) {
    const std::vector<int32_t> &ids = result->newIds[i];
    std::copy(ids.begin(), ids.end(), request.rows[i].new_ids);
    request.rows[i].new_count = uint32_t(ids.size());
  }
  request.seconds = result->seconds;
  return GROK_OK;
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
