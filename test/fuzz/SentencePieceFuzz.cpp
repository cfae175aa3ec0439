// tokenizer.model. What the check lets pass SentencePiece reads, encodes and
// decodes without harm; it is not compiled with counters or sanitizers itself.
#include <numeric>
#include <string>
#include <vector>

#include "runtime/tokenizer/Plugin.h"
#include "test/fuzz/Fuzz.h"

using namespace grok;
using namespace grok::fuzz;

namespace {

constexpr const char *kText = "abc <xy>ab\xc3\xa9 \xe6\x97\xa5\xff  cba";

const grok_tokenizer_plugin &plugin() { return *grok_tokenizer_plugin_entry(); }

void use(void *tokenizer, std::string_view text) {
  grok_tokenizer_result ids =
      plugin().encode(tokenizer, text.data(), text.size());
  grok_tokenizer_result back = plugin().decode(tokenizer, ids.ids, ids.length);
  plugin().release(&back);
  plugin().release(&ids);
}

void useEveryId(void *tokenizer) {
  std::vector<int32_t> ids(plugin().piece_count(tokenizer));
  std::iota(ids.begin(), ids.end(), 0);
  grok_tokenizer_result text =
      plugin().decode(tokenizer, ids.data(), ids.size());
  plugin().release(&text);
}

} // namespace

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view model = textOf(data, size);
  grok_tokenizer_result error{};
  void *tokenizer = plugin().open(model.data(), model.size(), &error);
  if (!tokenizer) {
    require(error.error, "a refusal has a reason");
    plugin().release(&error);
    return 0;
  }
  use(tokenizer, kText);
  use(tokenizer, model);
  useEveryId(tokenizer);
  plugin().close(tokenizer);
  return 0;
}
