// tokenizer.tok.json. The input stands behind the tokens of all 256 bytes,
// which no mutation is to spoil; text then comes back from its tokens.
#include <string>

#include "runtime/bundle/Json.h"
#include "runtime/tokenizer/BytePair.h"
#include "test/fuzz/Fuzz.h"

using namespace grok;
using namespace grok::fuzz;

namespace {

constexpr uint32_t kVocabulary = 300;

/// Where the tokens of all bytes come, which need not be parsed every time.
constexpr const char *kStart = "{\"regular_tokens\":[null";

nlohmann::json tokensOfBytes() {
  nlohmann::json tokens;
  for (int byte = 0; byte < 256; ++byte)
    tokens.push_back({{"bytes", nlohmann::json::array({unsigned(byte)})},
                      {"token", unsigned(byte)}});
  return tokens;
}

absl::StatusOr<BytePairTokenizer> tokenizerOf(std::string_view tail) {
  static const nlohmann::json bytes = tokensOfBytes();
  std::string text = kStart;
  text += tail;
  absl::StatusOr<json::Document> document =
      json::parse(text, kFile, {.lines = false});
  if (!document.ok())
    return document.status();
  nlohmann::json &regular = document->root["regular_tokens"];
  regular.erase(regular.begin());
  regular.insert(regular.begin(), bytes.begin(), bytes.end());
  return BytePairTokenizer::fromJson(document->root, kFile, kVocabulary);
}

} // namespace

/// `data` goes on where the list of regular tokens has those of all bytes:
/// ",{...}], ...}".
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  absl::StatusOr<BytePairTokenizer> tokenizer = tokenizerOf(textOf(data, size));
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
