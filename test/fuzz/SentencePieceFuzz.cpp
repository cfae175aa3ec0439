// tokenizer.model. What the check lets pass SentencePiece reads, encodes and
// decodes without harm; it is not compiled with counters or sanitizers itself.
#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "runtime/tokenizer/PieceDecoder.h"
#include "runtime/tokenizer/Plugin.h"
#include "test/fuzz/Fuzz.h"

using namespace grok;
using namespace grok::fuzz;

namespace {

constexpr const char *kText = "abc <xy>ab\xc3\xa9 \xe6\x97\xa5\xff  cba";

const grok_tokenizer_plugin &plugin() { return *grok_tokenizer_plugin_entry(); }

absl::StatusOr<std::string> decode(void *tokenizer,
                                   const std::vector<int32_t> &ids) {
  grok_tokenizer_result result =
      plugin().decode(tokenizer, ids.data(), ids.size());
  absl::StatusOr<std::string> text =
      result.error ? absl::StatusOr<std::string>(
                         absl::InvalidArgumentError(result.error))
                   : std::string(result.text, result.length);
  plugin().release(&result);
  return text;
}

void use(void *tokenizer, std::string_view text) {
  grok_tokenizer_result ids =
      plugin().encode(tokenizer, text.data(), text.size());
  (void)decode(tokenizer, {ids.ids, ids.ids + ids.length});
  plugin().release(&ids);
}

/// Ids one by one have the text of the whole.
void useOneByOne(void *tokenizer, std::string_view bytes) {
  constexpr size_t kMostIds = 24;
  const uint32_t pieces = plugin().piece_count(tokenizer);
  PieceDecoder decoder(
      [&](const std::vector<int32_t> &ids) { return decode(tokenizer, ids); });
  std::vector<int32_t> ids;
  std::string given;
  for (char c : bytes.substr(bytes.size() - std::min(bytes.size(), kMostIds))) {
    ids.push_back(int32_t(uint8_t(c) % (pieces + 1)));
    absl::StatusOr<std::string> more = decoder.add(ids.back());
    if (!more.ok())
      return;
    given += *more;
  }
  absl::StatusOr<std::string> whole = decode(tokenizer, ids);
  require(whole.ok() && given + decoder.finish() == *whole,
          "ids one by one have the text of the whole");
}

void useEveryId(void *tokenizer) {
  std::vector<int32_t> ids(plugin().piece_count(tokenizer));
  std::iota(ids.begin(), ids.end(), 0);
  (void)decode(tokenizer, ids);
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
  useOneByOne(tokenizer, model);
  plugin().close(tokenizer);
  return 0;
}
