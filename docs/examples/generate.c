/* Loads a bundle and continues a list of token ids.
 *
 *   generate NAME.grok COUNT ID [ID...]
 *
 * prints COUNT new ids at most, separated by commas. The device is that of the
 * environment variable GROK_DEVICE: auto (the default), cpu or cuda:N. */
#include <errno.h>
#include <grokrt.h>
#include <stdio.h>
#include <stdlib.h>

static int fail(const char *doing, grok_status status) {
  fprintf(stderr, "error: %s: %s: %s\n", doing, grok_status_name(status),
          grok_status_message());
  return status == GROK_INTERNAL ? 70 : 1;
}

/* A whole number from 0 to 2^31 - 1, or -1. */
static int32_t parse_number(const char *text) {
  char *end;
  errno = 0;
  long value = strtol(text, &end, 10);
  return errno || end == text || *end || value < 0 || value > INT32_MAX
             ? -1
             : (int32_t)value;
}

static int generate(grok_model *model, const int32_t *ids, uint32_t id_count,
                    int32_t *new_ids, uint32_t max_new) {
  grok_row row = {
      .ids = ids, .id_count = id_count, .max_new = max_new, .new_ids = new_ids};
  grok_request request = {
      .rows = &row, .row_count = 1, .eos_id = GROK_EOS_MODEL};
  grok_status status = grok_generate(model, &request);
  if (status != GROK_OK)
    return fail("generating", status);
  for (uint32_t i = 0; i < row.new_count; ++i)
    printf("%s%d", i ? "," : "", (int)new_ids[i]);
  printf("\n");
  return 0;
}

int main(int argc, char **argv) {
  if (argc < 4) {
    fprintf(stderr, "usage: generate NAME.grok COUNT ID [ID...]\n");
    return 1;
  }
  uint32_t id_count = (uint32_t)argc - 3;
  int32_t max_new = parse_number(argv[2]);
  int32_t *ids = malloc(id_count * sizeof *ids);
  if (!ids || max_new < 0) {
    fprintf(stderr, "error: found COUNT '%s', expected a number\n", argv[2]);
    free(ids);
    return 1;
  }
  /* -1 for what is no number: the library refuses it and says where it is. */
  for (uint32_t i = 0; i < id_count; ++i)
    ids[i] = parse_number(argv[3 + i]);

  grok_load_options options = {.device = getenv("GROK_DEVICE")};
  grok_model *model;
  grok_status status = grok_model_load(argv[1], &options, &model);
  if (status != GROK_OK) {
    free(ids);
    return fail("loading", status);
  }
  int32_t *new_ids = malloc(((size_t)max_new + 1) * sizeof *new_ids);
  int result =
      new_ids ? generate(model, ids, id_count, new_ids, (uint32_t)max_new) : 1;
  free(new_ids);
  free(ids);
  grok_model_free(model);
  return result;
}
