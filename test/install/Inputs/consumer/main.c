#include <grokrt.h>
#include <stdio.h>

int main(void) {
  grok_model *model = NULL;
  grok_status status = grok_model_load("absent.grok", NULL, &model);
  printf("%s: %s\n", grok_status_name(status), grok_status_message());
  return status == GROK_NOT_FOUND && model == NULL ? 0 : 1;
}
