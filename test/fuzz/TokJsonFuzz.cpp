// tokenizer.tok.json. The input stands behind the tokens of all 256 bytes,
// which no mutation is to spoil; text then comes back from its tokens.
#include <string>

#include "absl/strings/str_cat.h"
#include "runtime/tokenizer/BytePair.h"
#include "test/fuzz/Fuzz.h"

using namespace grok;
using namespace grok::fuzz;

namespace {

constexpr uint32_t kVocabulary = 300;

std::string withBytes() {
  std::string text = "{\"regular_tokens\":[";
  for (int byte = 0; byte < 256; ++byte)
    absl::StrAppend(&text, byte ? "," : "", "{\"bytes\":[", byte,
                    "],\"token\":", byte, "}");
  return text;
}

} // namespace

/// `data` goes on where the list of regular tokens has those of all bytes:
/// ",{...}], ...}".
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const std::string start = withBytes();
  std::string text = start;
  text += textOf(data, size);
  absl::StatusOr<BytePairTokenizer> tokenizer =
      BytePairTokenizer::parse(text, kFile, kVocabulary);
  if (!tokenizer.ok()) {
    requireRefusal(tokenizer.status());
    return 0;
  }
  // The input itself is as good a text as any.
  std::string_view words = textOf(data, size);
  absl::StatusOr<std::vector<int32_t>> ids = tokenizer->encodePlain(words);
  if (!ids.ok())
    return 0; // the pattern takes too long for it
  absl::StatusOr<std::string> decoded = tokenizer->decode(*ids);
  require(decoded.ok() && *decoded == words, "text survives its tokens");
  (void)tokenizer->encode(words); // with special tokens
  return 0;
}
