/* grokrt: runs a compiled bundle (NAME.grok) on a GPU through the CUDA driver
 * or on the CPU.
 *
 * Everything is loaded and all memory taken by grok_model_load; a request takes
 * none of the device's afterwards. Different models are independent.
 *
 * There are two ways to ask. grok_generate computes a batch that the caller put
 * together, and returns when it is done; such calls with the same model must
 * not overlap. grok_submit takes one sequence from any thread and returns at
 * once; the library computes those that wait together.
 *
 * Every function that can fail returns a grok_status. When it isn't GROK_OK,
 * grok_status_message() has the reason, in words, until the same thread's next
 * call.
 */
#ifndef GROKRT_H
#define GROKRT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum grok_status {
  GROK_OK = 0,
  GROK_INVALID_ARGUMENT = 1,    /* an argument, id, length or limit is wrong */
  GROK_NOT_FOUND = 2,           /* no such bundle or file */
  GROK_FAILED_PRECONDITION = 3, /* a bundle that cannot be run as it is */
  GROK_RESOURCE_EXHAUSTED = 4,  /* not enough memory */
  GROK_UNAVAILABLE = 5,         /* no driver, no device, or a wrong one */
  GROK_UNIMPLEMENTED = 6,       /* this device cannot do what was asked */
  GROK_CANCELLED = 7,         /* a callback or grok_job_cancel asked to stop */
  GROK_DEADLINE_EXCEEDED = 8, /* a request's deadline passed */
  GROK_INTERNAL = 70          /* a fault of this library */
} grok_status;

/* A short name, "invalid argument" and the like. Never NULL. */
const char *grok_status_name(grok_status status);

/* What went wrong in this thread's last call that failed; "" if none did.
 * Valid until the thread's next call of this library. */
const char *grok_status_message(void);

/* A loaded bundle, with a KV cache for every row of its batch. */
typedef struct grok_model grok_model;

typedef struct grok_load_options {
  /* "auto", "cpu" or "cuda:N"; NULL is "auto": the first GPU if the bundle has
   * code for it, a driver and a fitting device are there, else the CPU. */
  const char *device;
  /* Limits that may be lower than the compiled ones; 0 takes GROK_MAX_SEQ_LEN
   * and GROK_KV_CACHE_BUFFER_MB of the environment, else the compiled ones.
   * kv_bytes is a multiple of 200 MiB. */
  uint32_t max_seq;
  uint64_t kv_bytes;
  /* Submitted requests that may wait while the batch is full; 0: 64. */
  uint32_t queue;
  /* Not 0: from the first request on a kernel stays on the GPU, so that no
   * launch stands in a request's way but one after its prefill. Whatever else
   * this or another process asks of that GPU waits until the model is freed.
   * GROK_UNIMPLEMENTED on the CPU. */
  int resident;
} grok_load_options;

/* Loads a bundle; `options` may be NULL. On success *model is to be freed with
 * grok_model_free; otherwise it is NULL. */
grok_status grok_model_load(const char *bundle,
                            const grok_load_options *options,
                            grok_model **model);

/* Frees everything that the model holds; NULL is allowed. Submitted requests
 * that are still in flight end first, with GROK_CANCELLED and their callbacks;
 * their jobs stay valid until they are freed themselves. No other call with the
 * model or with a job of it may overlap; not to be called from a callback. */
void grok_model_free(grok_model *model);

typedef struct grok_model_info {
  uint32_t vocab_size, hidden_size, layers, experts, experts_per_token;
  uint32_t max_batch; /* rows of a request at most */
  uint32_t max_seq;   /* ids of a row at most, generated ones included */
  int64_t bos_id, eos_id, pad_id; /* -1: none */
  uint64_t memory_bytes;          /* held by the device, constant */
  const char *device;             /* valid as long as the model */
} grok_model_info;

grok_status grok_model_query(const grok_model *model, grok_model_info *info);

/* One row of a request. The row's KV cache is that of its index. */
typedef struct grok_row {
  const int32_t *ids; /* all known ids, from position 0 */
  uint32_t id_count;  /* at least 1 */
  uint32_t start;     /* positions that the KV cache already holds from this
                         row's last request; 0 begins a new one */
  uint32_t max_new;   /* ids to generate at most */
  int32_t *new_ids;   /* out: room for max_new ids; may be NULL if that is 0 */
  uint32_t new_count; /* out: ids generated, the end id included */
} grok_row;

/* The end id in a request: that of the model, or none. */
#define GROK_EOS_MODEL (-2)
#define GROK_EOS_NONE (-1)

/* Called for every position that is computed, with float32 logits. A value
 * other than 0 ends the request with GROK_CANCELLED. The logits are valid
 * during the call only. */
typedef int (*grok_logits_fn)(void *user, uint32_t row, uint32_t position,
                              const float *logits, uint32_t vocab_size);

typedef struct grok_request {
  grok_row *rows;
  uint32_t row_count;
  int64_t eos_id;           /* a row stops after this id; GROK_EOS_MODEL,
                               GROK_EOS_NONE */
  float temperature;        /* 0: greedy, ties to the lower id; else 1e-6 to
                               1e6 */
  uint64_t seed;            /* of the sampling noise */
  grok_logits_fn on_logits; /* NULL: none. With it, a GPU runs position by
                               position */
  void *user;
  double seconds; /* out: wall time of the run */
} grok_request;

/* Computes every row's known ids and generates new ones. The same request gives
 * the same ids and logits, in whatever row and batch. On failure the rows'
 * outputs are unspecified and new requests must begin at start 0.
 * GROK_FAILED_PRECONDITION while submitted requests are in flight. They use the
 * same KV cache, so that after them a row must begin at start 0. */
grok_status grok_generate(grok_model *model, grok_request *request);

/* ---- Requests that run beside the caller ----
 *
 * Requests wait in a queue and run in the rows of the model's batch, first come
 * first served. They advance in turns of a few positions; between two turns
 * rows change hands, and deadlines and cancellations are noticed. The ids of a
 * request are those that grok_generate gives, whatever runs beside it. */

/* A submitted request. */
typedef struct grok_job grok_job;

/* Called with the next ids of a request, one or more. */
typedef void (*grok_ids_fn)(void *user, const int32_t *ids, uint32_t count);
/* Called once, when the request has ended and grok_job_outcome has its result.
 */
typedef void (*grok_done_fn)(void *user, grok_job *job);

/* Callbacks come from a thread of the library, perhaps before grok_submit
 * returns, and hold up every request of the model: they should be short. They
 * may submit, cancel, and free jobs; they must not wait for one. */
typedef struct grok_job_options {
  const int32_t *ids; /* the prompt; copied */
  uint32_t id_count;  /* at least 1 */
  uint32_t max_new;   /* ids to generate at most */
  int64_t eos_id;     /* as in grok_request */
  float temperature;  /* as in grok_request. Jobs that sample alike (all greedy
                         ones do) are computed together, others in turn */
  uint64_t seed;
  double deadline_seconds; /* from now; 0: none. A request that isn't done by
                              then ends with GROK_DEADLINE_EXCEEDED */
  grok_ids_fn on_ids;      /* NULL: none. With it, turns are one id long */
  grok_done_fn on_done;    /* NULL: none */
  void *user;              /* passed to both */
} grok_job_options;

/* Submits a request. GROK_RESOURCE_EXHAUSTED at once if the queue is full. On
 * success *job is to be freed with grok_job_free; otherwise it is NULL and no
 * callback comes. Any thread may call it. */
grok_status grok_submit(grok_model *model, const grok_job_options *options,
                        grok_job **job);

/* 1 if the request has ended, else 0. Never waits. */
int grok_job_done(const grok_job *job);

/* Waits until the request has ended, `seconds` at most; negative: as long as it
 * takes. *done (may be NULL) is 1 if it has ended, 0 if the time is over. */
grok_status grok_job_wait(grok_job *job, double seconds, int *done);

/* Asks the request to end with GROK_CANCELLED, which takes a turn at most.
 * Nothing happens if it has ended. */
grok_status grok_job_cancel(grok_job *job);

typedef struct grok_job_result {
  const int32_t *ids; /* new ids, the end id included; also what there was
                         of a request that failed. Valid as long as the
                         job */
  uint32_t count;
  double started_seconds; /* from the submission until it got a row; 0: never */
  double first_id_seconds; /* until its first id was there; 0: never */
  double total_seconds;    /* until it ended */
} grok_job_result;

/* What became of the request: GROK_OK, GROK_CANCELLED, GROK_DEADLINE_EXCEEDED,
 * or why the device failed; *result is filled in then. GROK_FAILED_PRECONDITION
 * if it has not ended. */
grok_status grok_job_outcome(const grok_job *job, grok_job_result *result);

/* Frees a job; NULL is allowed. A request that is in flight is cancelled, and
 * its end waited for: afterwards no callback of it comes or runs. In one of its
 * own callbacks, that is the last. */
void grok_job_free(grok_job *job);

#ifdef __cplusplus
}
#endif

#endif /* GROKRT_H */
