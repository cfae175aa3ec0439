// Grok-1's tokenizer.
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/bundle/Manifest.h"
#include "runtime/tokenizer/PieceDecoder.h"
#include "runtime/tokenizer/PluginTokenizer.h"
#include "tools/grokrun/Tokenizer.h"

namespace grok::grokrun {
namespace {

class SentencePieceDecoder : public TextDecoder {
public:
  explicit SentencePieceDecoder(const PluginTokenizer &plugin)
      : decoder_([&plugin](const std::vector<int32_t> &ids) {
          return plugin.decode(ids);
        }) {}

  absl::StatusOr<std::string> add(int32_t id) override {
    return decoder_.add(id);
  }
  std::string finish() override { return decoder_.finish(); }

private:
  PieceDecoder decoder_;
};

class SentencePieceTokenizer : public Tokenizer {
public:
  explicit SentencePieceTokenizer(std::unique_ptr<PluginTokenizer> plugin)
      : plugin_(std::move(plugin)) {}

  absl::StatusOr<std::vector<int32_t>>
  encode(const std::string &text) const override {
    return plugin_->encode(text);
  }
  absl::StatusOr<std::vector<int32_t>> encodeChat(const Chat &) const override {
    return absl::InvalidArgumentError(absl::StrCat(
        "--chat: found the tokenizer ", kSentencePieceFile, ", expected ",
        kBytePairFile,
        ": only Grok-2 has a form of conversations; use --prompt"));
  }
  std::unique_ptr<TextDecoder> decoder() const override {
    return std::make_unique<SentencePieceDecoder>(*plugin_);
  }
  /// Its normalizer may drop blanks.
  std::optional<size_t> longestToken() const override { return std::nullopt; }
  absl::StatusOr<std::vector<int32_t>> stopIds() const override {
    return plugin_->stopIds();
  }

private:
  std::unique_ptr<PluginTokenizer> plugin_;
};

} // namespace

absl::StatusOr<std::unique_ptr<Tokenizer>>
openSentencePiece(const Bundle &bundle) {
  absl::StatusOr<std::unique_ptr<PluginTokenizer>> plugin =
      PluginTokenizer::open(
          absl::StrCat(bundle.path(), "/", kSentencePieceFile),
          bundle.model().vocabSize);
  if (!plugin.ok())
    return plugin.status();
  return std::make_unique<SentencePieceTokenizer>(*std::move(plugin));
}

} // namespace grok::grokrun
