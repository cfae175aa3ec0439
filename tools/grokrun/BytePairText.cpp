// Grok-2's tokenizer, and its form of conversations.
#include <algorithm>
#include <iterator>
#include <span>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/bundle/Manifest.h"
#include "runtime/tokenizer/BytePair.h"
#include "tools/grokrun/Tokenizer.h"

namespace grok::grokrun {
namespace {

constexpr const char *kEnd = "<|eos|>", *kSeparator = "<|separator|>";

/// What Python's str.strip takes away, in UTF-8.
constexpr std::string_view kBlanks[] = {"\t",           "\n",
                                        "\v",           "\f",
                                        "\r",           "\x1c",
                                        "\x1d",         "\x1e",
                                        "\x1f",         " ",
                                        "\xc2\x85",     "\xc2\xa0",
                                        "\xe1\x9a\x80", "\xe2\x80\x80",
                                        "\xe2\x80\x81", "\xe2\x80\x82",
                                        "\xe2\x80\x83", "\xe2\x80\x84",
                                        "\xe2\x80\x85", "\xe2\x80\x86",
                                        "\xe2\x80\x87", "\xe2\x80\x88",
                                        "\xe2\x80\x89", "\xe2\x80\x8a",
                                        "\xe2\x80\xa8", "\xe2\x80\xa9",
                                        "\xe2\x80\xaf", "\xe2\x81\x9f",
                                        "\xe3\x80\x80"};

std::string_view strip(std::string_view text) {
  auto with = [&](auto test) {
    auto it = std::ranges::find_if(kBlanks, test);
    return it == std::end(kBlanks) ? 0 : it->size();
  };
  while (size_t bytes =
             with([&](std::string_view b) { return text.starts_with(b); }))
    text.remove_prefix(bytes);
  while (size_t bytes =
             with([&](std::string_view b) { return text.ends_with(b); }))
    text.remove_suffix(bytes);
  return text;
}

/// A text is the sum of its tokens'.
class BytePairDecoder : public TextDecoder {
public:
  explicit BytePairDecoder(const BytePairTokenizer &tokenizer)
      : tokenizer_(tokenizer) {}

  absl::StatusOr<std::string> add(int32_t id) override {
    return tokenizer_.decode(std::span(&id, 1));
  }
  std::string finish() override { return ""; }

private:
  const BytePairTokenizer &tokenizer_;
};

class BytePairText : public Tokenizer {
public:
  BytePairText(BytePairTokenizer tokenizer, std::string path)
      : tokenizer_(std::move(tokenizer)), path_(std::move(path)) {}

  absl::StatusOr<std::vector<int32_t>>
  encode(const std::string &text) const override {
    return tokenizer_.encode(text);
  }
  std::unique_ptr<TextDecoder> decoder() const override {
    return std::make_unique<BytePairDecoder>(tokenizer_);
  }
  std::optional<size_t> longestToken() const override {
    return tokenizer_.longestToken();
  }
  absl::StatusOr<std::vector<int32_t>> stopIds() const override {
    std::vector<int32_t> ids;
    for (const char *text : {kEnd, kSeparator})
      if (int32_t id = tokenizer_.special(text); id >= 0)
        ids.push_back(id);
    return ids;
  }

  /// "System: ...", "Human: ..." and "Assistant: ...", each closed by the
  /// separator and an empty line; then "Assistant:". What is said in between is
  /// plain text, whatever it looks like.
  absl::StatusOr<std::vector<int32_t>>
  encodeChat(const Chat &chat) const override {
    int32_t separator = tokenizer_.special(kSeparator);
    if (separator < 0)
      return absl::InvalidArgumentError(
          absl::StrCat(path_, ": found no special token '", kSeparator,
                       "', expected it for conversations; use --prompt"));
    std::vector<int32_t> ids;
    std::string open; // since the last separator
    auto say = [&](const char *who, std::string_view what) {
      absl::StatusOr<std::vector<int32_t>> piece = tokenizer_.encodePlain(
          absl::StrCat(open, who, ": ", std::string(what)));
      if (!piece.ok())
        return piece.status();
      ids.insert(ids.end(), piece->begin(), piece->end());
      ids.push_back(separator);
      open = "\n\n";
      return absl::OkStatus();
    };
    absl::Status status;
    if (!chat.system.empty())
      status = say("System", strip(chat.system));
    for (size_t i = 0; i < chat.turns.size() && status.ok(); ++i)
      status = i % 2 == 0 ? say("Human", strip(chat.turns[i]))
                          : say("Assistant", chat.turns[i]);
    if (!status.ok())
      return status;
    absl::StatusOr<std::vector<int32_t>> last =
        tokenizer_.encodePlain(open + "Assistant:");
    if (!last.ok())
      return last.status();
    ids.insert(ids.end(), last->begin(), last->end());
    return ids;
  }

private:
  BytePairTokenizer tokenizer_;
  std::string path_;
};

} // namespace

absl::StatusOr<std::unique_ptr<Tokenizer>> openBytePairs(const Bundle &bundle) {
  absl::StatusOr<std::string> text = bundle.readFile(kBytePairFile);
  if (!text.ok())
    return text.status();
  std::string path = absl::StrCat(bundle.path(), "/", kBytePairFile);
  absl::StatusOr<BytePairTokenizer> tokenizer =
      BytePairTokenizer::parse(*text, path, bundle.model().vocabSize);
  if (!tokenizer.ok())
    return tokenizer.status();
  return std::make_unique<BytePairText>(*std::move(tokenizer), std::move(path));
}

} // namespace grok::grokrun
