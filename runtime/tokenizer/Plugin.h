/* The C interface of a tokenizer plugin: what the tools look up in the
 * shared object. SentencePiece itself exports C++ only. */
#ifndef GROK_RUNTIME_TOKENIZER_PLUGIN_H
#define GROK_RUNTIME_TOKENIZER_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GROK_TOKENIZER_VERSION 4

/* A piece of text or a list of ids, or an error message, owned by the caller
 * who frees it with `release`. */
typedef struct grok_tokenizer_result {
  char *error; /* not NULL: it failed, and the rest is empty */
  char *text;  /* NUL-terminated; `length` bytes before that */
  int32_t *ids;
  size_t length; /* of text in bytes, or of ids */
} grok_tokenizer_result;

typedef struct grok_tokenizer_plugin {
  uint32_t version; /* GROK_TOKENIZER_VERSION */
  /* Of a tokenizer.model's bytes. NULL, and an error in the result, if they are
   * no model. */
  void *(*open)(const char *bytes, size_t size, grok_tokenizer_result *error);
  void (*close)(void *tokenizer);
  /* One more than the largest id. */
  uint32_t (*piece_count)(void *tokenizer);
  /* No begin or end id is added. */
  grok_tokenizer_result (*encode)(void *tokenizer, const char *text,
                                  size_t length);
  /* Ids that have no piece have no text, if a piece has none. */
  grok_tokenizer_result (*decode)(void *tokenizer, const int32_t *ids,
                                  size_t count);
  /* The ids after which a text ends: the model's end id and that of the piece
   * "<|separator|>", as far as it has them. */
  grok_tokenizer_result (*stop_ids)(void *tokenizer);
  void (*release)(grok_tokenizer_result *result);
} grok_tokenizer_plugin;

/* The one symbol of a plugin. */
#define GROK_TOKENIZER_SYMBOL "grok_tokenizer_plugin_entry"
const grok_tokenizer_plugin *grok_tokenizer_plugin_entry(void);

#ifdef __cplusplus
}
#endif

#endif
