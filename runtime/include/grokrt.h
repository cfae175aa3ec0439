/* grokrt: runs a compiled bundle (NAME.grok) on a GPU through the CUDA driver
 * or on the CPU.
 *
 * Everything is loaded and all memory taken by grok_model_load; a request takes
 * none of the device's afterwards. A model serves one request at a time: calls
 * with the same model must not overlap. Different models are independent.
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
  GROK_CANCELLED = 7,           /* a callback asked to stop */
  GROK_DEADLINE_EXCEEDED = 8,   /* the watchdog ended a stuck kernel */
  GROK_INTERNAL = 70            /* a fault of this library */
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
} grok_load_options;

/* Loads a bundle; `options` may be NULL. On success *model is to be freed with
 * grok_model_free; otherwise it is NULL. */
grok_status grok_model_load(const char *bundle,
                            const grok_load_options *options,
                            grok_model **model);

/* Frees everything that the model holds; NULL is allowed. */
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
  float temperature;        /* 0: greedy, ties to the lower id */
  uint64_t seed;            /* of the sampling noise */
  grok_logits_fn on_logits; /* NULL: none. With it, a GPU runs position by
                               position */
  void *user;
  double seconds; /* out: wall time of the run */
} grok_request;

/* Computes every row's known ids and generates new ones. The same request gives
 * the same ids and logits, in whatever row and batch. On failure the rows'
 * outputs are unspecified and new requests must begin at start 0. */
grok_status grok_generate(grok_model *model, grok_request *request);

#ifdef __cplusplus
}
#endif

#endif /* GROKRT_H */
